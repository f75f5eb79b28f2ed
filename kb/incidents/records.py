"""Incidents as rows: what of a stored entry is counted, and which of them a filter lets pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from kb.errors import InputError
from kb.knowledge.facets import day_number, day_range, fold
from kb.text.gpu_names import gpu_parts
from kb.types.entries import Entry, Filters, RankPlace
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import UNKNOWN, ClaimStatus, Stage

SIGNATURE_WORDS = 10  # of the first error: what follows differs from run to run
NAMED_VALUES = 20  # of a filter, in the message that refuses another one
LATE = timedelta(days=1)  # a log added so much later was imported, not handed in by a hook
_WORD = re.compile(r"[A-Za-z_]{3,}|[\u4e00-\u9fff]+")
_FRONT = re.compile(r"(?:\[[^\]]{0,80}\]:? ?|[0-9:.,T-]{5,30}Z? ){1,6}")
_TIMED_OUT = re.compile(r"timeout|timed out|超时", re.IGNORECASE)
_ADDRESS = re.compile(r"[0-9.]+\Z|.*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFix:
    """What ended an incident, in the words of who wrote it down."""

    title: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRecord:
    """An incident of the team as the board counts it.

    `date` is the day it happened (by the log's clock, else when it was added). `cause` is the one
    written down, else the one the log was diagnosed with; `unknown` where there is neither, or
    where it was written down in a person's words, which are `own_cause`.
    `signature` is what incidents of one kind share: cause, first error, and, where that is a
    timeout, operation and stage.
    """

    id: str
    title: Bilingual
    date: str
    added_on: str
    cause: str
    cause_status: ClaimStatus
    resolved: bool
    resolved_on: str
    resolved_by: str
    hours_to_resolve: float | None
    project: str
    labels: tuple[str, ...]
    culprits: tuple[RankPlace, ...]
    op: str
    stage: Stage
    first_error: str
    signature: str
    fix: IncidentFix | None
    own_cause: str = ""
    log_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFilters:
    """Conditions on incidents; an empty tuple, string or None lets all pass."""

    cause: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    rank: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    resolved: bool | None = None
    since: str = ""
    until: str = ""


NO_CONDITIONS = IncidentFilters()

# Values of an incident by the filter that asks for them.
VALUES: Mapping[str, Callable[[IncidentRecord], Iterable[str]]] = {
    "cause": lambda record: (record.cause,),
    "host": lambda record: (place.host for place in record.culprits if place.host),
    "gpu": lambda record: (place.gpu for place in record.culprits if place.gpu),
    "rank": lambda record: (str(p.rank) for p in record.culprits if p.rank is not None),
    "project": lambda record: (record.project,) if record.project else (),
    "label": lambda record: record.labels,
}


def records_of(entries: Iterable[Entry]) -> tuple[IncidentRecord, ...]:
    """The incidents among `entries`, the latest first; GPUs of a host have one name.

    Those of one day are in the order they were added, the newest first, ties by id.
    """
    records = [_record(entry) for entry in entries if entry.kind == "incident"]
    numbers = _gpu_numbers(records)
    named = [_with_places(record, numbers) for record in records]
    named.sort(key=lambda record: record.id)
    return tuple(sorted(named, key=lambda record: (record.date, record.added_on), reverse=True))


def _record(entry: Entry) -> IncidentRecord:
    claim = next((claim for claim in entry.causes if claim.status != "contradicted"), None)
    first = next(iter(entry.signature), "")
    op = next(iter(entry.tags.ops), "")
    cause = claim.id if claim else UNKNOWN
    fix = next(iter(entry.fixes), None) if entry.resolved else None
    return IncidentRecord(
        id=entry.id,
        title=entry.title,
        date=entry.date[:10] or entry.added_on[:10],
        added_on=entry.added_on,
        cause=cause,
        cause_status=claim.status if claim else "unverified",
        resolved=entry.resolved,
        resolved_on=entry.resolved_on,
        resolved_by=entry.resolved_by,
        hours_to_resolve=_hours(entry),
        project=entry.project,
        labels=entry.labels,
        culprits=entry.culprits,
        op=op,
        stage=entry.tags.stage,
        first_error=first,
        signature=" ".join(filter(None, (cause, *_signature(first, op, entry.tags.stage)))),
        fix=IncidentFix(title=fix.title.en, commands=fix.commands) if fix else None,
        own_cause=entry.own_cause,
        log_name=entry.log_name,
    )


def _signature(first: str, op: str, stage: Stage) -> tuple[str, ...]:
    """What tells this kind of failure from others: numbers, ranks and paths are no part of it."""
    front = _FRONT.match(first)
    words = _WORD.findall(first[front.end() :] if front else first)[:SIGNATURE_WORDS]
    moment = (op, stage) if not words or _TIMED_OUT.search(first) else ()
    return (*moment, *(word.lower() for word in words))


def _hours(entry: Entry) -> float | None:
    """Hours from the incident, or from when it was handed in, to its outcome; None if unknown."""
    started, ended = _moment(entry.added_on), _moment(entry.resolved_on)
    happened = _moment(entry.date[:10])
    if happened is not None and (started is None or started - happened > 2 * LATE):
        started = happened
    if started is None or ended is None or ended < started:
        return None
    return round((ended - started) / timedelta(hours=1), 2)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# --- places --------------------------------------------------------------------------------------


def short_host(host: str) -> str:
    """A host's name without its domain: launchers print one or the other. Addresses stay."""
    return host if _ADDRESS.match(host) else host.partition(".")[0]


def _gpu_numbers(records: Sequence[IncidentRecord]) -> dict[tuple[str, str], str]:
    """What a GPU is called in full, by host and each part of its name."""
    names: dict[tuple[str, str], str] = {}
    for place in (place for record in records for place in record.culprits):
        number, bus = gpu_parts(place.gpu)
        if place.host and number and bus:
            names.setdefault((short_host(place.host), number), place.gpu)
            names.setdefault((short_host(place.host), bus), place.gpu)
    return names


def _with_places(record: IncidentRecord, names: Mapping[tuple[str, str], str]) -> IncidentRecord:
    culprits = tuple(
        RankPlace(
            rank=place.rank,
            host=short_host(place.host),
            gpu=names.get((short_host(place.host), place.gpu), place.gpu),
        )
        for place in record.culprits
    )
    return replace(record, culprits=culprits)


# --- filters -------------------------------------------------------------------------------------


def selected(
    records: Sequence[IncidentRecord], filters: IncidentFilters
) -> tuple[IncidentRecord, ...]:
    """The records that pass, in their order.

    A GPU is asked for by its number, its bus id or both; case does not matter.

    Raises:
        InputError: no incident has the value a filter asks for, or a date cannot be read.
    """
    days = day_range(Filters(since=filters.since, until=filters.until))
    requested = {
        name: set(known_values(records, name, getattr(filters, name)))
        for name in VALUES
        if getattr(filters, name)
    }
    return tuple(
        record
        for record in records
        if (filters.resolved is None or record.resolved is filters.resolved)
        and (days is None or days[0] <= day_number(record.date) <= days[1])
        and all(not values.isdisjoint(VALUES[name](record)) for name, values in requested.items())
    )


def offered_values(records: Sequence[IncidentRecord], name: str) -> tuple[str, ...]:
    """The values that a filter can ask for, sorted, numbers by their size."""
    values = {value for record in records for value in VALUES[name](record)}
    return tuple(sorted(values, key=lambda v: (not v.isdecimal(), len(v) * v.isdecimal(), v)))


def known_values(
    records: Sequence[IncidentRecord], name: str, wanted: Sequence[str]
) -> tuple[str, ...]:
    """The values of incidents that are meant by those of a filter.

    Raises:
        InputError: no incident has one of them.
    """
    known = offered_values(records, name)
    for value in wanted:
        if not any(_matches(name, value, other) for other in known):
            raise _unknown_value(name, value, known)
    return tuple(own for own in known if any(_matches(name, value, own) for value in wanted))


def _matches(name: str, wanted: str, own: str) -> bool:
    if name == "host":
        wanted = short_host(wanted)
    if name == "gpu" and fold(wanted) in gpu_parts(own):
        return True
    return fold(wanted) == fold(own)


def _unknown_value(name: str, value: str, known: Sequence[str]) -> InputError:
    shown = ", ".join(known[:NAMED_VALUES]) or "-"
    return InputError(
        f"no incident has {name}={value!r}",
        todo=f"{name} is one of: {shown}",
        reason="no_such_value",
        values={"field": name, "text": value, "known": shown},
    )
