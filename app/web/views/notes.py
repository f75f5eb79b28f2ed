"""The notes page: short answers to what people ask around a hang, and all of one of them."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from app.render.escape import plain, safe_url
from app.render.listing import note_rows, note_runs
from app.web.components import cards, markup
from app.web.components.markup import html
from app.web.context import interface_words, parameter, service
from kb.knowledge.labels import Words
from kb.types.knowledge import Note, Source

NAME = "notes"


def page() -> None:
    """Show one note where the address names one, those about a setting or a cause, or all."""
    words, identifier = interface_words(), parameter("id")
    if not identifier:
        _all(words, parameter("about"))
        return
    note = service().knowledge.note_by_id.get(identifier)
    if note is None:
        cards.show_missing(words("page.no_note", id=plain(identifier)), _back(words))
        return
    show_note(note, words)


def _back(words: Words) -> Markup:
    return cards.page_link(words("page.back_to_notes"), NAME)


def _all(words: Words, about: str) -> None:
    knowledge = service().knowledge
    notes = knowledge.notes_naming(about) if about else knowledge.notes
    markup.show(markup.heading(words("page.notes"), level=1))
    if about:
        markup.show(html("<p>{back} <code>{name}</code></p>", back=_back(words), name=about))
    markup.show(markup.faint(words("page.notes_lead", count=len(notes))))
    markup.show(markup.join(cards.note_card(note, words) for note in notes))


def show_note(note: Note, words: Words) -> None:
    """All of a note in the language of the page."""
    markup.show(markup.paragraph(_back(words)))
    markup.show(
        html(
            "{title}<p>{kind} {status} <code>{id}</code></p>",
            title=markup.heading(note.title.get(words.language), level=1),
            kind=markup.badge(words("word.note"), "info"),
            status=cards.status_badge(note.status),
            id=note.id,
        )
    )
    with st.container(border=True):
        cards.show_body(note.body.get(words.language))
    markup.show(markup.pairs(_rows(note, words)))
    sources = [_source(source) for source in note.sources if safe_url(source.url)]
    markup.show(markup.section(words("heading.sources"), markup.listed(sources)))
    runs = [html("<code>{run}</code>", run=run) for run in note_runs(note)]
    markup.show(markup.section(words("heading.was_run"), markup.listed(runs)))


def _rows(note: Note, words: Words) -> list[tuple[str, Markup | str]]:
    """What the note is about, as `timeout-kb show` lists it, with links to what else there is."""
    linked = {
        "row.settings": [cards.page_link(name, NAME, about=name) for name in note.settings],
        "row.cause": [cards.cause_link(cause) for cause in note.causes],
    }
    return [
        (words(name), markup.join(linked[name], markup.DOT) if name in linked else value)
        for name, value in note_rows(note, words)
        if name != "row.status"  # said by the badges
    ]


def _source(source: Source) -> Markup:
    return html(
        "{link}<br><span class='tk-faint'>{confirms}</span>",
        link=markup.link(source.url, source.url),
        confirms=source.confirms,
    )
