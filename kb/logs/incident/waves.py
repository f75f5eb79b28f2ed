"""Bursts of timeouts: one file may hold several incidents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kb.logs.event_log import EventLog
from kb.logs.incident.observations import number
from kb.types.incident import Event, Wave
from kb.types.vocabulary import EventRole

GAP_LINES = 3000  # quiet lines between two bursts
GAP_S = 300.0  # quiet seconds between two bursts; ranks of one burst follow within the minute
MAX_GAP_S = 30 * 86400.0  # a larger difference means the clocks are not comparable

Bursts = Mapping[str, Sequence[Sequence[Event]]]  # of each file, the timeouts of each burst


def split_bursts(log: EventLog) -> Bursts:
    """Cut each file's timeouts: progress, a gap or another timeout setting starts a new burst."""
    by_file: dict[str, list[Event]] = {}
    for event in log.events:
        by_file.setdefault(event.file, []).append(event)
    return {file: _bursts(log, of_file) for file, of_file in by_file.items()}


def join_waves(bursts: Bursts) -> tuple[Wave, ...]:
    """The waves: the first bursts of all files are one, the second ones another."""
    waves: dict[int, list[Event]] = {}
    for of_file in bursts.values():
        for place, burst in enumerate(of_file):
            waves.setdefault(place, []).extend(burst)
    return tuple(_wave(waves[place]) for place in sorted(waves))


def second_begins(bursts: Bursts) -> dict[str, int]:
    """The line at which the second burst begins, by file; files with one burst are left out."""
    return {file: of_file[1][0].line for file, of_file in bursts.items() if len(of_file) > 1}


def _bursts(log: EventLog, events: Sequence[Event]) -> list[list[Event]]:
    """The bursts of one file, each a list of timeout events."""
    bursts: list[list[Event]] = []
    moved = False
    for event in events:
        moved = moved or log.plays(event, EventRole.PROGRESS)
        if event.kind != "timeout":
            continue
        again = moved and bool(bursts) and _again(log, bursts[-1], event)
        if not bursts or again or _apart(log, bursts[-1], event, moved=moved):
            bursts.append([])
        bursts[-1].append(event)
        moved = False
    return bursts


def _again(log: EventLog, burst: Sequence[Event], event: Event) -> bool:
    """Whether a rank of the burst reports another number after progress: the job ran once more."""
    seq = event.fields.get("seq")
    if event.rank is None or not seq or not log.plays(event, EventRole.WATCHDOG_REPORT):
        return False
    return any(
        earlier.rank == event.rank
        and earlier.process_group == event.process_group
        and earlier.fields.get("seq", seq) != seq
        for earlier in burst
    )


def _apart(log: EventLog, burst: Sequence[Event], event: Event, *, moved: bool) -> bool:
    last = burst[-1]
    lines = event.line - last.line
    if last.time_s is not None and event.time_s is not None:
        gap = abs(event.time_s - last.time_s)
        if gap < MAX_GAP_S:
            return gap > GAP_S
    if log.plays(event, EventRole.WORK_REPORT) and _has_other_limit(burst, event):
        return moved or lines > GAP_LINES
    return lines > GAP_LINES or (moved and lines > GAP_LINES // 10)


def _has_other_limit(burst: Sequence[Event], event: Event) -> bool:
    """Whether the event prints a limit, the burst does too, and never the same."""
    limit = event.fields.get("timeout_ms")
    others = False
    for earlier in reversed(burst):  # nearly always the last one has the same
        if not limit or earlier.fields.get("timeout_ms") == limit:
            return False
        others = others or bool(earlier.fields.get("timeout_ms"))
    return others


def _wave(burst: Sequence[Event]) -> Wave:
    named = Counter(
        (e.fields["op"], number(e.fields.get("seq"))) for e in burst if e.fields.get("op")
    )
    op, seq = (
        min(named, key=lambda key: (-named[key], key[0], key[1] or 0)) if named else ("", None)
    )
    settings = Counter(e.fields["timeout_ms"] for e in burst if e.fields.get("timeout_ms"))
    timeout = min(settings, key=lambda key: (-settings[key], key)) if settings else None
    times = [e.time_s for e in burst if e.time_s is not None]
    lines = [e.line for e in burst if e.file == burst[0].file]
    return Wave(
        first_line=min(lines),
        last_line=max(lines),
        op=op,
        seq=seq,
        timeout_ms=number(timeout),
        ranks=tuple(sorted({e.rank for e in burst if e.rank is not None})),
        started_s=min(times) if times else None,
        file=burst[0].file,
    )
