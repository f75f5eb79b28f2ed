"""The interval of a ratio of two means."""

from __future__ import annotations

import math

import pytest

from kb.errors import InputError
from kb.evaluation.intervals import ratio_interval


def test_ratio_of_the_means_and_not_mean_of_the_ratios() -> None:
    """1 of 2 items against 2 of 2 is a half, though one item has ratio 0."""
    ratio = ratio_interval([1, 0], [1, 1])
    assert (ratio.mean, ratio.n) == (0.5, 2)
    assert (ratio.low, ratio.high) == (0, 1)


def test_items_are_drawn_in_pairs() -> None:
    """Where every item halves, every draw halves: there is no spread."""
    ratio = ratio_interval([0.5, 0.25, 0], [1, 0.5, 0])
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((0.5, 0.5, 0.5))


def test_no_ratio_without_a_denominator() -> None:
    """All zero below: NaN; lengths that do not pair are refused."""
    assert math.isnan(ratio_interval([1], [0]).mean)
    assert math.isnan(ratio_interval([], []).mean)
    with pytest.raises(InputError, match="2 numerators"):
        ratio_interval([1, 2], [1])
