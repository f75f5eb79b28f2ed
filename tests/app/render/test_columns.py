"""Text is laid out in terminal cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.render.columns import columns, cut, fit_width, hang, paragraphs, wrap

WORDS = st.text(alphabet="ab ，。中文字符 x", max_size=120)


@given(WORDS, st.integers(min_value=4, max_value=40))
def test_wrapping_loses_nothing_and_fits(text: str, width: int) -> None:
    """Every line fits, and all characters but spaces are there in their order."""
    lines = wrap(text, width)
    assert all(cell_len(line) <= width or line.endswith(("，", "。")) for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_chinese_breaks_between_characters_but_not_before_a_comma() -> None:
    """Wide text fills the line; closing punctuation stays with the character before it."""
    assert wrap("数据不均匀，先看采样", 10) == ["数据不均", "匀，先看采", "样"]


def test_long_words_are_broken() -> None:
    """A path longer than the line is cut where it must be."""
    assert wrap("x " + "a" * 12, 5) == ["x", "aaaaa", "aaaaa", "aa"]


def test_hanging_indent_counts_cells() -> None:
    """Lines after the first start below the text, also behind a Chinese label."""
    assert hang("超时  ", "aa bb", 9) == ["超时  aa", "      bb"]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("中文字符", 6, "中文…")],
)
def test_cutting_shows_that_something_is_missing(text: str, width: int, shown: str) -> None:
    """What does not fit ends in an ellipsis and fits."""
    assert cut(text, width) == shown
    assert cell_len(shown) <= width


def test_columns_align_by_cells() -> None:
    """A column is as wide as its widest cell in cells, not characters."""
    assert columns([("状态", "x"), ("ok", "y")]) == ["状态  x", "ok    y"]


@pytest.mark.parametrize(("window", "width"), [(40, 80), (100, 100), (300, 120)])
def test_width_stays_readable(window: int, width: int) -> None:
    """The layout is 80 to 120 cells wide."""
    assert fit_width(window) == width


def test_paragraphs_have_one_empty_line_between() -> None:
    """Empty blocks leave no gap."""
    assert paragraphs([["a"], [], ["b", "c"]]) == "a\n\nb\nc\n"
