"""The working picture of an incident: timeout reports, progress and surroundings, in one value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kb.types import Event, FirstError, RankState, Stage, Wave

# Events that say a collective, a barrier or a call did not finish in time.
REPORT_EVENTS = frozenset({"collective_timeout", "watchdog_timeout", "rank_progress"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One rank's report of one timed-out collective; None or empty where nothing was printed."""

    rank: int | None
    process_group: str
    seq: int | None
    op: str
    numel_in: int | None
    numel_out: int | None
    timeout_ms: int | None
    ran_ms: int | None
    event: Event

    @property
    def line(self) -> int:
        """The line it stands on."""
        return self.event.line


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one rank came in one process group."""

    rank: int
    process_group: str
    seq: int | None
    enqueued: int | None
    completed: int | None
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the log says about the machine and the job, apart from the failure."""

    backend: str = ""
    frameworks: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    transport: tuple[str, ...] = ()
    world_size: int | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything the facts, the culprits and the timeline are derived from.

    `opening` are the reports of the first wave and `progress` is what was known by then: ranks
    are only compared with each other within one incident.
    """

    events: tuple[Event, ...]
    reports: tuple[Report, ...]
    opening: tuple[Report, ...]
    progress: tuple[Progress, ...]
    around: Surroundings
    waves: tuple[Wave, ...] = ()
    first_error: FirstError | None = None
    first_error_event: Event | None = None
    stage: Stage = "unknown"
    reporting: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    states: tuple[RankState, ...] = ()

    def of(self, *names: str) -> list[Event]:
        """Events of these kinds of event, in the order of the input."""
        return [event for event in self.events if event.event in names]

    @property
    def main(self) -> Report | None:
        """The report the incident is named after: the first that says op and number."""
        named = [r for r in self.reports if r.op and r.seq is not None]
        return next(iter(named or [r for r in self.reports if r.op] or self.reports), None)

    def timeouts(self) -> list[Event]:
        """All events that are timeouts themselves."""
        return [event for event in self.events if event.kind == "timeout"]


def number(text: str | None) -> int | None:
    """A whole number out of a captured field, or None."""
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        return None


def read_reports(events: Iterable[Event]) -> tuple[Report, ...]:
    """The timeout reports of a log.

    Some versions leave the process group out of one line and name it in the next. A missing one is
    taken from the same rank and number, or is the only one that the log names at all.
    """
    found = [_report(e) for e in events if e.event == "collective_timeout"]
    groups = _groups(events)
    names = {e.process_group for e in events if e.event in REPORT_EVENTS and e.process_group}
    only = min(names) if len(names) == 1 else ""
    named: list[Report] = []
    for report in found:
        if not report.process_group:
            group = groups.get((report.rank, report.seq), only)
            report = replace(report, process_group=group)  # noqa: PLW2901 - the same report
        named.append(report)
    return _merged(named)


def _report(event: Event) -> Report:
    get = event.fields.get
    return Report(
        rank=event.rank,
        process_group=event.process_group,
        seq=number(get("seq")),
        op=get("op", ""),
        numel_in=number(get("numel_in")),
        numel_out=number(get("numel_out")),
        timeout_ms=number(get("timeout_ms")),
        ran_ms=number(get("ran_ms")),
        event=event,
    )


def _groups(events: Iterable[Event]) -> dict[tuple[int | None, int | None], str]:
    """Process group per (rank, seq), where every line that names one agrees."""
    seen: dict[tuple[int | None, int | None], set[str]] = defaultdict(set)
    for event in events:
        if event.event in REPORT_EVENTS and event.process_group and event.rank is not None:
            seen[event.rank, number(event.fields.get("seq"))].add(event.process_group)
    return {key: min(names) for key, names in seen.items() if len(names) == 1}


def _merged(reports: Sequence[Report]) -> tuple[Report, ...]:
    """One report per rank, group, number and wave: the watchdog prints each two or three times."""
    kept: list[Report] = []
    for report in reports:
        twin = next(
            (
                place
                for place in range(len(kept) - 1, max(-1, len(kept) - 200), -1)
                if _same(kept[place], report)
            ),
            None,
        )
        if twin is None:
            kept.append(report)
    return tuple(kept)


def _same(one: Report, other: Report) -> bool:
    return (
        one.event.file == other.event.file
        and one.rank == other.rank
        and one.seq == other.seq
        and one.op == other.op
        and one.numel_in == other.numel_in
        and (not one.process_group or not other.process_group)
        | (one.process_group == other.process_group)
        and other.line - one.line < 500
    )


def read_progress(events: Iterable[Event]) -> tuple[Progress, ...]:
    """Last enqueued and completed work per rank and process group, the last word of each."""
    latest: dict[tuple[int, str], Progress] = {}
    for event in events:
        if event.event not in REPORT_EVENTS or event.rank is None:
            continue
        enqueued = number(event.fields.get("enqueued"))
        if enqueued is None:
            continue
        latest[event.rank, event.process_group] = Progress(
            rank=event.rank,
            process_group=event.process_group,
            seq=number(event.fields.get("seq")),
            enqueued=enqueued,
            completed=number(event.fields.get("completed")),
            event=event,
        )
    return tuple(latest[key] for key in sorted(latest))
