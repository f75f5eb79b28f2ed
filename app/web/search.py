"""The search page: entries like a description, a question or a line of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
from markupsafe import Markup

from app.labels import Words
from app.listing import hit_snippet
from app.present import likenesses
from app.web import cards, filters, markup
from app.web.asked import MAX_QUERY, MOST, PAGE, Asked
from app.web.markup import html
from app.web.parts import service, words
from kb.types import Entry, Hit, SearchResult

NAME = "search"
STRONG = 0.6  # likeness that deserves a second look, by its colour


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is to show: hits of a question, or all entries that pass where none was asked."""

    result: SearchResult | None
    entries: Mapping[str, Entry]
    total: int
    counts: filters.Counts


def page() -> None:
    """Show the page."""
    spoken = words()
    markup.show(markup.heading(spoken("page.search"), level=1))
    asked = filters.take(NAME)
    st.text_input(
        spoken("page.search_label"),
        key=filters.key(NAME, "q"),
        placeholder=spoken("page.search_example"),
        max_chars=MAX_QUERY,
    )
    found = find(asked)
    filters.show(NAME, asked, found.counts, spoken)
    if found.result is None:
        _listing(asked, found, spoken)
    else:
        _hits(found.result, found, spoken)
    shown = len(found.entries)
    if shown < found.total and asked.shown < MOST:
        st.button(spoken("page.more"), on_click=_more, args=(asked,))
    filters.keep(NAME, asked)


def find(asked: Asked) -> Found:
    """One question to the service."""
    here = service()
    if asked.query:
        result = here.search(asked.query, filters=asked.filters, limit=asked.shown)
        total = sum(result.facets.get("kind", {}).values())
        return Found(
            result=result, entries=here.entries_of(result), total=total, counts=result.facets
        )
    counts = here.store.facets(asked.filters)
    listed = here.entries(filters=asked.filters, limit=asked.shown)
    return Found(
        result=None,
        entries={entry.id: entry for entry in listed},
        total=sum(counts.get("kind", {}).values()),
        counts=counts,
    )


def _more(asked: Asked) -> None:
    st.session_state[filters.key(NAME, "shown")] = min(asked.shown + PAGE, MOST)


def _listing(asked: Asked, found: Found, spoken: Words) -> None:
    if not found.total:
        markup.show(html('<div class="tk-note tk-quiet">{text}</div>', text=spoken("page.none")))
        return
    text = spoken("page.listed", shown=len(found.entries), total=found.total)
    markup.show(html('<p class="tk-faint">{text}</p>', text=text))
    markup.show(markup.join(cards.entry_card(entry, spoken) for entry in found.entries.values()))


def _hits(result: SearchResult, found: Found, spoken: Words) -> None:
    if not result.hits:
        text = spoken("page.none") if not found.total else spoken("word.no_match")
        markup.show(html('<div class="tk-note tk-quiet" role="status">{text}</div>', text=text))
        return
    if not result.similar_enough:
        markup.show(
            html(
                '<div class="tk-note tk-possible" role="status">{text}</div>',
                text=spoken("word.closest"),
            )
        )
    text = spoken("page.found", shown=len(result.hits), total=found.total, ms=round(result.took_ms))
    markup.show(html('<p class="tk-faint">{text}</p>', text=text))
    markup.show(
        markup.join(hit_card(hit, found.entries.get(hit.entry_id), spoken) for hit in result.hits)
    )


def hit_card(hit: Hit, entry: Entry | None, spoken: Words) -> Markup:
    """A hit: title, how alike, where from, why, the piece that matched."""
    why = likenesses(hit.why)
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{title}</h3>{meta}'
        '<p><span class="tk-badge tk-{tone}">{score}</span> {why}</p>'
        '<p class="tk-faint">{snippet}</p></article>',
        title=cards.entry_link(hit.entry_id, hit.title.get(spoken.language)),
        meta=cards.meta(
            spoken,
            kind=hit.kind,
            status=hit.status,
            project=hit.project,
            cause=hit.cause,
            date=entry.date if entry else "",
            url=hit.url,
        ),
        tone="likely" if hit.score >= STRONG else "quiet",
        score=spoken("page.score", score=f"{hit.score:.2f}"),
        why=spoken("word.why", what=spoken.listing(why)) if why else "",
        snippet=cards.inline(hit_snippet(hit)),
    )
