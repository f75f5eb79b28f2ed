"""Many expressions at once find what each of them finds alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import DataError
from kb.text.expression_set import GROUP, ExpressionSet

WORDS = ["a", "ab+", "b{2}", "^c", "c$", "[a-c]d", "a.c", "dd|aa", "bcd"]
PYTHON = [word.replace("$", r"\Z") for word in WORDS]  # whose $ also means before a last newline
MANY = ExpressionSet([(f"data: {word}", word) for word in WORDS])


@given(st.text(alphabet="abcdABCD\n", max_size=30))
def test_the_same_as_each_alone(text: str) -> None:
    """Over the borders of groups, whatever the case."""
    assert len(WORDS) > 2 * GROUP
    alone = [n for n, word in enumerate(PYTHON) if re.search(word, text, re.IGNORECASE)]
    assert MANY.matching(text) == alone


def test_each_alone() -> None:
    """The compiled expression of a number finds its places."""
    assert [match.span() for match in MANY[1].finditer("xABBab")] == [(1, 4), (4, 6)]


def test_none() -> None:
    """No expression occurs in nothing."""
    assert ExpressionSet([]).matching("abc") == []


@pytest.mark.parametrize("expression", ["(", "(?=a)", "(?:a{900}){3}"])
def test_refused(expression: str) -> None:
    """What RE2 does not take is refused, with the place it stands."""
    with pytest.raises(DataError, match="data: third"):
        ExpressionSet([("first", "a"), ("second", "b"), ("data: third", expression)])
