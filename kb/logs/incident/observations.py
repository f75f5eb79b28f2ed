"""What is observed of an incident: timeout reports, progress, and the incident so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from kb.logs.event_log import EventLog
from kb.logs.incident.places import RankPlaces
from kb.types.incident import Event, Incident
from kb.types.vocabulary import EventRole

MAX_LAG = 1000  # works; ranks of one group are never further apart, those of two runs or groups are
TWIN_LINES = 500  # within which the watchdog prints the same report again


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkReport:
    """What a rank reports of one collective, or of how far it came in a process group.

    None or empty where nothing was printed; `enqueued` and `completed` are sequence numbers.
    """

    rank: int | None
    process_group: str
    seq: int | None
    op: str
    numel_in: int | None
    numel_out: int | None
    timeout_ms: int | None
    ran_ms: int | None
    enqueued: int | None
    completed: int | None
    event: Event

    @property
    def line(self) -> int:
        """The line it stands on."""
        return self.event.line


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Everything the facts, the culprits and the stage are derived from.

    `first_reports` are the reports of the first wave and `progress` is what was known by then:
    ranks are only compared with each other within one incident. `incident` holds what is known of
    it so far.
    """

    log: EventLog
    reports: tuple[WorkReport, ...]
    first_reports: tuple[WorkReport, ...]
    progress: tuple[WorkReport, ...]
    incident: Incident
    first_error: Event | None = None
    places: RankPlaces = field(default_factory=RankPlaces)

    @cached_property
    def main(self) -> WorkReport | None:
        """The report the incident is named after: the first that says op and number."""
        named = [r for r in self.reports if r.op and r.seq is not None]
        return next(iter(named or [r for r in self.reports if r.op] or self.reports), None)

    @cached_property
    def unnamed_is_one_group(self) -> bool:
        """Whether numbers that are printed without a process group surely belong to one.

        Older versions name none: all then is one group, unless the log names several elsewhere, has
        one of its own for tensor parallelism, or a rank reports numbers that are far apart.
        """
        everything = (*self.first_reports, *self.progress)
        if len({report.process_group for report in everything} - {""}) > 1:
            return False
        for event in self.log.of(EventRole.PARALLEL_SIZE):
            if "tensor" in event.fields.get("name", "").lower() and event.fields["size"] != "1":
                return False
        numbers: dict[int, list[int]] = defaultdict(list)
        for report in self.first_reports:
            if report.rank is not None and report.seq is not None and not report.process_group:
                numbers[report.rank].append(report.seq)
        return all(max(seen) - min(seen) <= MAX_LAG for seen in numbers.values())


def number(text: str | None) -> int | None:
    """A whole number out of a captured field, or None."""
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        return None


def read_reports(log: EventLog) -> tuple[WorkReport, ...]:
    """The timeout reports of a log.

    Some versions leave the process group out of one line and name it in the next. A missing one is
    taken from the same rank and number, or is the only one that the log names at all.
    """
    watchdog = log.of(EventRole.WATCHDOG_REPORT)
    groups = _groups(watchdog)
    names = {event.process_group for event in watchdog if event.process_group}
    only = min(names) if len(names) == 1 else ""
    reports = []
    for report in map(_report, log.of(EventRole.WORK_REPORT)):
        group = report.process_group or groups.get((report.rank, report.seq), only)
        reports.append(replace(report, process_group=group))
    return _merged(reports)


def _report(event: Event) -> WorkReport:
    get = event.fields.get
    return WorkReport(
        rank=event.rank,
        process_group=event.process_group,
        seq=number(get("seq")),
        op=get("op", ""),
        numel_in=number(get("numel_in")),
        numel_out=number(get("numel_out")),
        timeout_ms=number(get("timeout_ms")),
        ran_ms=number(get("ran_ms")),
        enqueued=number(get("enqueued")),
        completed=number(get("completed")),
        event=event,
    )


def _groups(events: Iterable[Event]) -> dict[tuple[int | None, int | None], str]:
    """Process group per (rank, seq), where every line that names one agrees."""
    seen: dict[tuple[int | None, int | None], set[str]] = defaultdict(set)
    for event in events:
        if event.process_group and event.rank is not None:
            seen[event.rank, number(event.fields.get("seq"))].add(event.process_group)
    return {key: min(names) for key, names in seen.items() if len(names) == 1}


def _merged(reports: Iterable[WorkReport]) -> tuple[WorkReport, ...]:
    """One report per rank, group, number and wave: the watchdog prints each two or three times."""
    merged: list[WorkReport] = []
    alike: dict[tuple[object, ...], list[WorkReport]] = defaultdict(list)
    for report in reports:
        work = (report.event.file, report.rank, report.seq, report.op, report.numel_in)
        if not any(_is_twin(report, earlier) for earlier in alike[work]):
            alike[work].append(report)
            merged.append(report)
    return tuple(merged)


def _is_twin(report: WorkReport, earlier: WorkReport) -> bool:
    """Whether a report may be of the same group as an earlier one that stands close above it."""
    groups = {report.process_group, earlier.process_group} - {""}
    return len(groups) < 2 and report.line - earlier.line < TWIN_LINES


def read_progress(watchdog: Iterable[Event]) -> tuple[WorkReport, ...]:
    """The last report of each rank and process group that says what was enqueued."""
    latest = {
        (report.rank, report.process_group): report
        for report in map(_report, watchdog)
        if report.rank is not None and report.enqueued is not None
    }
    return tuple(latest[key] for key in sorted(latest))
