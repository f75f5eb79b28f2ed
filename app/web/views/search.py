"""The search page: entries like a description, a question or a line of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from markupsafe import Markup

from app.render.escape import plain
from app.render.listing import hit_snippet
from app.render.present import agreements, likenesses, search_notes
from app.web import navigation
from app.web.components import actions, cards, filters, markup
from app.web.components.filters import MAX_QUERY, MOST, PAGE, ListQuery
from app.web.components.markup import html
from app.web.context import interface_words, service
from app.web.views.diagnose import PASTE, RUN
from kb.knowledge.facets import NO_DAY, day_number
from kb.knowledge.labels import Words
from kb.text.flat_log import log_in
from kb.types.entries import NO_FILTERS, Entry, Hit, SearchResult

NAME = "search"
SUGGESTED = "suggested"  # key of the list of what can be asked for
STRONG = 0.6  # likeness that deserves a second look, by its colour


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntries:
    """What there is to show: hits of a question, or all entries that pass without one."""

    result: SearchResult | None
    entries: Mapping[str, Entry]
    total: int
    counts: filters.Counts


def page() -> None:
    """Show the page."""
    words = interface_words()
    markup.show(markup.heading(words("page.search"), level=1))
    query = filters.current_query(NAME)
    st.text_input(
        words("page.search_label"),
        key=filters.key(NAME, "q"),
        placeholder=words("page.search_example"),
        max_chars=MAX_QUERY,
    )
    st.selectbox(
        words("page.suggest"),
        suggestions(words),
        index=None,
        key=filters.key(NAME, SUGGESTED),
        placeholder=words("page.suggest_hint"),
        label_visibility="collapsed",
        on_change=_take_suggestion,
    )
    filters.show_unknown(NAME, words)
    _offer_diagnosis(query.text, words)
    listed = find_entries(query)
    filters.show_filters(NAME, query, listed.counts, words)
    _hidden(query, listed, words)
    if listed.result is not None and listed.result.hits:
        st.segmented_control(
            words("page.order"),
            filters.ORDERS,
            format_func=lambda order: words(f"order.{order}"),
            key=filters.key(NAME, "order"),
            label_visibility="collapsed",
        )
    if listed.result is None:
        _listing(query, listed, words)
    else:
        _hits(listed.result, listed, query.order, words)
    if len(listed.entries) < listed.total and query.shown < MOST:
        st.button(words("page.more"), on_click=_more, args=(query,))
    filters.write_address(NAME, query)


def suggestions(words: Words) -> list[str]:
    """What can be asked for: operations, settings, causes and titles of cases, each once."""
    knowledge = service().knowledge
    language = words.language
    names = [*service().store.facets().get("op", {}), *(item.id for item in knowledge.advice)]
    titles = [cause.title.get(language) for cause in knowledge.causes]
    titles += [case.title.get(language) for case in knowledge.cases]
    return list(dict.fromkeys(map(plain, [*names, *titles])))


def _take_suggestion() -> None:
    """Ask for what was chosen, and empty the list's box."""
    state, suggested = st.session_state, filters.key(NAME, SUGGESTED)
    state[filters.key(NAME, "q")] = state[suggested] or ""
    state[suggested] = None


def _offer_diagnosis(text: str, words: Words) -> None:
    """Where a log was pasted, a button that has it diagnosed."""
    log = log_in(text) if text else ""
    if not log:
        return
    markup.show(markup.faint(words("page.looks_like_log")))
    if st.button(words("page.diagnose_it"), key="diagnose_question", type="primary"):
        st.session_state[PASTE] = log
        actions.request(RUN, (log, [], ""))
        st.switch_page(navigation.page("", words))


