"""Where each rank stands in the program: tracebacks and threads' stacks of several ranks compared.

A rank that times out in a collective leaves a traceback that ends where it waited. Most ranks wait
in one line of the program; the few in another line run something else, or run ahead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kb.evidence.stacks import Stack, read_stacks, stack_of
from kb.logs.event_log import EventLog
from kb.logs.scan.call_stacks import frames_of
from kb.types.incident import Culprit, Event, Fact
from kb.types.vocabulary import EventRole

# A launcher that reports its children ends there; it is no rank, whatever its file is called.
_LAUNCHER = re.compile(r"torch/distributed/(?:launcher/|run\.py|launch\.py|elastic/)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlaces:
    """Where ranks stand, who stands elsewhere, and what follows; all by rank."""

    stacks: tuple[Stack, ...] = ()
    events: tuple[Event, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    facts: tuple[Fact, ...] = ()


def read_places(log: EventLog, opens: Callable[[Event], bool]) -> RankPlaces:
    """Compare the first stack of each rank among those of the first wave (`opens`).

    A traceback that ends in an error of the rank's own is left out: that rank waits for nobody.
    """
    first: dict[int, tuple[Stack, Event]] = {}
    for event, stack in _stacks(log, opens):
        if stack.rank is not None:
            first.setdefault(stack.rank, (stack, event))
    if len(first) < 2:
        return RankPlaces()
    stacks, events = zip(*(first[rank] for rank in sorted(first)), strict=True)
    files = {event.rank: event.file for event in events}
    lines = {(event.line, event.file) for event in events}
    reading = read_stacks(stacks)
    only = events[0].file if len({file for _, file in lines}) == 1 else ""
    return RankPlaces(
        stacks=stacks,
        events=events,
        culprits=tuple(replace(c, file=files[c.rank]) for c in reading.culprits),
        facts=tuple(replace(fact, file=only) for fact in reading.facts),
    )


def _stacks(log: EventLog, opens: Callable[[Event], bool]) -> Iterator[tuple[Event, Stack]]:
    own_errors = _own_errors(log)
    for event in log.of(EventRole.TRACEBACK, EventRole.THREAD_STACK):
        until = event.fields.get("until", "")
        broke = until.isdecimal() and (event.file, int(until)) in own_errors
        frames = frames_of(event.fields.get("frames", ""))
        if frames and not broke and not _LAUNCHER.search(frames[0].file) and opens(event):
            gil = bool(event.fields.get("gil"))
            yield event, stack_of(event.rank, frames, event.line, holds_gil=gil)


def _own_errors(log: EventLog) -> set[tuple[str, int]]:
    """Lines with an error that no timeout, lost peer or proven mismatch explains."""
    roots = {
        (event.file, event.line)
        for event in log.of_kind("root")
        if not log.plays(event, EventRole.SHARED_ERROR)
    }
    follow = {(event.file, event.line) for event in log.of_kind("timeout", "cascade")}
    shared = {(e.file, e.line) for e in log.of(EventRole.SHARED_ERROR)}
    return roots - follow - shared
