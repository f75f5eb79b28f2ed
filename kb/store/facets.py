"""What entries are filtered and counted by: one definition for SQL, arrays and the word index."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kb.errors import InputError
from kb.hardware import hardware_id
from kb.types import Entry, Filters

NO_FILTERS = Filters()
NO_DAY = 0  # day number of an entry without a date; no date filter lets it pass
LAST_DAY = 9999_99_99
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?:[T ].*)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A property of entries: its name, its values on an entry, what a filter asks of it."""

    name: str
    values: Callable[[Entry], tuple[str, ...]]
    wanted: Callable[[Filters], tuple[str, ...]]


def _causes(entry: Entry) -> tuple[str, ...]:
    return tuple(claim.id for claim in entry.causes if claim.status != "contradicted")


def _languages(entry: Entry) -> tuple[str, ...]:
    return ("zh", "en") if entry.language == "both" else (entry.language,)


_ALL = (
    Facet(name="cause", values=_causes, wanted=lambda filters: filters.causes),
    Facet(
        name="framework",
        values=lambda entry: entry.tags.frameworks,
        wanted=lambda filters: filters.frameworks,
    ),
    Facet(
        name="backend",
        values=lambda entry: (entry.tags.backend,),
        wanted=lambda filters: filters.backends,
    ),
    Facet(name="op", values=lambda entry: entry.tags.ops, wanted=lambda filters: filters.ops),
    Facet(
        name="stage",
        values=lambda entry: (entry.tags.stage,),
        wanted=lambda filters: filters.stages,
    ),
    Facet(name="language", values=_languages, wanted=lambda filters: filters.languages),
    Facet(name="kind", values=lambda entry: (entry.kind,), wanted=lambda filters: filters.kinds),
    Facet(
        name="status",
        values=lambda entry: (entry.status,),
        wanted=lambda filters: filters.statuses,
    ),
    Facet(
        name="project",
        values=lambda entry: (entry.project,),
        wanted=lambda filters: filters.projects,
    ),
    Facet(
        name="hardware",
        values=lambda entry: entry.tags.hardware,
        wanted=lambda filters: tuple(map(hardware_id, filters.hardware)),
    ),
)
FACETS: dict[str, Facet] = {facet.name: facet for facet in _ALL}


def fold(value: str) -> str:
    """The form two spellings of a value share: filters do not mind the case."""
    return value.strip().casefold()


def entry_values(entry: Entry) -> list[tuple[str, str]]:
    """(facet, value) pairs of an entry as printed, each folded value once, empty ones left out."""
    pairs: dict[tuple[str, str], str] = {}
    for facet in _ALL:
        for value in facet.values(entry):
            if fold(value):
                pairs.setdefault((facet.name, fold(value)), value.strip())
    return [(name, value) for (name, _), value in pairs.items()]


def wanted_values(filters: Filters) -> list[tuple[str, tuple[str, ...]]]:
    """(facet, folded values) for every facet the filter names; an entry needs one value of each."""
    wanted = ((facet.name, tuple(map(fold, facet.wanted(filters)))) for facet in _ALL)
    return [(name, values) for name, values in wanted if values]


def day_number(date: str) -> int:
    """Sortable number of a date: year, month and day digits, zeros where the date stops.

    ``2024-06`` gives 20240600, an empty or unreadable date `NO_DAY`.
    """
    match = _DATE.match(date.strip())
    if match is None:
        return NO_DAY
    year, month, day = (int(part or 0) for part in match.groups())
    return year * 10_000 + month * 100 + day


def day_range(filters: Filters) -> tuple[int, int] | None:
    """First and last day number that pass, both included; None when the filter names no date.

    Raises:
        InputError: a date is not YYYY, YYYY-MM or YYYY-MM-DD.
    """
    if not (filters.since or filters.until):
        return None
    for name, text in (("since", filters.since), ("until", filters.until)):
        if text and day_number(text) == NO_DAY:
            raise InputError(
                f"{name}={text!r} is not a date",
                todo="write it as YYYY-MM-DD",
                reason="no_date",
                values={"field": name, "text": text},
            )
    first = day_number(filters.since) if filters.since else NO_DAY + 1
    last = day_number(filters.until) if filters.until else LAST_DAY
    # a year or month as the end means all of it
    if last % 10_000 == 0:
        last += 99_99
    elif last % 100 == 0:
        last += 99
    return first, last


def no_filter(filters: Filters) -> bool:
    """Whether every entry passes."""
    return filters == NO_FILTERS
