"""The check proposed first is the one expected to remove the most doubt."""

from __future__ import annotations

import pytest

from kb.diagnose.checks import best_check, entropy, expected_gain
from kb.types import Bilingual, Check, Level, Outcome

WORDS = Bilingual(zh="看", en="look")


def check(
    name: str, *outcomes: tuple[tuple[str, ...], tuple[str, ...]], cost: Level = "low"
) -> Check:
    """A check whose outcomes support and refute these causes."""
    return Check(
        id=name,
        command=name,
        tells=WORDS,
        cost=cost,
        outcomes=tuple(
            Outcome(observation=WORDS, supports=good, refutes=bad) for good, bad in outcomes
        ),
    )


SEPARATES = check("separates", (("a",), ("b",)), (("b",), ("a",)))
BLIND = check("blind", (("a", "b"), ()), ((), ()))


def test_entropy_of_an_even_pair_is_one_bit() -> None:
    """H(½, ½) = 1, and certainty has none."""
    assert entropy({"a": 0.5, "b": 0.5}) == pytest.approx(1.0)
    assert entropy({"a": 1.0, "b": 0.0}) == 0.0


def test_the_gain_is_that_of_the_channel() -> None:
    """0.9 against 0.1 is a binary symmetric channel: 1 - H(0.1) bits."""
    gain = expected_gain(SEPARATES, {"a": 0.5, "b": 0.5})
    assert gain == pytest.approx(1 - entropy({"x": 0.1, "y": 0.9}))


def test_a_check_that_tells_the_leaders_apart_wins() -> None:
    """A check both leaders answer alike removes nothing and is never proposed."""
    assert expected_gain(BLIND, {"a": 0.5, "b": 0.5}) == pytest.approx(0.0)
    assert best_check([BLIND, SEPARATES], {"a": 0.4, "b": 0.4}) == SEPARATES
    assert best_check([BLIND], {"a": 0.4, "b": 0.4}) is None


def test_nothing_is_proposed_when_nothing_is_in_doubt() -> None:
    """With one cause certain no check gains anything."""
    assert best_check([SEPARATES], {"a": 1.0, "b": 0.0}) is None
    assert best_check([SEPARATES], {}) is None


def test_a_dear_check_has_to_gain_more() -> None:
    """Of two equal checks the cheap one comes first, then the smaller id."""
    dear = check("a-dear", (("a",), ("b",)), (("b",), ("a",)), cost="high")
    twin = check("separates-twin", (("a",), ("b",)), (("b",), ("a",)))
    assert best_check([dear, twin, SEPARATES], {"a": 0.5, "b": 0.5}) == SEPARATES
