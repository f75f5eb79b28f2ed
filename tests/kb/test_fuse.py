"""Fusion: what both routes found wins, and a route that tells nothing apart says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import InputError
from kb.fuse import fuse_ranks, fuse_scores, min_max


def array(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Scores."""
    return np.array(values, dtype=np.float32)


def test_agreement_wins() -> None:
    """What both routes found outranks what one route found."""
    assert fuse_ranks([["a", "b"], ["b", "c"]]) == [
        ("b", 1 / 62 + 1 / 61),
        ("a", 1 / 61),
        ("c", 1 / 62),
    ]


def test_equal_ranks_are_ordered_by_id() -> None:
    """The order does not depend on which route came first."""
    assert [name for name, _ in fuse_ranks([["b"], ["a"]])] == ["a", "b"]


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=2, max_size=20))
def test_min_max_keeps_the_order(values: list[float]) -> None:
    """The mapped scores lie in [0, 1], reach both ends and never swap two candidates."""
    mapped = min_max(array(*values))
    if max(values) > min(values):
        assert (mapped.min(), mapped.max()) == (0, 1)
    order = np.argsort(array(*values), kind="stable")
    assert np.all(np.diff(mapped[order]) >= 0)


@pytest.mark.parametrize("values", [(), (3.0,), (2.0, 2.0, 2.0)], ids=["none", "one", "equal"])
def test_scores_that_tell_nothing_apart_are_zero(values: tuple[float, ...]) -> None:
    """A route with equal scores moves nobody; there is no division by zero."""
    assert min_max(array(*values)).tolist() == [0.0] * len(values)
    other = array(*range(len(values)))
    np.testing.assert_array_equal(
        fuse_scores([array(*values), other], [0.5, 0.5]), 0.5 * min_max(other)
    )


def test_weights_say_how_much_a_route_counts() -> None:
    """The sum is that of the formula."""
    fused = fuse_scores([array(0, 5, 10), array(1, 0, 1)], [0.25, 0.75])
    np.testing.assert_allclose(fused, [0.75, 0.125, 1.0])


def test_routes_of_different_lengths_are_refused() -> None:
    """Scores of different candidates cannot be added."""
    with pytest.raises(InputError, match=r"routes of lengths \[1, 2\] do not fit 2 weights"):
        fuse_scores([array(1), array(1, 2)], [0.5, 0.5])
