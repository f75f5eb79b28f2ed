"""Bootstrap intervals."""

from __future__ import annotations

import math

import pytest

from kb.evaluation.intervals import figure_interval, mean_interval


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
    """No values give NaN and n = 0, not an error."""
    for found in (mean_interval([]), figure_interval([], len)):
        assert found.n == 0
        assert math.isnan(found.mean)


def test_a_figure_is_resampled_like_a_mean() -> None:
    """The interval of the mean as a figure agrees with the direct one; drawn anew it is equal."""
    values = [float(number % 7 == 0) for number in range(200)]
    direct = mean_interval(values)
    drawn = figure_interval(values, lambda items: sum(items) / len(items))
    assert drawn.mean == direct.mean
    assert (drawn.low, drawn.high) == pytest.approx((direct.low, direct.high), abs=0.011)
    assert figure_interval(values, lambda items: sum(items) / len(items)) == drawn
