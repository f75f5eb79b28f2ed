"""Bootstrap percentile intervals of a mean, of a ratio, and of any figure over a set.

Source: Efron 1979, https://doi.org/10.1214/aos/1176344552
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kb.errors import InputError
from kb.evaluation.published import Interval

RESAMPLES = 2000  # enough for the second decimal of a 95 % interval
FIGURE_RESAMPLES = 500  # of figures that are no mean: each draw costs a millisecond
SEED = 20240601  # any fixed number: the same values give the same interval
T = TypeVar("T")


def _interval(mean: float, drawn: NDArray[np.float64], n: int) -> Interval:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(mean=float(mean), low=float(low), high=float(high), n=n)


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean of `values` with its bootstrap 95 % interval."""
    if not values:
        return Interval(mean=None, low=None, high=None, n=0)
    array = np.asarray(values, dtype=float)
    picks = np.random.default_rng(SEED).integers(0, len(array), size=(RESAMPLES, len(array)))
    return _interval(array.mean(), array[picks].mean(axis=1), len(array))


def share(items: Sequence[T], condition: Callable[[T], bool]) -> Interval:
    """Share of the items that meet a condition."""
    return mean_interval([float(condition(item)) for item in items])


def figure_interval(items: Sequence[T], figure: Callable[[Sequence[T]], float]) -> Interval:
    """`figure` of `items` with the 95 % interval over resampled items."""
    if not items:
        return Interval(mean=None, low=None, high=None, n=0)
    generator = np.random.default_rng(SEED)
    drawn = [
        figure([items[number] for number in generator.integers(0, len(items), size=len(items))])
        for _ in range(FIGURE_RESAMPLES)
    ]
    return _interval(figure(items), np.array(drawn), len(items))


def ratio_interval(numerators: Sequence[float], denominators: Sequence[float]) -> Interval:
    """Ratio of two means over the same items, which are drawn in pairs.

    Draws whose denominators are all 0 have no ratio and are left out.

    Raises:
        InputError: the two differ in length.
    """
    if len(numerators) != len(denominators):
        raise InputError(f"{len(numerators)} numerators do not pair {len(denominators)}")
    above, below = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    if not below.any():
        return Interval(mean=None, low=None, high=None, n=len(below))
    picks = np.random.default_rng(SEED).integers(0, len(below), size=(RESAMPLES, len(below)))
    totals = below[picks].sum(axis=1)
    ratios = above[picks].sum(axis=1)[totals > 0] / totals[totals > 0]
    return _interval(above.sum() / below.sum(), ratios, len(below))
