"""Bootstrap percentile intervals of a mean, and of any figure over a set.

Source: Efron 1979, https://doi.org/10.1214/aos/1176344552
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from kb.errors import InputError

RESAMPLES = 2000  # enough for the second decimal of a 95 % interval
SEED = 20240601  # any fixed number: the same values give the same interval
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean or other figure with its 95 % interval over `n` values; NaN when there are none."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] (n={self.n})"


NOTHING = Interval(mean=float("nan"), low=float("nan"), high=float("nan"), n=0)


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean of `values` with its bootstrap 95 % interval."""
    if not values:
        return NOTHING
    array = np.asarray(values, dtype=float)
    picks = np.random.default_rng(SEED).integers(0, len(array), size=(RESAMPLES, len(array)))
    means = array[picks].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(mean=float(array.mean()), low=float(low), high=float(high), n=len(array))


def figure_interval(
    items: Sequence[T], figure: Callable[[Sequence[T]], float], *, resamples: int = RESAMPLES
) -> Interval:
    """`figure` of `items` with the 95 % interval over resampled items."""
    if not items:
        return NOTHING
    generator = np.random.default_rng(SEED)
    drawn = [
        figure([items[number] for number in generator.integers(0, len(items), size=len(items))])
        for _ in range(resamples)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(mean=figure(items), low=float(low), high=float(high), n=len(items))


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
        return Interval(mean=float("nan"), low=float("nan"), high=float("nan"), n=len(below))
    picks = np.random.default_rng(SEED).integers(0, len(below), size=(RESAMPLES, len(below)))
    totals = below[picks].sum(axis=1)
    ratios = above[picks].sum(axis=1)[totals > 0] / totals[totals > 0]
    low, high = np.percentile(ratios, [2.5, 97.5])
    ratio = float(above.sum() / below.sum())
    return Interval(mean=ratio, low=float(low), high=float(high), n=len(below))
