"""Figures over predictions, each against numbers worked out by hand."""

from __future__ import annotations

import pytest

from kb.evaluation.figures import (
    Prediction,
    calibration_error,
    confusion,
    macro,
    per_cause,
    quality,
    reliability,
    risk_coverage,
    splits,
    top1_at_coverage,
)
from kb.evaluation.published import CauseFigures
from tests.kb.evaluation.examples import SIX, prediction
from tests.kb.train.examples import thread


def test_shares_count_places() -> None:
    """Of `SIX` three are right at once, four or as good, and all stand among three."""
    found = quality(SIX)
    assert found["top1"].mean == pytest.approx(3 / 6)
    assert found["top1_also"].mean == pytest.approx(4 / 6)
    assert (found["top3"].mean, found["top3_also"].mean) == (1.0, 1.0)
    assert (found["top1"].n, found["macro_top1"].n) == (6, 6)


def test_the_macro_average_weighs_causes_alike() -> None:
    """Alpha has 2/4, beta 1/1, chi 0/1 average to 1/2 first; to (3/4 + 1 + 0) / 3 among two."""
    assert macro(SIX, 1) == pytest.approx((2 / 4 + 1 + 0) / 3)
    assert macro(SIX, 2) == pytest.approx((3 / 4 + 1 + 0) / 3)


def test_calibration_error_is_the_gap_of_each_bin_by_its_share() -> None:
    """Two bins of three: .5 stated against 1/3 right, .8 against 2/3; each counts half."""
    expected = 0.5 * abs(0.5 - 1 / 3) + 0.5 * abs(0.8 - 2 / 3)
    assert calibration_error(SIX, bins=2) == pytest.approx(expected)
    low, high = reliability(SIX, bins=2)
    assert low.confidence == pytest.approx(0.5)
    assert low.right.mean == pytest.approx(1 / 3)
    assert high.confidence == pytest.approx(0.8)
    assert high.right.mean == pytest.approx(2 / 3)


def test_perfect_calibration_has_no_error() -> None:
    """Of four stated at .75, three right: the error is 0."""
    stated = [prediction("abc", right, confidence=0.75) for right in "aaab"]
    assert calibration_error(stated, bins=1) == pytest.approx(0.0)


def test_more_bins_than_predictions_leave_none_empty() -> None:
    """Six predictions in ten bins make six of one each."""
    assert [part.right.n for part in reliability(SIX, bins=10)] == [1] * 6


def test_risk_and_coverage_go_from_the_surest_down() -> None:
    """Right, right, wrong, right, wrong, wrong: the risk after each, at sixths of coverage."""
    points = risk_coverage(SIX)
    assert [point.coverage for point in points] == pytest.approx([n / 6 for n in range(1, 7)])
    assert [point.risk for point in points] == pytest.approx([0, 0, 1 / 3, 1 / 4, 2 / 5, 3 / 6])
    assert [point.threshold for point in points] == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]


@pytest.mark.parametrize(("coverage", "share"), [(1 / 3, 1.0), (0.5, 2 / 3), (1.0, 0.5)])
def test_accuracy_among_the_surest(coverage: float, share: float) -> None:
    """The surest third is all right, half of the six two thirds, all a half."""
    assert top1_at_coverage(SIX, coverage) == pytest.approx(share)


def test_nothing_is_gained_by_the_order_of_ties() -> None:
    """Of equally sure answers the wrong ones count first, whatever order they came in."""
    tied = [prediction("abc", "b", name="z"), prediction("abc", "a", name="y")]
    assert risk_coverage(tied) == risk_coverage(tied[::-1])
    assert top1_at_coverage(tied, 0.5) == 0.0


def test_the_table_of_causes() -> None:
    """A row each: how many, ranked first and among three, how often named and rightly."""
    alpha, beta, chi = per_cause(SIX)
    assert alpha == CauseFigures(cause="alpha", n=4, top1=0.5, top3=1.0, named=3, precision=2 / 3)
    assert beta == CauseFigures(cause="beta", n=1, top1=1.0, top3=1.0, named=3, precision=1 / 3)
    assert (chi.n, chi.top1, chi.named) == (1, 0.0, 0)
    assert chi.precision is None


def test_confusion_counts_pairs() -> None:
    """Each prediction counts once, at its right cause and the cause named."""
    assert confusion(SIX) == {
        ("alpha", "alpha"): 2,
        ("alpha", "beta"): 2,
        ("beta", "beta"): 1,
        ("chi", "alpha"): 1,
    }


def test_splits_part_by_language_and_log() -> None:
    """Every prediction is in one language part and one log part; empty parts are left out."""

    def made(name: str, language: str, log: str) -> Prediction:
        return Prediction(
            thread=thread(name, language=language, log=log),
            causes=("alpha",),
            probabilities=(1.0,),
        )

    parts = splits([made("i1", "en", "x"), made("i2", "zh", ""), made("i3", "en", "")])
    names = {key: [item.thread.id for item in part] for key, part in parts.items()}
    assert names == {
        "English": ["i1", "i3"],
        "Chinese": ["i2"],
        "with a log": ["i1"],
        "words only": ["i2", "i3"],
    }
    assert "Chinese" not in splits([made("i1", "en", "x")])
