"""Labelled incidents: real threads as queries with the cause a reader of the whole thread saw."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from kb.errors import InputError

MIN_QUERY_CHARS = 120  # shorter reports say too little to measure a diagnosis on


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One labelled thread. `text` is what the user posted: title, words, log."""

    id: str
    url: str
    repo: str
    language: str
    text: str
    log: str
    cause: str
    also: tuple[str, ...]
    stage: str
    measurable: bool


class _Record(msgspec.Struct):
    id: str
    url: str
    repo: str
    title: str
    lang: str
    cause: str
    also: list[str]
    stage: str
    query_text: str | None = ""
    query_log: str | None = ""
    text_leaks_cause: bool | None = False


def load_incidents(path: Path) -> tuple[Incident, ...]:
    """Read labelled threads, one JSON object a line.

    Raises:
        InputError: the file is missing or a line is no such record.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}", todo="give the path of a threads.jsonl"
        ) from error
    incidents = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line, type=_Record)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}, line {number}: {error}", todo="mend the line") from error
        incidents.append(_incident(record))
    return tuple(incidents)


def _incident(record: _Record) -> Incident:
    words, log = record.query_text or "", record.query_log or ""
    title = "" if record.title.startswith("[title not") else record.title
    return Incident(
        id=record.id,
        url=record.url,
        repo=record.repo,
        language="zh" if record.lang == "zh" else "en",
        text="\n".join(part for part in (title, words, log) if part),
        log=log,
        cause=record.cause,
        also=tuple(record.also),
        stage=record.stage,
        measurable=len(words) + len(log) >= MIN_QUERY_CHARS and not record.text_leaks_cause,
    )
