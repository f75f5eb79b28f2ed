"""The filters of a list of entries: their widgets, and the address that says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from app.labels import Words
from app.web.asked import (
    ADDRESS_NAMES,
    FACET_LABELS,
    PAGE,
    SHOWN_FACETS,
    Asked,
    as_offered,
    chosen,
    offered,
    read_asked,
    spoken,
    with_chosen,
    write_asked,
)
from app.web.parts import LANG, LANGUAGE, service
from kb.types import Filters

COLUMNS = 3
Counts = Mapping[str, Mapping[str, int]]
"""Facet → value → number of entries."""


def key(page: str, name: str) -> str:
    """Where the session keeps what a widget of a page holds."""
    return f"{page}.{name}"


def take(page: str) -> Asked:
    """What is asked for: the address where somebody followed a link, else the widgets.

    The address last written is kept, so one that differs from it came from outside. Another
    question or other filters begin with the first entries again.
    """
    state, seen = st.session_state, key(page, "address")
    address = _address()
    if state.get(seen) != address or key(page, "q") not in state:
        asked = read_asked(address)
        _put(page, asked)
        return asked
    before = read_asked(address)
    asked = Asked(
        query=str(state[key(page, "q")] or "").strip(),
        filters=_filters(page),
        shown=state[key(page, "shown")],
        page=state[key(page, "page")],
    )
    if (asked.query, asked.filters) != (before.query, before.filters):
        asked = replace(asked, shown=PAGE, page=1)
        state[key(page, "shown")], state[key(page, "page")] = PAGE, 1
    return asked


def _address() -> dict[str, list[str]]:
    values = {name: list(st.query_params.get_all(name)) for name in ADDRESS_NAMES}
    return {name: value for name, value in values.items() if value}


def _put(page: str, asked: Asked) -> None:
    state = st.session_state
    state[key(page, "q")] = asked.query
    state[key(page, "shown")], state[key(page, "page")] = asked.shown, asked.page
    for name in SHOWN_FACETS:
        state[key(page, name)] = list(chosen(asked.filters, name))


def _filters(page: str) -> Filters:
    filters = Filters()
    for name in SHOWN_FACETS:
        filters = with_chosen(filters, name, st.session_state.get(key(page, name), ()))
    return filters


def keep(page: str, asked: Asked) -> None:
    """Write the question to the address bar, so that it can be sent to somebody."""
    address = write_asked(asked)
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
        name: store.facets(with_chosen(filters, name, ())).get(name, {})
        if chosen(filters, name)
        else dict(counted.get(name, {}))
        for name in SHOWN_FACETS
    }


def show(page: str, asked: Asked, counted: Counts, words: Words) -> None:
    """The widgets, folded away until a filter is set."""
    active = sum(len(chosen(asked.filters, name)) for name in SHOWN_FACETS)
    label = words("page.filters_active", count=active) if active else words("page.filters")
    counts = counts_for(asked.filters, counted)
    causes = service().knowledge.cause_by_id
    with st.expander(label, expanded=bool(active)):
        for at, name in enumerate(SHOWN_FACETS):
            if at % COLUMNS == 0:  # row by row: a narrow screen keeps the order
                columns = st.columns(COLUMNS)
            values = offered(counts[name], chosen(asked.filters, name))
            st.session_state[key(page, name)] = as_offered(chosen(asked.filters, name), values)

            def said(value: str, name: str = name, values: Mapping[str, int] = values) -> str:
                return f"{spoken(name, value, causes, words)} ({values.get(value, 0)})"

            columns[at % COLUMNS].multiselect(
                words(FACET_LABELS[name]),
                list(values),
                format_func=said,
                key=key(page, name),
                placeholder=words("page.any"),
                select_all=False,  # chooses nothing that an empty filter does not
            )
        if active:
            st.button(words("page.clear_filters"), on_click=_clear, args=(page,))


def _clear(page: str) -> None:
    for name in SHOWN_FACETS:
        st.session_state[key(page, name)] = []
