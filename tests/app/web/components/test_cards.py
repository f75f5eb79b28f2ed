"""Prose of entries as HTML: lists, code, and every other character as it is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from app.render.listing import text_blocks
from app.web.components import cards
from kb.knowledge.labels import Words
from kb.types.answer import AnswerFix, FirstStep
from kb.types.knowledge import Bilingual
from tests.app.web.conftest import codes_of, html_of


def test_prose_keeps_lists_and_code() -> None:
    """Dashes and numbers make lists, backticks code; everything else is text."""
    made = cards.prose(["Set `A=1` here:", "- one", "- two <b>", "1. first", "after *this*"])
    assert str(made) == (
        "<p>Set <code>A=1</code> here:</p>"
        '<ul class="tk-list"><li>one</li><li>two &lt;b&gt;</li></ul>'
        '<ol class="tk-list"><li>first</li></ol>'
        "<p>after *this*</p>"
    )


def test_code_is_kept_apart_from_prose() -> None:
    """Fenced and indented lines are code, with their indentation; the fences are gone."""
    text = "before\n```\n  x = 1\n```\nbetween\n    ls\n\nafter"
    assert text_blocks(text) == [
        (False, ["before"]),
        (True, ["  x = 1"]),
        (False, ["between"]),
        (True, ["    ls"]),
        (False, ["", "after"]),
    ]


@given(st.text(alphabet=st.sampled_from("`<>&\"' ab\n-1."), max_size=60))
def test_prose_shows_every_character(text: str) -> None:
    """Whatever the text, the HTML shows its letters in order and holds no tag of its own."""
    made = str(cards.prose(text.split("\n")))
    assert re.findall(r"</?(\w+)", made) == [
        tag for tag in re.findall(r"</?(\w+)", made) if tag in {"p", "ul", "ol", "li", "code"}
    ]
    letters = re.sub(r"[^ab]", "", re.sub(r"<[^>]*>|&\w+;|&#\d+;", "", made))
    assert letters == re.sub(r"[^ab]", "", text)


FIX = AnswerFix(
    id="x/1",
    title="emptied the disk",
    steps=(),
    commands=("df -h",),
    status="confirmed",
    applies_to="",
    caution="look first",
    sources=(),
)
FIRST = FirstStep(
    kind="fix", title=FIX.title, command="df -h", caution="look first", fix=FIX.id, cause="x"
)


@pytest.mark.parametrize(
    ("fix", "label", "commands"),
    [
        (FIX, None, []),
        (replace(FIX, commands=()), None, []),
        (replace(FIX, sources=("javascript:alert(1)",)), None, []),
        (replace(FIX, steps=("stop it", "empty it")), "The fix above, step by step", []),
        (replace(FIX, commands=("df -h", "ls")), "More on the fix above", ["ls"]),
        (replace(FIX, sources=("https://example.org",)), "More on the fix above", []),
    ],
    ids=["all-above", "a-line", "no-link", "steps", "command", "link"],
)
def test_a_fix_that_stands_above_whole_has_no_box(
    labels: dict[str, Bilingual], fix: AnswerFix, label: str | None, commands: list[str]
) -> None:
    """Its box shows what the first step does not say; with nothing to show there is none."""
    words = Words(labels, "en")
    other = replace(FIX, id="x/2", title="another", commands=())
    page = AppTest.from_function(_show, kwargs={"fixes": [fix], "words": words, "first": FIRST})
    page.run()
    assert [box.label.partition(" · ")[0] for box in page.expander] == ([label] if label else [])
    assert ("Fixes" in html_of(page)) is (label is not None)
    assert codes_of(page) == commands
    both = {"fixes": [fix, other], "words": words, "first": FIRST}
    page = AppTest.from_function(_show, kwargs=both).run()
    assert page.expander[-1].label.startswith("another")
    assert page.expander[-1].proto.expanded


def _show(**values: object) -> None:
    from app.web.components import cards

    cards.show_fixes(opened=2, **values)  # type: ignore[arg-type]
