"""The same error: what a log shows that tells one failure from another.

A watchdog's report stands in every log and an exception's class in many, so they count only with
what is special about them: the sizes of the collective, the words of the exception.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kb.types.incident import Event, LogReading
from kb.types.knowledge import EventType
from kb.types.vocabulary import EventRole

ERROR_KINDS = frozenset({"root", "timeout"})
# Events that say that something failed and nothing of what.
GENERAL = frozenset({EventRole.WATCHDOG_REPORT, EventRole.WORK_REPORT, EventRole.VAGUE})
BARRIER_NUMEL = ("1", "1")
MESSAGE_CHARS = 120  # of an exception that are compared
_SIZES = re.compile(r"NumelIn=([0-9]+)[,\s]{1,3}NumelOut=([0-9]+)")
_RAISED = re.compile(r"\b[A-Z][A-Za-z]{2,40}(?:Error|Exception|Interrupt|Exit)\b.*")
_VARIABLE = re.compile(r"0x[0-9a-f]+|/[^\s'\"]+|[0-9]+")  # addresses, paths, numbers


@dataclass(frozen=True, slots=True)
class ErrorMarks:
    """What tells an incident's failure from others.

    Attributes:
        errors: kinds of its errors, or what an exception says.
        sizes: elements in and out of the collectives that timed out, barriers aside.
    """

    errors: frozenset[str] = frozenset()
    sizes: frozenset[tuple[str, str]] = frozenset()

    def shared(self, other: ErrorMarks) -> ErrorMarks:
        """What both have: nothing where no mark of either stands in the other."""
        return ErrorMarks(self.errors & other.errors, self.sizes & other.sizes)

    def __bool__(self) -> bool:
        """Whether there is anything to tell it by."""
        return bool(self.errors or self.sizes)


NO_MARKS = ErrorMarks()


def error_marks(reading: LogReading, types: Mapping[str, EventType]) -> ErrorMarks:
    """The marks of what was read; `types` are the kinds of events by id."""
    events = [event for event in reading.events if event.kind in ERROR_KINDS]
    marks = (_mark(event, types) for event in events)
    sizes = {pair for event in events for pair in _SIZES.findall(event.text)}
    return ErrorMarks(frozenset(filter(None, marks)), frozenset(sizes - {BARRIER_NUMEL}))


def _mark(event: Event, types: Mapping[str, EventType]) -> str:
    roles = types[event.event].roles if event.event in types else ()
    if EventRole.EXCEPTION in roles:
        raised = _RAISED.search(event.text)
        message = _VARIABLE.sub("#", raised[0]) if raised else ""
        return " ".join(message.split())[:MESSAGE_CHARS] if ":" in message else ""
    return "" if GENERAL.intersection(roles) else event.event