def find_entries(query: ListQuery) -> ListedEntries:
    """One question to the service."""
    here = service()
    if query.text:
        language = interface_words().language
        result = here.search(
            query.text, filters=query.filters, limit=query.shown, language=language
        )
        total = sum(result.facets.get("kind", {}).values())
        return ListedEntries(
            result=result, entries=here.entries_of(result), total=total, counts=result.facets
        )
    counts = here.store.facets(query.filters)
    entries = here.entries(filters=query.filters, limit=query.shown)
    return ListedEntries(
        result=None,
        entries={entry.id: entry for entry in entries},
        total=sum(counts.get("kind", {}).values()),
        counts=counts,
    )


def _hidden(query: ListQuery, listed: ListedEntries, words: Words) -> None:
    """How many entries the filters hide, and the nearest one where it is among them."""
    if query.filters == NO_FILTERS:
        return
    here = service()
    total = sum(here.store.facets().get("kind", {}).values())
    text = words("page.hidden", hidden=total - listed.total, total=total)
    hits = here.search(query.text, limit=1).hits if query.text else ()
    if hits and hits[0].entry_id not in listed.entries:
        title, score = hits[0].title.get(words.language), f"{hits[0].score:.2f}"
        text = f"{text} {words('page.hidden_hit', title=title, score=score)}"
    markup.show(markup.faint(text))


def _more(query: ListQuery) -> None:
    st.session_state[filters.key(NAME, "shown")] = min(query.shown + PAGE, MOST)


def _listing(query: ListQuery, listed: ListedEntries, words: Words) -> None:
    if not listed.total:
        markup.show(markup.note(words("page.none")))
        return
    text = words("page.listed", shown=len(listed.entries), total=listed.total)
    markup.show(markup.faint(text))
    markup.show(markup.join(cards.entry_card(entry, words) for entry in listed.entries.values()))


def ordered(hits: Sequence[Hit], entries: Mapping[str, Entry], order: str) -> list[Hit]:
    """The hits by likeness as they are, or the newest first; those without a date come last."""
    if order == filters.LIKENESS:
        return list(hits)

    def day(hit: Hit) -> int:
        entry = entries.get(hit.entry_id)
        return day_number(entry.date) if entry else NO_DAY

    return sorted(hits, key=day, reverse=True)


def _hits(result: SearchResult, listed: ListedEntries, order: str, words: Words) -> None:
    markup.show(markup.join(cards.note_card(hit.note, words) for hit in result.notes))
    for text in search_notes(result, words):
        markup.show(markup.note(text))
    if not result.hits:
        text = words("page.none") if not listed.total else words("word.no_match")
        markup.show(markup.note(text))
        return
    if not result.similar_enough:
        markup.show(markup.note(words("word.closest"), "possible"))
    text = words("page.found", shown=len(result.hits), total=listed.total, ms=round(result.took_ms))
    markup.show(markup.faint(text))
    hits = ordered(result.hits, listed.entries, order)
    markup.show(markup.join(hit_card(hit, listed.entries.get(hit.entry_id), words) for hit in hits))


def hit_card(hit: Hit, entry: Entry | None, words: Words) -> Markup:
    """A hit: title, how alike, where from, why, the piece that matched."""
    why = likenesses(hit.why)
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{title}</h3>{meta}'
        '<p><span class="tk-badge tk-{tone}">{score}</span> {why}</p>'
        '<p class="tk-faint">{agreements}</p>'
        '<p class="tk-faint">{snippet}</p></article>',
        title=cards.entry_link(hit.entry_id, hit.title.get(words.language)),
        meta=cards.entry_line(
            words,
            kind=hit.kind,
            status=hit.status,
            project=hit.project,
            cause=hit.cause,
            date=entry.date if entry else "",
            url=hit.url,
        ),
        tone="likely" if hit.score >= STRONG else "quiet",
        score=words("page.score", score=f"{hit.score:.2f}"),
        why=words("word.why", what=words.listing(why)) if why else "",
        agreements=" · ".join(agreements(hit.why, words)),
        snippet=cards.inline(hit_snippet(hit)),
    )
