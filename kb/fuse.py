"""Fusion of rankings, by scores or by ranks: what the search's own score is measured against.

The search orders by `kb.similarity`, whose scores keep their meaning from question to question;
on the labelled posts that order is as good as min-max and better than ranks.

Min-max: each route's scores of one question are mapped onto [0, 1] and averaged with weights.
Source: Lee 1997, https://doi.org/10.1145/258525.258587; Bruch et al. 2023 on why it beats ranks,
https://doi.org/10.1145/3596512
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kb.errors import InputError

RRF_K = 60  # value of the paper; rank 1 scores 1/61, rank 10 scores 1/70, so no route dominates


def min_max(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """The scores mapped onto [0, 1], the lowest to 0 and the highest to 1.

    Scores that are all equal tell nothing apart: they become 0.
    """
    if not len(scores):
        return scores.astype(np.float32)
    low, high = float(scores.min()), float(scores.max())
    if not high > low:
        return np.zeros(len(scores), dtype=np.float32)
    return ((scores - low) / (high - low)).astype(np.float32)


def fuse_scores(
    routes: Sequence[NDArray[np.float32]], weights: Sequence[float]
) -> NDArray[np.float32]:
    """Weighted sum of the routes' min-max scores, in [0, sum of the weights].

    Args:
        routes: scores of the same candidates, one array a route, higher is better.
        weights: one a route.

    Raises:
        InputError: routes and weights, or the routes among themselves, differ in length.
    """
    if len(routes) != len(weights) or len({len(route) for route in routes}) != 1:
        lengths = [len(route) for route in routes]
        raise InputError(f"routes of lengths {lengths} do not fit {len(weights)} weights")
    total = np.zeros(len(routes[0]), dtype=np.float32)
    for route, weight in zip(routes, weights, strict=True):
        total += np.float32(weight) * min_max(route)
    return total


def fuse_ranks(rankings: Sequence[Sequence[str]], *, k: int = RRF_K) -> list[tuple[str, float]]:
    """Merge best-first rankings by the sum of 1 / (k + rank), rank counted from 1.

    Returns ids with their scores (higher is better), best first, ties by id.
    Source: Cormack, Clarke, Büttcher 2009, https://doi.org/10.1145/1571941.1572114
    """
    scores: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] += 1 / (k + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
