"""What starts a job's processes (Slurm, Kubernetes, Ray, a server), seen by what is pasted."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kb.diagnose.evidence_provided import shows
from kb.text.expression_set import ExpressionSet
from kb.types.incident import LogReading
from kb.types.knowledge import Check, Launcher

SCRIPT = "train.py"  # what commands of the knowledge call the program
LINE_CHARS = 400  # of a line that are looked at for a launch command
NAME = "launcher:"  # names of launchers among all that was seen begin with it

# A path that a person may copy into a shell: nothing in it means anything there.
_LAUNCH = re.compile(
    r"\b(?:torchrun|deepspeed|accelerate launch|srun|mpirun|horovodrun|python[0-9.]{0,5})\s"
    r"(?:[^|;&>]{0,300}?\s)?(\w[\w./-]{0,80}\.py)(?=[\s`\"'\\]|$)"
)


class LauncherReader:
    """Finds launchers by their signs; made once from the knowledge, used for every input."""

    def __init__(self, launchers: Sequence[Launcher]) -> None:
        """Find `launchers`.

        Raises:
            DataError: an expression is none that RE2 takes.
        """
        self._launchers = tuple(launchers)
        self._signed = [item for item in launchers if item.signs]
        self._expressions = ExpressionSet(
            [
                (f"launchers.yaml: signs of {item.id}", "|".join(f"(?:{s})" for s in item.signs))
                for item in self._signed
            ]
        )

    def read(self, reading: LogReading, seen: Collection[str]) -> frozenset[str]:
        """The names (``launcher:slurm``) of those that `reading` shows; `seen` is known of it."""
        text = "\n".join(
            [
                reading.words,
                *(line.text for line in reading.lines),
                *(event.text for event in reading.events),
            ]
        )
        signed = {self._signed[number].id for number in self._expressions.matching(text)}
        named = {item.id for item in self._launchers if shows(item.shown_by, seen)}
        return frozenset(f"{NAME}{name}" for name in signed | named)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCommands:
    """How evidence is got and checks are done in this job, by the ids of both.

    `script` is the name of the program it runs; empty where nobody knows.
    """

    by_id: Mapping[str, str]
    script: str = ""

    def get(self, identifier: str, command: str) -> str:
        """The command of this job for an evidence or a check; empty where it has none."""
        own = self.by_id.get(identifier, command)
        return own.replace(SCRIPT, self.script) if self.script else own

    def checks(self, checks: Sequence[Check]) -> list[Check]:
        """The checks with the commands of this job, without those that it has none for."""
        own = [replace(check, command=self.get(check.id, check.command)) for check in checks]
        return [check for check in own if check.command]


def job_commands(
    launchers: Sequence[Launcher], reading: LogReading, seen: Collection[str]
) -> JobCommands:
    """The commands of the launchers that were `seen`; of several the first in the file decides."""
    commands: dict[str, str] = {}
    for launcher in launchers:
        if f"{NAME}{launcher.id}" in seen:
            commands = {**launcher.commands, **commands}
    return JobCommands(by_id=commands, script=script_of(reading))


def script_of(reading: LogReading) -> str:
    """The program that launch commands of the input run, if it is one; else nothing."""
    lines = (*reading.words.split("\n"), *(line.text for line in reading.lines))
    matches = (_LAUNCH.search(line[:LINE_CHARS]) for line in lines)
    scripts = {match[1] for match in matches if match}
    return scripts.pop() if len(scripts) == 1 else ""
