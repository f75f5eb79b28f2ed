"""The board: incidents over time, where they happen, which recur, and what ended them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from kb.incidents.records import VALUES, IncidentFix, IncidentRecord

RECURRING = 2  # incidents from which on a kind of failure recurs, or a place is an offender


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many incidents share a value, how many of them are open, and which they are."""

    name: str
    incidents: int
    open: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekTally:
    """Incidents of one cause in one week; `week` is its Monday, empty where no date is known."""

    week: str
    cause: str
    incidents: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedFix:
    """A fix and the incidents it ended."""

    fix: IncidentFix
    incidents: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringGroup:
    """Incidents with the same signature, and what fixed them, the most frequent fix first."""

    signature: str
    cause: str
    op: str
    stage: str
    first_error: str
    first_date: str
    last_date: str
    incidents: int
    open: int
    fixes: tuple[AppliedFix, ...]
    hosts: tuple[str, ...]
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offender:
    """A host, or a GPU of one, that stood out in several incidents."""

    host: str
    gpu: str
    incidents: int
    open: int
    causes: tuple[str, ...]
    last_date: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Everything the board shows. `mean_hours_to_resolve` is over `timed` incidents, None over 0.

    Lists are sorted by number of incidents, the most first, ties by name; weeks by time.
    """

    incidents: int
    open: int
    resolved: int
    mean_hours_to_resolve: float | None
    timed: int
    weeks: tuple[WeekTally, ...]
    causes: tuple[Tally, ...]
    hosts: tuple[Tally, ...]
    gpus: tuple[Tally, ...]
    ranks: tuple[Tally, ...]
    projects: tuple[Tally, ...]
    labels: tuple[Tally, ...]
    recurring: tuple[RecurringGroup, ...]
    offenders: tuple[Offender, ...]


def board_of(records: Sequence[IncidentRecord]) -> Board:
    """Count the records."""
    hours = [r.hours_to_resolve for r in records if r.hours_to_resolve is not None]
    return Board(
        incidents=len(records),
        open=sum(not record.resolved for record in records),
        resolved=sum(record.resolved for record in records),
        mean_hours_to_resolve=round(sum(hours) / len(hours), 2) if hours else None,
        timed=len(hours),
        weeks=_weeks(records),
        causes=_tallies(records, VALUES["cause"]),
        hosts=_tallies(records, VALUES["host"]),
        gpus=_tallies(records, _gpus),
        ranks=_tallies(records, VALUES["rank"]),
        projects=_tallies(records, VALUES["project"]),
        labels=_tallies(records, VALUES["label"]),
        recurring=_recurring(records),
        offenders=_offenders(records),
    )


def monday(day: str) -> str:
    """The Monday of a day's week (ISO 8601), empty where it is no whole date."""
    try:
        moment = date.fromisoformat(day[:10])
    except ValueError:
        return ""
    return (moment - timedelta(days=moment.weekday())).isoformat()


def _weeks(records: Iterable[IncidentRecord]) -> tuple[WeekTally, ...]:
    ids: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        ids[monday(record.date), record.cause].append(record.id)
    return tuple(
        WeekTally(week=week, cause=cause, incidents=len(own), ids=tuple(own))
        for (week, cause), own in sorted(ids.items())
    )


def _gpus(record: IncidentRecord) -> Iterable[str]:
    """GPUs with their hosts: a number alone names another device on each host."""
    return (f"{p.host} {p.gpu}" for p in record.culprits if p.host and p.gpu)


def _tallies(
    records: Iterable[IncidentRecord], values: Callable[[IncidentRecord], Iterable[str]]
) -> tuple[Tally, ...]:
    members: dict[str, list[IncidentRecord]] = defaultdict(list)
    for record in records:
        for value in dict.fromkeys(values(record)):
            members[value].append(record)
    tallies = (
        Tally(name=name, incidents=len(own), open=_open(own), ids=_ids(own))
        for name, own in members.items()
    )
    return tuple(sorted(tallies, key=lambda tally: (-tally.incidents, tally.name)))


def _recurring(records: Iterable[IncidentRecord]) -> tuple[RecurringGroup, ...]:
    members: dict[str, list[IncidentRecord]] = defaultdict(list)
    for record in records:
        members[record.signature].append(record)
    groups = [_group(own) for own in members.values() if len(own) >= RECURRING]
    return tuple(sorted(groups, key=lambda group: (-group.incidents, group.signature)))


def _group(records: Sequence[IncidentRecord]) -> RecurringGroup:
    latest = records[0]
    dates = sorted(record.date for record in records if record.date)
    hosts = Counter(h for record in records for h in dict.fromkeys(VALUES["host"](record)))
    return RecurringGroup(
        signature=latest.signature,
        cause=latest.cause,
        op=latest.op,
        stage=latest.stage,
        first_error=latest.first_error,
        first_date=dates[0] if dates else "",
        last_date=dates[-1] if dates else "",
        incidents=len(records),
        open=_open(records),
        fixes=_fixes(records),
        hosts=tuple(sorted(hosts, key=lambda host: (-hosts[host], host))),
        ids=_ids(records),
    )


def _fixes(records: Iterable[IncidentRecord]) -> tuple[AppliedFix, ...]:
    ended: dict[str, list[IncidentRecord]] = defaultdict(list)
    for record in records:
        if record.fix is not None:
            ended[record.fix.title.strip().casefold()].append(record)
    fixes = [
        AppliedFix(fix=own[0].fix, incidents=len(own), ids=_ids(own))
        for own in ended.values()
        if own[0].fix is not None
    ]
    return tuple(sorted(fixes, key=lambda each: (-each.incidents, each.fix.title)))


def _offenders(records: Iterable[IncidentRecord]) -> tuple[Offender, ...]:
    """GPUs, and hosts that stand out in more incidents than any one of their GPUs."""
    members: dict[tuple[str, str], dict[str, IncidentRecord]] = defaultdict(dict)
    for record in records:
        for place in record.culprits:
            if place.host:
                members[place.host, ""][record.id] = record
                if place.gpu:
                    members[place.host, place.gpu][record.id] = record
    offenders = [
        Offender(
            host=host,
            gpu=gpu,
            incidents=len(own),
            open=_open(own.values()),
            causes=tuple(dict.fromkeys(record.cause for record in own.values())),
            last_date=max(record.date for record in own.values()),
            ids=tuple(own),
        )
        for (host, gpu), own in members.items()
        if len(own) >= RECURRING
    ]
    of_gpus = {(each.host, each.ids) for each in offenders if each.gpu}
    shown = [each for each in offenders if each.gpu or (each.host, each.ids) not in of_gpus]
    return tuple(sorted(shown, key=lambda each: (-each.incidents, each.host, each.gpu)))


def _open(records: Iterable[IncidentRecord]) -> int:
    return sum(not record.resolved for record in records)


def _ids(records: Iterable[IncidentRecord]) -> tuple[str, ...]:
    return tuple(record.id for record in records)
