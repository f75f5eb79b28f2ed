"""The first error that no other error explains."""

from __future__ import annotations

from collections.abc import Sequence

from kb.logs.event_log import EventLog
from kb.logs.incident.ranks import WATCHDOG_ABORT, exit_code
from kb.types.incident import Event, FirstError
from kb.types.vocabulary import EventRole

NEAR_LINES = 60  # a vague error and the library's own warning about it stand this close
SAME_FAILURE_S = 120.0  # an adapter retries this long before it reports, the kernel may be later
CLOCK_SPREAD_S = 86400.0  # clocks further apart are not comparable


def first_error(log: EventLog) -> Event | None:
    """The root candidate everything else may follow from, or None.

    Cascades, teardown, noise and timeouts never qualify. A generic exception does not where the
    same line says something specific, nor on a rank that had timed out before; nor does SIGABRT,
    with which the watchdog ends its own process, where ranks timed out. A broken connection to a
    peer follows from a host, link or GPU that went away, in whatever order the lines stand.
    """
    roots = candidates(log)
    if not roots:
        return None
    timeouts = log.of_kind("timeout")
    first = min(roots, key=lambda event: _order(log, timeouts, event))
    if log.plays(first, EventRole.VAGUE):
        specific = [
            event
            for event in roots
            if not log.plays(event, EventRole.VAGUE)
            and event.file == first.file
            and abs(event.line - first.line) <= NEAR_LINES
            and (event.rank is None or first.rank is None or event.rank == first.rank)
        ]
        if specific:
            return min(specific, key=lambda event: _order(log, timeouts, event))
    if log.plays(first, EventRole.PEER_ADDRESS):
        gone = [e for e in roots if log.plays(e, EventRole.HOST_FAILURE) and not _later(e, first)]
        return min([*gone, first], key=lambda e: (e not in gone, _order(log, timeouts, e)))
    return first


def _later(event: Event, other: Event) -> bool:
    """Whether an event is known to have happened clearly after another."""
    if event.time_s is None or other.time_s is None:
        return False
    return SAME_FAILURE_S < event.time_s - other.time_s < CLOCK_SPREAD_S


def candidates(log: EventLog) -> list[Event]:
    """Root candidates that are not explained by their own line or by an earlier timeout."""
    explained = {
        (event.file, event.line)
        for event in log.events
        if event.kind in ("timeout", "cascade", "teardown")
        or (event.kind == "root" and not log.plays(event, EventRole.EXCEPTION))
    }
    timed_out: dict[tuple[str, int], int] = {}
    any_timeout: dict[str, int] = {}
    for event in log.of_kind("timeout"):
        any_timeout.setdefault(event.file, event.line)
        if event.rank is not None:
            timed_out.setdefault((event.file, event.rank), event.line)
    roots: list[Event] = []
    for event in log.of_kind("root"):
        if log.plays(event, EventRole.EXCEPTION) and (event.file, event.line) in explained:
            continue
        if log.plays(event, EventRole.VAGUE):
            limit = (
                any_timeout.get(event.file)
                if event.rank is None
                else timed_out.get((event.file, event.rank))
            )
            if limit is not None and limit < event.line:
                continue
        aborted = log.plays(event, EventRole.KILLED) and exit_code(event) == WATCHDOG_ABORT
        if aborted and any_timeout:
            continue
        roots.append(event)
    return roots


def _order(log: EventLog, timeouts: Sequence[Event], event: Event) -> tuple[object, ...]:
    """Earlier than the first timeout of its file first, then by clock, then by place."""
    here = next((t for t in timeouts if t.file == event.file), None)
    late = here is not None and event.line > here.line and not log.plays(event, EventRole.REAPED)
    comparable = event.time_s is not None and all(
        t.time_s is None or abs(t.time_s - event.time_s) < CLOCK_SPREAD_S for t in timeouts
    )
    clock = event.time_s if comparable and event.file and event.time_s is not None else 0.0
    return (late, clock, event.file, event.line, event.pattern_id)


def as_value(event: Event | None) -> FirstError | None:
    """The event as the contract's value."""
    if event is None:
        return None
    return FirstError(
        rank=event.rank,
        line=event.line,
        kind=event.event,
        text=event.text,
        file=event.file,
        host=event.host,
    )
