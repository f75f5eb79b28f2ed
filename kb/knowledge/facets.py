"""What entries are filtered and counted by: one list for SQL, arrays, word index and all faces.

API parameters, command-line options, the page's widgets and its address are made of it too, so a
facet more is one line here and a field of `Filters`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kb.errors import InputError
from kb.knowledge.hardware import hardware_id
from kb.types.entries import Entry, Filters

NO_DAY = 0  # day number of an entry without a date; no date filter lets it pass
LAST_DAY = 9999_99_99
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?(?:[T ].*)?\Z")


@dataclass(frozen=True, slots=True)
class Facet:
    """A property of entries, and how each face names it.

    Attributes:
        name: of the parameter, option, address part and count.
        field: of `Filters`.
        label: name of the label shown above its values.
        values: its values on an entry.
        vocabulary: group of the labels of its values; empty where a value is shown as it is.
        help: of the command-line option; empty where there is none.
        spelling: the spelling entries have, of what a filter asks for.
    """

    name: str
    field: str
    label: str
    values: Callable[[Entry], tuple[str, ...]]
    vocabulary: str = ""
    help: str = ""
    spelling: Callable[[str], str] = str

    def requested(self, filters: Filters) -> tuple[str, ...]:
        """The values a filter asks for, as written; none lets all entries pass."""
        values: tuple[str, ...] = getattr(filters, self.field)
        return values


def _causes(entry: Entry) -> tuple[str, ...]:
    return tuple(claim.id for claim in entry.causes if claim.status != "contradicted")


def _languages(entry: Entry) -> tuple[str, ...]:
    return ("zh", "en") if entry.language == "both" else (entry.language,)


# In the order people look for them.
_ALL = (
    Facet("cause", "causes", "row.cause", _causes, help="Only entries of this cause."),
    Facet(
        "framework",
        "frameworks",
        "page.framework",
        lambda entry: entry.tags.frameworks,
        help="Only this framework (fsdp, deepspeed, vllm, ...).",
    ),
    Facet(
        "backend",
        "backends",
        "page.backend",
        lambda entry: (entry.tags.backend,),
        help="Only this backend (nccl, gloo, hccl, rccl).",
    ),
    Facet("op", "ops", "page.op", lambda entry: entry.tags.ops, help="Only this collective."),
    Facet(
        "stage",
        "stages",
        "page.stage",
        lambda entry: (entry.tags.stage,),
        vocabulary="stage",
        help="Only this stage (init, train, eval, save, ...).",
    ),
    Facet(
        "hardware",
        "hardware",
        "page.hardware",
        lambda entry: entry.tags.hardware,
        help="Only this hardware (a100, h100, ascend, infiniband, ...).",
        spelling=hardware_id,
    ),
    Facet("language", "languages", "page.text_language", _languages),
    Facet(
        "kind",
        "kinds",
        "page.kind",
        lambda entry: (entry.kind,),
        vocabulary="kind",
        help="Only this kind (case, writeup, thread, incident).",
    ),
    Facet(
        "status",
        "statuses",
        "row.status",
        lambda entry: (entry.status,),
        vocabulary="claim",
        help="Only this standing (confirmed, reported, ...).",
    ),
    Facet(
        "project",
        "projects",
        "row.project",
        lambda entry: (entry.project,),
        help="Only this project.",
    ),
)
FACETS: dict[str, Facet] = {facet.name: facet for facet in _ALL}
PARAMETERS = {facet.field: facet.name for facet in _ALL} | {"exclude_ids": "exclude"}
"""Field of `Filters` → name of the parameter, where the two differ."""


def filters_of(
    requested: Mapping[str, Sequence[str]],
    *,
    since: str = "",
    until: str = "",
    exclude: Sequence[str] = (),
) -> Filters:
    """Filters that ask for the `requested` values by facet; the dates are as in `Filters`."""
    fields = {FACETS[name].field: tuple(values) for name, values in requested.items()}
    return Filters(since=since, until=until, exclude_ids=tuple(exclude), **fields)


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
    return [
        (facet.name, tuple(fold(facet.spelling(value)) for value in facet.requested(filters)))
        for facet in _ALL
        if facet.requested(filters)
    ]


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
