"""Negatives: logs in which nothing timed out or hung; each said to be a timeout is an alarm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kb.errors import InputError
from kb.service import Service
from kb.types import DiagnosisStatus, LogReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Negative:
    """What is said of one log; `triggers` are the patterns and cues that made it an incident."""

    name: str
    status: DiagnosisStatus
    cause: str
    triggers: tuple[str, ...]

    @property
    def alarm(self) -> bool:
        """Whether the log was said to be a timeout."""
        return self.status != "no_timeout"


def judge_negatives(service: Service, folder: Path) -> list[Negative]:
    """Every ``*.log`` of `folder`, in the order of names.

    Raises:
        InputError: there is none.
    """
    paths = sorted(folder.glob("*.log"))
    if not paths:
        raise InputError(f"{folder} holds no *.log", todo="give the folder of healthy logs")
    return [_judge(service, path) for path in paths]


def _judge(service: Service, path: Path) -> Negative:
    text = path.read_text(encoding="utf-8")
    answer = service.diagnose_text(text, language="en", top=1)
    alarm = answer.status != "no_timeout"
    return Negative(
        name=path.stem,
        status=answer.status,
        cause=answer.causes[0].id if alarm else "",
        triggers=_triggers(service, service.reader.read_text(text)) if alarm else (),
    )


def _triggers(service: Service, reading: LogReading) -> tuple[str, ...]:
    found = [
        f"{event.pattern_id}: line {event.line}: {event.text.strip()[:100]}"
        for event in reading.events
        if event.kind == "timeout"
    ]
    found += [f"{hit.cue.id}: {hit.quote[:100]}" for hit in service.engine.report_cues(reading)]
    return tuple(dict.fromkeys(found))
