"""How good rankings are, when some documents are right and others nearly so.

Grades: 2 is the document asked for, 1 a near one, 0 any other. Recall and MRR ask for the documents
of grade 2, nDCG for all in their order.
Source: Järvelin & Kekäläinen 2002, https://doi.org/10.1145/582415.582418 (gain 2^grade - 1)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kb.evaluation.intervals import mean_interval
from kb.evaluation.published import Interval

FULL = 2  # grade of a document that is what the query is about
GRADES = (0, 1, FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRanking:
    """The graded answer to one query.

    Attributes:
        ranking: grades of the ranking, best rank first; documents that are not in it are left out.
        ideal: grades of all judged documents, highest first.
    """

    ranking: tuple[int, ...]
    ideal: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteQuality:
    """How one route did on one group of queries, with 95 % bootstrap intervals over queries."""

    route: str
    group: str
    count: int
    mrr: Interval
    recall_at_1: Interval
    recall_at_5: Interval
    recall_at_10: Interval
    ndcg_at_10: Interval


def grade(ranking: Sequence[str], grades: Mapping[str, int]) -> GradedRanking:
    """The grades of `ranking`; documents nobody judged have grade 0."""
    return GradedRanking(
        ranking=tuple(grades.get(document, 0) for document in ranking),
        ideal=tuple(sorted(grades.values(), reverse=True)),
    )


def reciprocal_rank(answer: GradedRanking) -> float:
    """1 / rank of the first document asked for, 0 if none was found."""
    ranks = (rank for rank, grade in enumerate(answer.ranking, start=1) if grade == FULL)
    return 1 / next(ranks, math.inf)


def recall_at(answer: GradedRanking, k: int) -> float:
    """Share of the documents asked for that stand among the first `k`; 0 if there are none."""
    return answer.ranking[:k].count(FULL) / max(1, answer.ideal.count(FULL))


def ndcg_at(answer: GradedRanking, k: int) -> float:
    """Discounted gain of the first `k` as a share of the best possible; 0 if nothing is near."""
    best = _gain(answer.ideal[:k])
    return _gain(answer.ranking[:k]) / best if best else 0.0


def _gain(grades: Sequence[int]) -> float:
    return math.fsum(
        (2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1)
    )


def summarise(route: str, group: str, answers: Sequence[GradedRanking]) -> RouteQuality:
    """All figures of one route on one group of queries."""

    def recall(k: int) -> Interval:
        return mean_interval([recall_at(answer, k) for answer in answers])

    return RouteQuality(
        route=route,
        group=group,
        count=len(answers),
        mrr=mean_interval([reciprocal_rank(answer) for answer in answers]),
        recall_at_1=recall(1),
        recall_at_5=recall(5),
        recall_at_10=recall(10),
        ndcg_at_10=mean_interval([ndcg_at(answer, 10) for answer in answers]),
    )
