"""Prose of entries as HTML: lists, code, and every other character as it is."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from app.render.listing import text_blocks
from app.web.components import cards


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
