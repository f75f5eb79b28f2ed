"""The cases page: all entries by filters, page by page, and everything of one of them."""

from __future__ import annotations

from functools import partial

import streamlit as st
from markupsafe import Markup

from app.inputs.contributions import RESTORABLE_DAYS, is_restorable, merge, restore
from app.render.escape import plain
from app.render.listing import entry_rows, shown_sections, source_links
from app.web.components import actions, cards, filters, markup, outcome_form
from app.web.components.actions import Notice
from app.web.components.filters import LANGUAGES, ListQuery
from app.web.components.markup import html
from app.web.context import interface_words, parameter, service
from kb.diagnose.rendering import answer_fix
from kb.errors import NotFoundError
from kb.knowledge.labels import Words
from kb.types.entries import Entry

NAME = "cases"
ENTRIES = 25  # a page
DELETE = "delete_entry"  # the buttons on the page of an entry
RESOLVE = "resolve_entry"
MERGE, MERGED = "merge_entry", "merge"  # the button, and the field of those to be merged
RESTORE = "restore_entry"
DELETED = "deleted_entry"  # in the session: the id of the entry deleted last


def page() -> None:
    """Show one entry where the address names one, else the list."""
    words, identifier = interface_words(), parameter("id")
    if not identifier:
        _list(words)
        return
    try:
        entry = service().entry(identifier)
    except NotFoundError:
        _show_missing(identifier, words)
        return
    show_entry(entry, words)


# --- the list ----------------------------------------------------------------------------------


def _list(words: Words) -> None:
    markup.show(markup.heading(words("page.cases"), level=1))
    actions.show_notice(DELETE, words)
    if identifier := str(st.session_state.get(DELETED) or ""):
        _offer_restoring(identifier, words)
    query = filters.current_query(NAME)
    st.session_state[filters.key(NAME, "q")] = ""
    filters.show_unknown(NAME, words)
    counts = service().store.facets(query.filters)
    total = sum(counts.get("kind", {}).values())
    at = min(query.page, pages(total))
    filters.show_filters(NAME, query, counts, words)
    entries = service().entries(filters=query.filters, limit=ENTRIES, offset=(at - 1) * ENTRIES)
    if not entries:
        markup.show(markup.note(words("page.none")))
    else:
        first = (at - 1) * ENTRIES + 1
        last = first + len(entries) - 1
        markup.show(markup.faint(words("page.span", first=first, last=last, total=total)))
        markup.show(markup.join(cards.entry_card(entry, words) for entry in entries))
    _page_buttons(at, pages(total), words)
    filters.write_address(NAME, ListQuery(filters=query.filters, page=at))


