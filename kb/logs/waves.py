"""Bursts of timeouts: one file may hold several incidents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kb.logs.picture import number
from kb.types import Event, Wave

GAP_LINES = 3000  # quiet lines between two bursts
GAP_S = 300.0  # quiet seconds between two bursts; ranks of one burst follow within the minute
MAX_GAP_S = 30 * 86400.0  # a larger difference means the clocks are not comparable
_PROGRESS = frozenset({"train_step", "train_start", "init_complete", "world_size"})


Bursts = Mapping[str, Sequence[Sequence[Event]]]  # of each file, the timeouts of each burst


def split_bursts(events: Sequence[Event]) -> Bursts:
    """Cut each file's timeouts: progress, a gap or another timeout setting starts a new burst."""
    by_file: dict[str, list[Event]] = {}
    for event in events:
        by_file.setdefault(event.file, []).append(event)
    return {file: _bursts(of_file) for file, of_file in by_file.items()}


def join_waves(bursts: Bursts) -> tuple[Wave, ...]:
    """The waves: the first bursts of all files are one, the second ones another."""
    waves: dict[int, list[Event]] = {}
    for of_file in bursts.values():
        for place, burst in enumerate(of_file):
            waves.setdefault(place, []).extend(burst)
    return tuple(_wave(waves[place]) for place in sorted(waves))


def second_begins(bursts: Bursts) -> dict[str, int]:
    """The line at which the second burst begins, by file; files with one burst are left out."""
    return {file: found[1][0].line for file, found in bursts.items() if len(found) > 1}


def _bursts(events: Sequence[Event]) -> list[list[Event]]:
    """The bursts of one file, each a list of timeout events."""
    bursts: list[list[Event]] = []
    moved = False
    for event in events:
        if event.event in _PROGRESS:
            moved = True
        if event.kind != "timeout":
            continue
        if not bursts or _apart(bursts[-1], event, moved=moved):
            bursts.append([])
        bursts[-1].append(event)
        moved = False
    return bursts


def _apart(burst: Sequence[Event], event: Event, *, moved: bool) -> bool:
    last = burst[-1]
    lines = event.line - last.line
    if last.time_s is not None and event.time_s is not None:
        gap = abs(event.time_s - last.time_s)
        if gap < MAX_GAP_S:
            return gap > GAP_S
    setting = {e.fields["timeout_ms"] for e in burst if e.fields.get("timeout_ms")}
    mine = event.fields.get("timeout_ms")
    if mine and setting and mine not in setting and event.event == "collective_timeout":
        return moved or lines > GAP_LINES
    return lines > GAP_LINES or (moved and lines > GAP_LINES // 10)


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
