"""Escapes and limits of the Block Kit builders."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.render.escape import plain_block
from app.slack.blocks import primitives as kit
from app.slack.requests import unescape
from tests.app.slack.fake.samples import HOSTILE_PIECES

HOSTILE = st.lists(
    st.sampled_from(HOSTILE_PIECES) | st.text(max_size=20), min_size=1, max_size=200
).map(" ".join)


@pytest.mark.parametrize("text", HOSTILE_PIECES)
def test_an_escaped_text_shows_as_written(text: str) -> None:
    """Undoing Slack's one level of escapes gives the text back; no markup is left before."""
    shown = kit.escaped(text)
    assert "<" not in shown
    assert ">" not in shown
    assert html.unescape(shown).replace("\u200b", "") == text
    assert unescape(shown).replace("\u200b", "") == text


@given(HOSTILE)
def test_no_text_becomes_markup(text: str) -> None:
    """Whatever is written: no angle bracket, every & starts one of Slack's three entities."""
    shown = kit.escaped(text)
    assert not set(shown) & {"<", ">"}
    bare = shown.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert "&" not in bare
    assert "@h" not in shown
    assert "://" not in shown
    assert html.unescape(shown).replace("\u200b", "") == plain_block(text).replace("\u200b", "")


def test_a_long_message_is_cut_before_its_buttons() -> None:
    """At most 50 blocks; the last ones stay and a sentence tells that something is missing."""
    blocks = [kit.section(f"line {number}") for number in range(200)]
    last = [kit.actions([kit.button("go", "go", "x")])]
    message = kit.message("t", blocks, last=last, cut="the rest is left out")
    assert len(message.blocks) == kit.MAX_BLOCKS
    assert message.blocks[:48] == blocks[:48]
    assert message.blocks[48:] == [kit.context("the rest is left out"), *last]


def test_much_text_is_cut_too() -> None:
    """Not more characters than Slack takes in all blocks together."""
    blocks = [kit.section("x" * 2900) for _ in range(10)]
    message = kit.message("t", blocks, cut="the rest is left out")
    assert [kit.text_size(block) for block in message.blocks] == [2900] * 3 + [20]
