"""The query of a list: text, filters and how much of it, in its widgets and in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from app.render.escape import plain
from app.web.components import markup
from app.web.context import LANG, LANGUAGE, service
from kb.knowledge.facets import FACETS, filters_of, fold
from kb.knowledge.labels import Words
from kb.types.entries import NO_FILTERS, Filters
from kb.types.knowledge import Cause

PAGE = 10  # entries shown at first, and more each time
MOST = 200  # entries shown at most; a narrower question serves better
LAST_PAGE = 100_000  # far behind the entries one machine holds
MAX_QUERY = 10_000  # characters; longer text is a log and belongs on the diagnose page
MAX_VALUES = 50  # values one filter takes out of an address
MAX_VALUE = 200  # characters of such a value
DIGITS = 7  # of a number in an address
LANGUAGES = {"zh": "page.chinese", "en": "page.english"}
ADDRESS_NAMES = ("q", "n", "p", "o", *FACETS)
LIKENESS, NEWEST = "likeness", "newest"  # orders of what was found
ORDERS = (LIKENESS, NEWEST)
COLUMNS = 3
Counts = Mapping[str, Mapping[str, int]]
"""Facet → value → number of entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """A question with its filters; wanted are the first `shown` entries, or page `page` from 1.

    `order` is one of `ORDERS`: of the entries that are shown.
    """

    text: str = ""
    filters: Filters = NO_FILTERS
    shown: int = PAGE
    page: int = 1
    order: str = LIKENESS


def parse_address(parameters: Mapping[str, Sequence[str]]) -> ListQuery:
    """What an address asks for; what it cannot mean is passed over, for anyone may have written it.

    Args:
        parameters: the values of every name of `ADDRESS_NAMES` that is there.
    """
    requested = {
        name: list(
            dict.fromkeys(
                value.strip()
                for value in parameters.get(name, ())[:MAX_VALUES]
                if value.strip() and len(value) <= MAX_VALUE
            )
        )
        for name in FACETS
    }
    return ListQuery(
        text="".join(parameters.get("q", ())[:1]).strip()[:MAX_QUERY],
        filters=filters_of(requested),
        shown=_number(parameters.get("n", ()), PAGE, MOST),
        page=_number(parameters.get("p", ()), 1, LAST_PAGE),
        order=NEWEST if NEWEST in parameters.get("o", ()) else LIKENESS,
    )


def _number(values: Sequence[str], otherwise: int, most: int) -> int:
    """The first value that is a number from 1 to `most`."""
    for value in values:
        if value.isascii() and value.isdigit() and len(value) <= DIGITS and int(value) > 0:
            return min(int(value), most)
    return otherwise


def address_of(query: ListQuery) -> dict[str, list[str]]:
    """The address of a question: `parse_address` gives the same question back."""
    parameters = {"q": [query.text]} if query.text else {}
    for name, facet in FACETS.items():
        if facet.requested(query.filters):
            parameters[name] = list(facet.requested(query.filters))
    if query.shown != PAGE:
        parameters["n"] = [str(query.shown)]
    if query.page != 1:
        parameters["p"] = [str(query.page)]
    if query.order != LIKENESS:
        parameters["o"] = [query.order]
    return parameters


def with_values(filters: Filters, name: str, values: Sequence[str]) -> Filters:
    """The filters with other values of one facet."""
    changed: dict[str, tuple[str, ...]] = {FACETS[name].field: tuple(values)}
    return replace(filters, **changed)  # type: ignore[arg-type]


def offered_values(counts: Mapping[str, int], selected: Sequence[str]) -> dict[str, int]:
    """The values a facet offers with their counts, and those selected though nothing has them."""
    known = {value.casefold() for value in counts}
    return {**counts, **{value: 0 for value in selected if value.casefold() not in known}}


def spelt_as_offered(selected: Sequence[str], values: Mapping[str, int]) -> list[str]:
    """The selected values in the spelling they are offered_values in, each once."""
    spelling = {value.casefold(): value for value in values}
    return list(dict.fromkeys(spelling.get(value.casefold(), value) for value in selected))


def facet_value_text(name: str, value: str, causes: Mapping[str, Cause], words: Words) -> str:
    """A value of a facet as people say it."""
    if name == "cause" and value in causes:
        return plain(causes[value].title.get(words.language))
    if name == "language" and value in LANGUAGES:
        return words(LANGUAGES[value])
    vocabulary = FACETS[name].vocabulary
    return plain(words.term(vocabulary, value) if vocabulary else value)


# --- widgets ------------------------------------------------------------------------------------


def key(page: str, name: str) -> str:
    """Where the session keeps what a widget of a page holds."""
    return f"{page}.{name}"