def pages(total: int) -> int:
    """How many pages that many entries take; an empty list is one page."""
    return max(1, -(-total // ENTRIES))


def _page_buttons(at: int, last: int, words: Words) -> None:
    """The pages before and after, in words: Streamlit's own arrows are named in English only."""
    if last == 1:
        return
    buttons = (("cases_previous", "page.previous", at - 1), ("cases_next", "page.next", at + 1))
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, label, number in buttons:
            turn, possible = partial(_open_page, number), 1 <= number <= last
            st.button(words(label), key=name, disabled=not possible, on_click=turn)
        markup.show(markup.paragraph(words("page.of_pages", page=at, pages=last)))


def _open_page(number: int) -> None:
    st.session_state[filters.key(NAME, "page")] = number


# --- one entry ---------------------------------------------------------------------------------


def _back(words: Words) -> Markup:
    return cards.page_link(words("page.back_to_cases"), NAME)


def show_entry(entry: Entry, words: Words) -> None:
    """Everything a reader may want of an entry, in the language of the page where it has it."""
    st.session_state.pop(DELETED, None)
    actions.show_notice(RESTORE, words)
    markup.show(markup.paragraph(_back(words)))
    markup.show(
        html(
            "{title}<p>{badges}</p>",
            title=markup.heading(entry.title.get(words.language), level=1),
            badges=_badges(entry, words),
        )
    )
    markup.show(markup.pairs(rows(entry, words)))
    if entry.kind == "incident":
        _offer_outcome(entry, words)
        _offer_merging(entry, words)
    sections = shown_sections(entry, words.language)
    if sections and all(section.language != words.language for section in sections):
        note = words("page.other_language", language=words(LANGUAGES[sections[0].language]))
        markup.show(markup.note(note))
    for section in sections:
        cards.show_text(section.title, section.text)
    cards.show_fixes([answer_fix(fix, words) for fix in entry.fixes], words)
    markup.show(markup.section(words("heading.claims"), cards.claims(entry.claims, words)))
    handed_in = [section for section in entry.sections if section.role == "input"]
    if handed_in:
        with st.expander(words("page.handed_in")):
            for section in handed_in:
                cards.show_command(section.text)
    if entry.signature:
        markup.show(markup.heading(words("heading.signature")))
        cards.show_command("\n".join(entry.signature))
    _sources(entry, words)
    if entry.kind != "case":  # reviewed cases change in their files
        _offer_deletion(entry.id, words)


def _offer_outcome(entry: Entry, words: Words) -> None:
    """The form that resolves the incident, or corrects its cause and fix."""
    from app.inputs.contributions import outcome_of

    label = "page.correct_outcome" if entry.resolved else "page.write_outcome"
    unfolded = not entry.resolved or actions.has_notice(RESOLVE)
    if outcome_form.FIX + entry.id not in st.session_state:
        outcome_form.fill(outcome_of(entry), entry.id)
    with st.expander(words(label), expanded=unfolded):
        outcome_form.show_form(
            words,
            words("page.resolve"),
            lambda: outcome_form.save(entry.id, outcome_form.outcome(entry.id)),
            key=RESOLVE,
            suffix=entry.id,
            first=[claim.id for claim in entry.causes],
        )


def _offer_merging(entry: Entry, words: Words) -> None:
    """The form that merges others into this incident, those of the same failure first."""
    records = {record.id: record for record in service().incidents()}
    own = records.pop(entry.id, None)
    if own is None or not records:
        actions.show_notice(MERGE, words)  # the last of the others was merged
        return
    alike = sorted(records.values(), key=lambda each: each.signature != own.signature)
    key = f"{MERGED}_{entry.id}"
    with (
        st.expander(words("page.merge"), expanded=actions.has_notice(MERGE)),
        st.form(MERGE + "_form", border=False),
    ):
        markup.show(markup.paragraph(words("page.merge_help")))
        st.multiselect(
            words("page.merge_which"),
            [record.id for record in alike],
            format_func=lambda i: plain(
                f"{records[i].date} · {records[i].title.get(words.language)} · {i}"
            ),
            placeholder=words("page.merge_choose"),
            key=key,
        )
        act, submit = partial(_merge, entry.id, key), st.form_submit_button
        actions.button(words("page.merge_now"), act, key=MERGE, words=words, make=submit)


def _merge(identifier: str, key: str) -> Notice:
    others: list[str] = st.session_state.get(key) or []
    if not others:
        return Notice(tone="possible", label="page.say_merged")
    merge(service(), identifier, others)
    st.session_state[key] = []
    return Notice(tone="good", label="page.merged")


def _offer_deletion(identifier: str, words: Words) -> None:
    with st.expander(words("page.delete")):
        markup.show(markup.paragraph(words("page.delete_help", days=RESTORABLE_DAYS)))
        act = partial(_delete, identifier)
        actions.button(words("page.delete_now"), act, key=DELETE, words=words)


def _delete(identifier: str) -> Notice:
    """Delete the entry and leave its page; the list says so."""
    from app.inputs.contributions import delete

    delete(service(), identifier)
    st.session_state[DELETED] = identifier
    st.query_params.pop("id", None)
    return Notice(tone="good", label="page.deleted")


def _show_missing(identifier: str, words: Words) -> None:
    """Say that there is no such entry; one that was deleted may be restored."""
    if not is_restorable(service(), identifier):
        cards.show_missing(words("page.no_entry", id=plain(identifier)), _back(words))
        return
    cards.show_missing(words("page.was_deleted", id=plain(identifier)), _back(words))
    _offer_restoring(identifier, words)


def _offer_restoring(identifier: str, words: Words) -> None:
    act = partial(_restore, identifier)
    label = words("page.undo_delete", id=plain(identifier))
    actions.button(label, act, key=RESTORE, words=words)


def _restore(identifier: str) -> Notice:
    """Bring the entry back and go to its page."""
    st.query_params["id"] = restore(service(), identifier).id
    return Notice(tone="good", label="page.restored")


def _badges(entry: Entry, words: Words) -> Markup:
    badges = [markup.badge(words.term("kind", entry.kind)), cards.status_badge(entry.status)]
    if entry.kind == "incident":
        badges.append(
            markup.badge(words("page.was_resolved"), "good")
            if entry.resolved
            else markup.badge(words("page.not_resolved"), "possible")
        )
    return markup.join(badges, Markup(" "))


def rows(entry: Entry, words: Words) -> list[tuple[str, Markup | str]]:
    """What the entry is about, as `timeout-kb show` lists it, with causes and address as links."""
    linked: dict[str, Markup] = {
        "row.cause": markup.join(
            (
                markup.safe(entry.own_cause),
                *(
                    html(
                        "{cause} {standing} {source}",
                        cause=cards.cause_link(claim.id),
                        standing=cards.status_badge(claim.status),
                        source=cards.source_link(claim.source, words),
                    )
                    for claim in entry.causes
                ),
            ),
            markup.BREAK,
        ),
        "row.link": markup.link(entry.url, entry.url),
    }
    return [
        (words(name), linked.get(name, value))
        for name, value in entry_rows(entry, words)
        if name != "row.status"  # said by the badges
    ]


def _sources(entry: Entry, words: Words) -> None:
    confirms = {source.url: source.confirms for source in entry.sources}
    items = [
        html(
            "{link}<br><span class='tk-faint'>{confirms}</span>",
            link=markup.link(url, url),
            confirms=confirms[url],
        )
        for url in source_links([source.url for source in entry.sources])
    ]
    markup.show(markup.section(words("heading.sources"), markup.listed(items)))
