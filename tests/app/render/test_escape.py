"""Untrusted text cannot leave its quotes, in a terminal or in Markdown."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.render.escape import md_code, md_fence, md_link, md_text, plain, plain_block, safe_url

NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from("`*_[]<>()#!|~$&\\-+=:.\n\r\t\x1b\x9b\x07 \u202e\u2028 1aw/"),
        st.characters(),
    ),
    max_size=60,
)
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def inline(text: str) -> list[Token]:
    """Tokens of the only paragraph `text` renders as; other blocks fail the test."""
    tokens = MARKDOWN.parse(text)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    return tokens[1].children or []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b[31mred\x1b[0m", "red", id="colour"),
        pytest.param("a\x1b]0;title\x07b", "ab", id="window-title"),
        pytest.param("a\x1b]8;;http://x\x1b\\b", "ab", id="hyperlink"),
        pytest.param("a\x9b2Jb", "ab", id="8-bit-clear-screen"),
        pytest.param("100%\rdone", "100% done", id="carriage-return"),
        pytest.param("a\u202eb\u2066c\u200bd", "abcd", id="reordering-and-zero-width"),
        pytest.param("a\ud800b", "ab", id="lone-surrogate"),
        pytest.param("\tx \n y", "x y", id="white-space"),
        pytest.param("第 7 步：卡住", "第 7 步：卡住", id="chinese-stays"),
    ],
)
def test_plain_keeps_what_is_read_and_drops_what_acts(text: str, shown: str) -> None:
    """Escape sequences go whole; controls, surrogates and reordering marks go; the rest stays."""
    assert plain(text) == shown


@given(NASTY)
@example("0 \x1a\x850")  # what is dropped stands between two blanks
def test_plain_is_one_printable_line(text: str) -> None:
    """Whatever comes in, only printable characters come out, and a second pass changes nothing."""
    shown = plain(text)
    assert shown.isprintable()
    assert plain(shown) == shown


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"]), max_size=60))
def test_plain_leaves_readable_text_alone(text: str) -> None:
    """Letters, digits, punctuation and symbols pass unchanged."""
    assert plain(text) == text


@given(NASTY)
def test_block_lines_are_printable(text: str) -> None:
    """A block may have several lines, each of them printable."""
    assert all(line.isprintable() for line in plain_block(text).split("\n"))


@given(NASTY)
@example("- a")
@example("12) a")
@example("> a")
@example("www.example.org and https://example.org")
@example("__init__ and _x_")
def test_prose_renders_as_itself(text: str) -> None:
    """Escaped prose is one paragraph of plain text that reads exactly as the text did."""
    shown = plain(text)
    if not shown:
        assert md_text(text) == ""
        return
    tokens = inline(md_text(text))
    assert {token.type for token in tokens} <= {"text", "text_special"}
    assert "".join(token.content for token in tokens) == shown


@given(NASTY)
@example("`")
@example("a``b`c```d")
def test_code_span_holds_its_text(text: str) -> None:
    """A code span is one token whose content is the text, whatever backticks stand in it."""
    shown = plain(text)
    if not shown:
        assert md_code(text) == ""
        return
    tokens = inline(md_code(text))
    assert [(token.type, token.content) for token in tokens] == [("code_inline", shown)]


@given(NASTY, st.sampled_from(["", "  "]))
@example("```\nafter", "  ")
@example("~~~\n````", "")
def test_fence_holds_its_text(text: str, indent: str) -> None:
    """A fence, inside a list item too, is one token with the lines of the text."""
    item = "- x\n" if indent else ""
    tokens = MARKDOWN.parse(item + md_fence(text, indent=indent) + "\n\nafter")
    fences = [token for token in tokens if token.type == "fence"]
    assert [fence.content.rstrip("\n") for fence in fences] == [plain_block(text).rstrip("\n")]
    assert [token.content for token in tokens if token.type == "inline"][-1] == "after"


@given(NASTY, NASTY)
def test_link_leads_only_to_web_pages(text: str, address: str) -> None:
    """Only http(s) addresses become links, and they lead where the text says."""
    hrefs = [
        str(token.attrs["href"])
        for token in inline("x " + md_link(text, address))
        if token.type == "link_open"
    ]
    assert len(hrefs) == (1 if safe_url(address) else 0)
    assert all(re.match(r"https?://", href, re.IGNORECASE) for href in hrefs)


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "https://a b", "https://a\nb", "data:text/html,x", "https://a>b", ""],
)
def test_other_addresses_are_not_links(address: str) -> None:
    """Script and data addresses, and those with blanks or brackets, are refused."""
    assert safe_url(address) == ""


@pytest.mark.parametrize(
    "address", ["https://github.com/a/b/issues/1#issuecomment-2", "http://x.org/?a=1&b=%20"]
)
def test_usual_addresses_are_links(address: str) -> None:
    """Issue links with fragments and queries pass."""
    assert safe_url(address) == address