def current_query(page: str) -> ListQuery:
    """What is asked for: the address where somebody followed a link, else the widgets.

    The address last written is kept, so one that differs from it came from outside. Another
    question or other filters begin with the first entries again.
    """
    state, seen = st.session_state, key(page, "address")
    address = _address()
    if state.get(seen) != address or key(page, "q") not in state:
        query, state[key(page, "unknown")] = without_unknown(parse_address(address))
        _put(page, query)
        return query
    before = parse_address(address)
    query = ListQuery(
        text=str(state[key(page, "q")] or "").strip(),
        filters=_filters(page),
        shown=state[key(page, "shown")],
        page=state.get(key(page, "page"), before.page),
        order=state.get(key(page, "order")) or LIKENESS,
    )
    if (query.text, query.filters) != (before.text, before.filters):
        query = replace(query, shown=PAGE, page=1)
        state[key(page, "shown")], state[key(page, "page")] = PAGE, 1
        state[key(page, "unknown")] = ()
    return query


def without_unknown(query: ListQuery) -> tuple[ListQuery, tuple[tuple[str, str], ...]]:
    """The question without values that no entry could have, and these: facet and value."""
    if query.filters == NO_FILTERS:
        return query, ()
    here = service()
    counts, labels, filters = here.store.facets(), here.knowledge.labels, query.filters
    unknown: list[tuple[str, str]] = []
    for name, facet in FACETS.items():
        values = {fold(value) for value in counts.get(name, {})}
        if name == "cause":
            values |= set(here.knowledge.cause_by_id)
        wrong = [
            value
            for value in facet.requested(filters)
            if fold(facet.spelling(value)) not in values
            and f"{facet.vocabulary}.{fold(value)}" not in labels
        ]
        known = [value for value in facet.requested(filters) if value not in wrong]
        filters = with_values(filters, name, known)
        unknown += [(name, value) for value in wrong]
    return replace(query, filters=filters), tuple(unknown)


def show_unknown(page: str, words: Words) -> None:
    """Name the values of the address that filter nothing, since there is no such value."""
    for name, value in st.session_state.get(key(page, "unknown"), ()):
        label = words(FACETS[name].label)
        text = words("page.no_value_of", label=label, value=plain(value))
        markup.show(markup.note(text, "possible", role="alert"))


def _address() -> dict[str, list[str]]:
    values = {name: list(st.query_params.get_all(name)) for name in ADDRESS_NAMES}
    return {name: value for name, value in values.items() if value}


def _put(page: str, query: ListQuery) -> None:
    state = st.session_state
    state[key(page, "q")] = query.text
    state[key(page, "shown")], state[key(page, "page")] = query.shown, query.page
    state[key(page, "order")] = query.order
    for name, facet in FACETS.items():
        state[key(page, name)] = list(facet.requested(query.filters))


def _filters(page: str) -> Filters:
    filters = Filters()
    for name in FACETS:
        filters = with_values(filters, name, st.session_state.get(key(page, name), ()))
    return filters


def write_address(page: str, query: ListQuery) -> None:
    """Write the question to the address bar, so that it can be sent to somebody."""
    address = address_of(query)
    if address != _address():
        lang = st.session_state.get(LANGUAGE) or st.query_params.get(LANG)
        st.query_params.from_dict({**({LANG: lang} if lang else {}), **address})
    st.session_state[key(page, "address")] = address


def counts_for(filters: Filters, counted: Counts) -> dict[str, dict[str, int]]:
    """How many entries each value of each facet would leave.

    Args:
        filters: those chosen.
        counted: counts of the entries that pass all of them. For a facet with chosen values they
            would not tell what another value adds, so that facet is counted without its own.
    """
    store = service().store
    return {
        name: store.facets(with_values(filters, name, ())).get(name, {})
        if facet.requested(filters)
        else dict(counted.get(name, {}))
        for name, facet in FACETS.items()
    }


def show_filters(page: str, query: ListQuery, counted: Counts, words: Words) -> None:
    """The widgets, folded away until a filter is set."""
    active = sum(len(facet.requested(query.filters)) for facet in FACETS.values())
    label = words("page.filters_active", count=active) if active else words("page.filters")
    counts = counts_for(query.filters, counted)
    causes = service().knowledge.cause_by_id
    with st.expander(label, expanded=bool(active)):
        for at, (name, facet) in enumerate(FACETS.items()):
            if at % COLUMNS == 0:  # row by row: a narrow screen keeps the order
                columns = st.columns(COLUMNS)
            selected = facet.requested(query.filters)
            values = offered_values(counts[name], selected)
            st.session_state[key(page, name)] = spelt_as_offered(selected, values)
            columns[at % COLUMNS].multiselect(
                words(facet.label),
                list(values),
                format_func=partial(_option, name, values, causes, words),
                key=key(page, name),
                placeholder=words("page.any"),
                select_all=False,  # chooses nothing that an empty filter does not
            )
        if active:
            st.button(words("page.clear_filters"), on_click=_clear, args=(page,))


def _option(
    name: str, values: Mapping[str, int], causes: Mapping[str, Cause], words: Words, value: str
) -> str:
    return f"{facet_value_text(name, value, causes, words)} ({values.get(value, 0)})"


def _clear(page: str) -> None:
    for name in FACETS:
        st.session_state[key(page, name)] = []
