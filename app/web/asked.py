"""What a list was asked for, as the address bar has it: question, filters, how much of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.labels import Words
from app.quoting import plain
from kb.store import FACETS, NO_FILTERS
from kb.types import Cause, Filters

PAGE = 10  # entries shown at first, and more each time
MOST = 200  # entries shown at most; a narrower question serves better
LAST_PAGE = 100_000  # far behind the entries one machine holds
MAX_QUERY = 10_000  # characters; longer text is a log and belongs on the diagnose page
MAX_VALUES = 50  # values one filter takes out of an address
MAX_VALUE = 200  # characters of such a value
DIGITS = 7  # of a number in an address
FIELDS = {
    "cause": "causes",
    "framework": "frameworks",
    "backend": "backends",
    "op": "ops",
    "stage": "stages",
    "hardware": "hardware",
    "language": "languages",
    "kind": "kinds",
    "status": "statuses",
    "project": "projects",
}
"""Name of a facet in the address → field of the filters, in the order people look for them."""
FACET_LABELS = {
    "cause": "row.cause",
    "framework": "page.framework",
    "backend": "page.backend",
    "op": "page.op",
    "stage": "page.stage",
    "hardware": "page.hardware",
    "language": "page.text_language",
    "kind": "page.kind",
    "status": "row.status",
    "project": "row.project",
}
SHOWN_FACETS = tuple(name for name in FIELDS if name in FACETS)
VOCABULARIES = {"stage": "stage", "kind": "kind", "status": "claim"}
"""Facets whose values have labels → the group of these."""
LANGUAGES = {"zh": "page.chinese", "en": "page.english"}
ADDRESS_NAMES = ("q", "n", "p", *SHOWN_FACETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with its filters; wanted are the first `shown` entries, or page `page` from 1."""

    query: str = ""
    filters: Filters = NO_FILTERS
    shown: int = PAGE
    page: int = 1


def read_asked(parameters: Mapping[str, Sequence[str]]) -> Asked:
    """What an address asks for; what it cannot mean is passed over, for anyone may have written it.

    Args:
        parameters: the values of every name of `ADDRESS_NAMES` that is there.
    """
    filters = {
        FIELDS[name]: tuple(
            dict.fromkeys(
                value.strip()
                for value in parameters.get(name, ())[:MAX_VALUES]
                if value.strip() and len(value) <= MAX_VALUE
            )
        )
        for name in SHOWN_FACETS
    }
    return Asked(
        query="".join(parameters.get("q", ())[:1]).strip()[:MAX_QUERY],
        filters=Filters(**filters),  # type: ignore[arg-type]
        shown=_number(parameters.get("n", ()), PAGE, MOST),
        page=_number(parameters.get("p", ()), 1, LAST_PAGE),
    )


def _number(values: Sequence[str], otherwise: int, most: int) -> int:
    """The first value that is a number from 1 to `most`."""
    for value in values:
        if value.isascii() and value.isdigit() and len(value) <= DIGITS and int(value) > 0:
            return min(int(value), most)
    return otherwise


def write_asked(asked: Asked) -> dict[str, list[str]]:
    """The address of a question: `read_asked` gives the same question back."""
    parameters = {"q": [asked.query]} if asked.query else {}
    for name in SHOWN_FACETS:
        values = chosen(asked.filters, name)
        if values:
            parameters[name] = list(values)
    if asked.shown != PAGE:
        parameters["n"] = [str(asked.shown)]
    if asked.page != 1:
        parameters["p"] = [str(asked.page)]
    return parameters


def chosen(filters: Filters, name: str) -> tuple[str, ...]:
    """The values a filter has of a facet."""
    values: tuple[str, ...] = getattr(filters, FIELDS[name])
    return values


def with_chosen(filters: Filters, name: str, values: Sequence[str]) -> Filters:
    """The filters with other values of one facet."""
    changed: dict[str, tuple[str, ...]] = {FIELDS[name]: tuple(values)}
    return replace(filters, **changed)  # type: ignore[arg-type]


def offered(counts: Mapping[str, int], selected: Sequence[str]) -> dict[str, int]:
    """The values a facet offers with their counts, and those selected though nothing has them."""
    known = {value.casefold() for value in counts}
    return {**counts, **{value: 0 for value in selected if value.casefold() not in known}}


def as_offered(selected: Sequence[str], values: Mapping[str, int]) -> list[str]:
    """The selected values in the spelling they are offered in, each once."""
    spelling = {value.casefold(): value for value in values}
    return list(dict.fromkeys(spelling.get(value.casefold(), value) for value in selected))


def spoken(name: str, value: str, causes: Mapping[str, Cause], words: Words) -> str:
    """A value of a facet as people say it."""
    if name == "cause" and value in causes:
        return plain(causes[value].title.get(words.language))
    if name == "language" and value in LANGUAGES:
        return words(LANGUAGES[value])
    if name in VOCABULARIES:
        return plain(words.term(VOCABULARIES[name], value))
    return plain(value)
