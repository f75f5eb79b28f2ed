"""Bootstrap percentile intervals of a mean.

Source: Efron 1979, https://doi.org/10.1214/aos/1176344552
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000  # enough for the second decimal of a 95 % interval
SEED = 20240601  # any fixed number: the same values give the same interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean with its 95 % interval over `n` values; NaN when there are none."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] (n={self.n})"


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean of `values` with its bootstrap 95 % interval."""
    if not values:
        return Interval(mean=float("nan"), low=float("nan"), high=float("nan"), n=0)
    array = np.asarray(values, dtype=float)
    picks = np.random.default_rng(SEED).integers(0, len(array), size=(RESAMPLES, len(array)))
    means = array[picks].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(mean=float(array.mean()), low=float(low), high=float(high), n=len(array))
