"""The notes page: all notes, those about something, and everything of one; notes elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from markupsafe import escape

from app.render.escape import plain
from app.render.listing import text_blocks
from app.web.components import chat_reply
from kb.chat.types import Citation
from kb.knowledge.labels import Words
from kb.service import Service
from kb.types.knowledge import Bilingual, Source
from kb.types.vocabulary import Language
from tests.app.web.conftest import OpenPage, codes_of, html_of, shown_text

EVIL = "<img src=x onerror=alert(1)> [x](javascript:alert(1))"


def ids_of(shown: str) -> list[str]:
    """Ids of the notes a page links, in order, each once."""
    return list(dict.fromkeys(re.findall(r"\./notes\?lang=\w\w&amp;id=([\w.-]+)", shown)))


def test_all_notes_stand_there(real: Service, open_page: OpenPage) -> None:
    """Every note by id, under its title."""
    shown = html_of(open_page("notes"))
    notes = real.knowledge.notes
    assert ids_of(shown) == [note.id for note in notes]
    assert all(str(escape(note.title.en)) in shown for note in notes)


def test_notes_about_a_setting(real: Service, open_page: OpenPage) -> None:
    """The address can name a setting or a cause."""
    shown = html_of(open_page("notes", about="NCCL_IB_TIMEOUT"))
    expected = [note.id for note in real.knowledge.notes if "NCCL_IB_TIMEOUT" in note.settings]
    assert ids_of(shown) == expected != []


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_note_is_whole(lang: Language, real: Service, open_page: OpenPage) -> None:
    """Words and commands of its body, sources with what each confirms, links to its causes."""
    note = real.note("timeout-ddp")
    page = open_page("notes", lang=lang, id=note.id)
    raw = html_of(page)
    shown = shown_text(raw).replace(" ", "")
    for code, lines in text_blocks(note.body.get(lang)):
        for line in lines:
            if not code:
                wanted = str(escape(plain(line.replace("`", "")))).replace(" ", "")
                assert wanted in shown
    assert codes_of(page) == [
        "\n".join(lines).strip("\n") for code, lines in text_blocks(note.body.get(lang)) if code
    ]
    for source in note.sources:
        assert f'href="{escape(source.url)}"' in raw
        assert str(escape(source.confirms)).replace(" ", "") in shown
    for cause in note.causes:
        assert f"./causes?lang={lang}&amp;id={cause}" in raw
    for setting in note.settings:
        assert f"./notes?lang={lang}&amp;about={setting}" in raw


def test_a_note_that_is_not_there(open_page: OpenPage) -> None:
    """A misspelt address leads to the list."""
    shown = html_of(open_page("notes", lang="zh", id="nope"))
    assert "没有编号为 nope 的问答" in shown
    assert 'href="./notes?lang=zh"' in shown


def test_markup_in_a_note_is_shown_and_not_followed(real: Service, open_page: OpenPage) -> None:
    """HTML and links in the text of a note are text; an address that is no http(s) is left out."""
    note = replace(
        real.note("timeout-ddp"),
        title=Bilingual(zh=EVIL, en=EVIL),
        body=Bilingual(zh=EVIL, en=EVIL),
        sources=(Source(url="javascript:alert(1)", confirms=EVIL),),
    )
    knowledge = replace(real.knowledge, notes=(note,))
    service = SimpleNamespace(knowledge=knowledge, settings=real.settings, store=real.store)
    for address in ({}, {"id": note.id}):
        shown = html_of(open_page("notes", service=service, **address))
        assert "<img" not in shown
        assert "&lt;img src=x" in shown
        assert 'href="javascript' not in shown


def test_a_question_shows_its_notes_first(real: Service, open_page: OpenPage) -> None:
    """The search shows notes in the order of the service, before entries."""
    question = "DDP 的超时怎么设"
    shown = html_of(open_page("search", lang="zh", q=question))
    hits = real.find_notes(question)
    assert ids_of(shown) == [hit.note.id for hit in hits]
    assert hits[0].note.id == "timeout-ddp"
    assert shown.index("tk-answer") < shown.index("./cases?lang=zh&amp;id=")


def test_a_cause_links_its_notes(real: Service, open_page: OpenPage) -> None:
    """Eight of them, and a link to all where there are more."""
    shown = html_of(open_page("causes", id="timeout-too-short"))
    notes = [note.id for note in real.knowledge.notes_naming("timeout-too-short")]
    assert ids_of(shown) == notes[:8]
    assert f">all {len(notes)}</a>" in shown


def test_a_note_can_be_cited(real: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A citation leads to the note's page under its title; an unknown id is shown as it is."""
    monkeypatch.setattr(chat_reply, "service", lambda: real)
    monkeypatch.setattr(
        chat_reply.cards, "href", lambda page, **names: f"./{page}?id={names['id']}"
    )
    words = Words(real.knowledge.labels, "en")
    shown = chat_reply.citation(Citation(kind="note", id="timeout-ddp"), words)
    assert 'href="./notes?id=timeout-ddp"' in shown
    assert "How to set the timeout of DDP" in shown
    assert "gone-note" in chat_reply.citation(Citation(kind="note", id="gone-note"), words)
