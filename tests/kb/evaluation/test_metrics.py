"""The measures of a ranking, against figures worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.evaluation.metrics import (
    GradedRanking,
    grade,
    ndcg_at,
    recall_at,
    reciprocal_rank,
    summarise,
)

GRADES = st.lists(st.sampled_from([0, 1, 2]), max_size=12)


def test_grades_follow_the_ranking() -> None:
    """Each document brings its grade, an unanswer one 0; the ideal order is by grade."""
    answer = grade(["new", "near", "this"], {"this": 2, "near": 1, "other": 1})
    assert answer == GradedRanking(ranking=(0, 1, 2), ideal=(2, 1, 1))


def test_figures_of_one_answer() -> None:
    """Two documents asked for, at ranks 3 and 6, a near one at rank 1."""
    answer = GradedRanking(ranking=(1, 0, 2, 0, 0, 2), ideal=(2, 2, 1))
    assert reciprocal_rank(answer) == pytest.approx(1 / 3)
    assert [recall_at(answer, k) for k in (1, 3, 5, 6)] == [0, 0.5, 0.5, 1]
    gain = 1 + 3 / math.log2(4) + 3 / math.log2(7)
    best = 3 + 3 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(answer, 10) == pytest.approx(gain / best)
    assert ndcg_at(answer, 3) == pytest.approx((1 + 3 / 2) / best)


def test_nothing_found_is_zero() -> None:
    """An empty ranking, and a query whose documents are all of grade 0, score 0 everywhere."""
    for answer in (GradedRanking(ranking=(), ideal=(2,)), GradedRanking(ranking=(0, 0), ideal=())):
        assert (reciprocal_rank(answer), recall_at(answer, 5), ndcg_at(answer, 10)) == (0, 0, 0)


@given(GRADES)
def test_the_ideal_order_is_the_best(grades: list[int]) -> None:
    """The ideal order has nDCG 1, any other at most that."""
    ideal = tuple(sorted(grades, reverse=True))
    best = ndcg_at(GradedRanking(ranking=ideal, ideal=ideal), 10)
    assert best == pytest.approx(1.0 if any(grades) else 0.0)
    assert ndcg_at(GradedRanking(ranking=tuple(grades), ideal=ideal), 10) <= best + 1e-12


def test_summary_is_the_mean_over_queries() -> None:
    """Ranks 1, 2 and 11 of the only document asked for."""
    answers = [GradedRanking(ranking=(0,) * (rank - 1) + (2,), ideal=(2,)) for rank in (1, 2, 11)]
    result = summarise("route", "group", answers)
    assert (result.route, result.group, result.count) == ("route", "group", 3)
    assert result.mrr.mean == pytest.approx((1 + 1 / 2 + 1 / 11) / 3)
    assert result.recall_at_1.mean == pytest.approx(1 / 3)
    assert (result.recall_at_5.mean, result.recall_at_10.mean) == pytest.approx((2 / 3, 2 / 3))
    assert result.ndcg_at_10.mean == pytest.approx((1 + 1 / math.log2(3)) / 3)
    assert result.mrr.low <= result.mrr.mean <= result.mrr.high
