"""The cases page: all entries by filters, page by page, and everything of one of them."""

from __future__ import annotations

from functools import partial

import streamlit as st
from markupsafe import Markup

from app.labels import Words
from app.listing import entry_rows, shown_sections, source_links
from app.quoting import plain
from app.web import cards, filters, markup, press
from app.web.asked import LANGUAGES, Asked
from app.web.markup import html
from app.web.parts import parameter, service, words
from app.web.press import Notice
from kb.errors import NotFoundError
from kb.types import Entry

NAME = "cases"
ENTRIES = 25  # a page
DELETE = "delete_entry"  # the button on the page of an entry


def page() -> None:
    """Show one entry where the address names one, else the list."""
    identifier = parameter("id")
    if not identifier:
        _list(words())
        return
    try:
        entry = service().entry(identifier)
    except NotFoundError:
        cards.not_there(words()("page.no_entry", id=plain(identifier)), _back(words()))
        return
    show_entry(entry, words())


# --- the list ----------------------------------------------------------------------------------


def _list(spoken: Words) -> None:
    markup.show(markup.heading(spoken("page.cases"), level=1))
    press.told(DELETE, spoken)
    asked = filters.take(NAME)
    st.session_state[filters.key(NAME, "q")] = ""
    counts = service().store.facets(asked.filters)
    total = sum(counts.get("kind", {}).values())
    at = min(asked.page, pages(total))
    filters.show(NAME, asked, counts, spoken)
    found = service().entries(filters=asked.filters, limit=ENTRIES, offset=(at - 1) * ENTRIES)
    if not found:
        markup.show(html('<div class="tk-note tk-quiet">{text}</div>', text=spoken("page.none")))
    else:
        _span(at, len(found), total, spoken)
        markup.show(markup.join(cards.entry_card(entry, spoken) for entry in found))
        _turn(at, pages(total), spoken)
    filters.keep(NAME, Asked(filters=asked.filters, page=at))


def pages(total: int) -> int:
    """How many pages that many entries take; an empty list is one page."""
    return max(1, -(-total // ENTRIES))


def _span(at: int, shown: int, total: int, spoken: Words) -> None:
    first = (at - 1) * ENTRIES + 1
    text = spoken("page.span", first=first, last=first + shown - 1, total=total)
    markup.show(html('<p class="tk-faint">{text}</p>', text=text))


def _turn(at: int, last: int, spoken: Words) -> None:
    if last == 1:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, label, number in (
            ("cases_back", "page.previous", at - 1),
            ("cases_on", "page.next", at + 1),
        ):
            st.button(
                spoken(label),
                key=name,
                disabled=not 1 <= number <= last,
                on_click=_go,
                args=(number,),
            )
        markup.show(html("<p>{text}</p>", text=spoken("page.of_pages", page=at, pages=last)))


def _go(number: int) -> None:
    st.session_state[filters.key(NAME, "page")] = number


# --- one entry ---------------------------------------------------------------------------------


def _back(spoken: Words) -> Markup:
    return cards.inner(spoken("page.back_to_cases"), NAME)


def show_entry(entry: Entry, spoken: Words) -> None:
    """Everything a reader may want of an entry, in the language of the page where it has it."""
    markup.show(html("<p>{back}</p>", back=_back(spoken)))
    markup.show(
        html(
            "{title}<p>{badges}</p>",
            title=markup.heading(entry.title.get(spoken.language), level=1),
            badges=_badges(entry, spoken),
        )
    )
    markup.show(markup.pairs(rows(entry, spoken)))
    sections = shown_sections(entry, spoken.language)
    if sections and all(section.language != spoken.language for section in sections):
        note = spoken("page.other_language", language=spoken(LANGUAGES[sections[0].language]))
        markup.show(html('<div class="tk-note tk-quiet">{note}</div>', note=note))
    for section in sections:
        cards.show_text(section.title, section.text)
    cards.show_fixes(entry.fixes, spoken)
    if entry.claims:
        title = markup.heading(spoken("heading.claims"))
        markup.show(markup.join([title, cards.claims(entry.claims, spoken)]))
    if entry.signature:
        markup.show(markup.heading(spoken("heading.signature")))
        cards.show_command("\n".join(entry.signature))
    _sources(entry, spoken)
    if entry.kind != "case":  # reviewed cases change in their files
        _offer_deletion(entry.id, spoken)


def _offer_deletion(identifier: str, spoken: Words) -> None:
    with st.popover(spoken("page.delete")):
        markup.show(html("<p>{text}</p>", text=spoken("page.delete_help")))
        act = partial(_delete, identifier)
        press.button(spoken("page.delete_now"), act, key=DELETE, words=spoken)


def _delete(identifier: str) -> Notice:
    """Delete the entry and leave its page; the list says so."""
    from app.contribute import delete

    delete(service(), identifier)
    st.query_params.pop("id", None)
    return Notice(tone="good", label="page.deleted")


def _badges(entry: Entry, spoken: Words) -> Markup:
    badges = [markup.badge(spoken.term("kind", entry.kind)), cards.standing(entry.status)]
    if entry.kind == "incident":
        badges.append(
            markup.badge(spoken("page.was_resolved"), "good")
            if entry.resolved
            else markup.badge(spoken("page.not_resolved"), "possible")
        )
    return markup.join(badges, Markup(" "))


def rows(entry: Entry, spoken: Words) -> list[tuple[str, Markup | str]]:
    """What the entry is about, as `timeout-kb show` lists it, with causes and address as links."""
    linked: dict[str, Markup] = {
        "row.cause": markup.join(
            (
                html(
                    "{cause} {standing} {source}",
                    cause=cards.cause_link(claim.id),
                    standing=cards.standing(claim.status),
                    source=markup.link(spoken("word.source"), claim.source) if claim.source else "",
                )
                for claim in entry.causes
            ),
            Markup("<br>"),
        ),
        "row.link": markup.link(entry.url, entry.url),
    }
    return [
        (spoken(name), linked.get(name, value))
        for name, value in entry_rows(entry, spoken)
        if name != "row.status"  # said by the badges
    ]


def _sources(entry: Entry, spoken: Words) -> None:
    confirms = {source.url: source.confirms for source in entry.sources}
    links = source_links([source.url for source in entry.sources])
    if not links:
        return
    items = [
        html(
            "{link}<br><span class='tk-faint'>{confirms}</span>",
            link=markup.link(url, url),
            confirms=confirms[url],
        )
        for url in links
    ]
    markup.show(markup.join([markup.heading(spoken("heading.sources")), markup.listed(items)]))
