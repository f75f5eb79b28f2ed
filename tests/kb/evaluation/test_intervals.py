"""Bootstrap intervals."""

from __future__ import annotations

import pytest

from kb.errors import InputError
from kb.evaluation.intervals import figure_interval, mean_interval, ratio_interval, share


def test_a_constant_has_no_spread() -> None:
    """Ten equal values: mean and both ends are that value."""
    found = mean_interval([0.3] * 10)
    assert (found.low, found.mean, found.high) == pytest.approx((0.3, 0.3, 0.3))


def test_the_interval_is_that_of_the_normal_law() -> None:
    """For 400 fair coins the interval is near 1.96 standard errors of .025 about one half."""
    found = mean_interval([0.0, 1.0] * 200)
    assert found.mean == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.006)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.006)


def test_of_nothing_nothing_is_known() -> None:
    """No values give None and n = 0, not an error."""
    for found in (mean_interval([]), figure_interval([], len)):
        assert found.n == 0
        assert found.mean is None


def test_a_figure_is_resampled_like_a_mean() -> None:
    """The interval of the mean as a figure agrees with the direct one; drawn anew it is equal."""
    values = [float(number % 7 == 0) for number in range(200)]
    direct = mean_interval(values)
    drawn = figure_interval(values, lambda items: sum(items) / len(items))
    assert drawn.mean == direct.mean
    assert (drawn.low, drawn.high) == pytest.approx((direct.low, direct.high), abs=0.011)
    assert figure_interval(values, lambda items: sum(items) / len(items)) == drawn


def test_a_share_counts_what_meets_the_condition() -> None:
    """Two of four items are even, with the interval of that mean."""
    assert share([1, 2, 3, 4], lambda number: number % 2 == 0) == mean_interval([0, 1, 0, 1])


# --- ratios --------------------------------------------------------------------------------------


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
    """All zero below: None; lengths that do not pair are refused."""
    assert ratio_interval([1], [0]).mean is None
    assert ratio_interval([], []).mean is None
    with pytest.raises(InputError, match="2 numerators"):
        ratio_interval([1, 2], [1])
