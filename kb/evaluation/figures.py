"""Figures over held-out predictions: accuracy, calibration, what abstaining buys."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kb.diagnose.evidence_model import Ranking
from kb.evaluation.intervals import figure_interval, share
from kb.evaluation.published import CauseFigures, ConfidenceBin, Interval
from kb.train.threads import LabelledThread

BINS = 10
COVERAGE = 0.8  # share of answers where abstaining is judged
EXPLAINING = 4  # pieces of evidence named beside a prediction
TITLES = {
    "top1": "first is right",
    "top1_also": "first is right or as good",
    "top3": "right among three",
    "top3_also": "right or as good among three",
    "macro_top1": "first is right, per cause",
    "macro_top3": "right among three, per cause",
    "calibration_error": "calibration error",
    "top1_at_80": "first is right, surest 80%",
}
"""Name of a figure → how people read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One thread's held-out ranking: causes best first with their probabilities.

    `because` names the strongest evidence for the leading cause.
    """

    thread: LabelledThread
    causes: tuple[str, ...]
    probabilities: tuple[float, ...]
    because: tuple[str, ...] = ()

    @classmethod
    def of(cls, thread: LabelledThread, ranking: Ranking) -> Prediction:
        """A ranking beside the thread's label."""
        parts = ranking.causes[0].contributions[:EXPLAINING]
        return cls(
            thread=thread,
            causes=tuple(scored.cause for scored in ranking.causes),
            probabilities=tuple(scored.probability for scored in ranking.causes),
            because=tuple(part.signal.name for part in parts if part.weight > 0),
        )

    @property
    def rank(self) -> int:
        """Place of the right cause, counted from 1."""
        return self.causes.index(self.thread.cause) + 1

    @property
    def rank_also(self) -> int:
        """Place of the first cause that is right or equally defensible."""
        good = (self.thread.cause, *self.thread.also)
        return min(self.causes.index(cause) for cause in good if cause in self.causes) + 1

    @property
    def confidence(self) -> float:
        """Probability of the leading cause."""
        return self.probabilities[0]


def quality(predictions: Sequence[Prediction]) -> dict[str, Interval]:
    """All figures of `predictions` by name; `macro` averages per cause."""
    return {
        "top1": share(predictions, lambda item: item.rank == 1),
        "top1_also": share(predictions, lambda item: item.rank_also == 1),
        "top3": share(predictions, lambda item: item.rank <= 3),
        "top3_also": share(predictions, lambda item: item.rank_also <= 3),
        "macro_top1": figure_interval(predictions, lambda drawn: macro(drawn, 1)),
        "macro_top3": figure_interval(predictions, lambda drawn: macro(drawn, 3)),
        "calibration_error": figure_interval(predictions, calibration_error),
        "top1_at_80": figure_interval(predictions, lambda drawn: top1_at_coverage(drawn, COVERAGE)),
    }


def macro(predictions: Sequence[Prediction], k: int) -> float:
    """Mean over causes of the share ranked among the first `k`."""
    per_cause: Mapping[str, list[bool]] = defaultdict(list)
    for item in predictions:
        per_cause[item.thread.cause].append(item.rank <= k)
    return sum(sum(values) / len(values) for values in per_cause.values()) / len(per_cause)


# --- calibration -------------------------------------------------------------------------------


class Answer(Protocol):
    """How surely a cause was named first, and the place of the right one, from 1."""

    @property
    def confidence(self) -> float:
        """Stated probability."""

    @property
    def rank(self) -> int:
        """1 where it was right."""


def reliability(predictions: Sequence[Answer], bins: int = BINS) -> tuple[ConfidenceBin, ...]:
    """Bins of equally many predictions, least confident first; empty bins are left out."""
    return tuple(
        ConfidenceBin(
            confidence=sum(confidence for confidence, _ in pairs) / len(pairs),
            right=share(pairs, lambda pair: pair[1]),
        )
        for pairs in _binned(predictions, bins)
    )


def calibration_error(predictions: Sequence[Answer], bins: int = BINS) -> float:
    """Expected calibration error of the leading cause, in equally filled bins.

    Source: Guo et al. 2017, https://arxiv.org/abs/1706.04599 (bins here hold equal counts).
    """
    gaps = [
        abs(sum(confidence - right for confidence, right in pairs))
        for pairs in _binned(predictions, bins)
    ]
    return sum(gaps) / len(predictions)


def _binned(predictions: Sequence[Answer], bins: int) -> list[list[tuple[float, bool]]]:
    """Confidence and whether it was right, in bins of equal counts."""
    pairs = sorted((item.confidence, item.rank == 1) for item in predictions)
    edges = [round(number * len(pairs) / bins) for number in range(bins + 1)]
    return [pairs[low:high] for low, high in itertools.pairwise(edges) if low < high]


# --- what abstaining buys ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPoint:
    """Answering only at `threshold` or above: the share answered, and the share of it wrong."""

    threshold: float
    coverage: float
    risk: float


def risk_coverage(predictions: Sequence[Answer]) -> list[RiskPoint]:
    """The curve from the surest prediction to all of them.

    Source: El-Yaniv and Wiener 2010, https://www.jmlr.org/papers/v11/el-yaniv10a.html
    """
    ranked = _surest_first(predictions)
    wrong = itertools.accumulate(item.rank != 1 for item in ranked)
    return [
        RiskPoint(threshold=item.confidence, coverage=count / len(ranked), risk=errors / count)
        for count, (item, errors) in enumerate(zip(ranked, wrong, strict=True), start=1)
    ]


def top1_at_coverage(predictions: Sequence[Answer], coverage: float) -> float:
    """Share right among the `coverage` most confident predictions."""
    answered = _surest_first(predictions)[: max(1, round(coverage * len(predictions)))]
    return sum(item.rank == 1 for item in answered) / len(answered)


def _surest_first(predictions: Sequence[Answer]) -> list[Answer]:
    """Of equally sure ones the wrong ones first: nothing is gained by their order."""
    return sorted(predictions, key=lambda item: (-item.confidence, -item.rank))


# --- tables ------------------------------------------------------------------------------------


def per_cause(predictions: Sequence[Prediction]) -> tuple[CauseFigures, ...]:
    """A row a cause that is right or named first, most frequent first."""
    named = Counter(item.causes[0] for item in predictions)
    ranks: dict[str, list[int]] = {cause: [] for cause in named}
    for item in predictions:
        ranks.setdefault(item.thread.cause, []).append(item.rank)
    return tuple(
        CauseFigures(
            cause=cause,
            n=len(places),
            named=named[cause],
            top1=_ratio(sum(place == 1 for place in places), len(places)),
            top3=_ratio(sum(place <= 3 for place in places), len(places)),
            precision=_ratio(sum(place == 1 for place in places), named[cause]),
        )
        for cause, places in sorted(ranks.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def confusion(predictions: Sequence[Prediction]) -> dict[tuple[str, str], int]:
    """How often a cause (first) was given as another or itself (second)."""
    pairs = Counter((item.thread.cause, item.causes[0]) for item in predictions)
    return dict(sorted(pairs.items()))


def splits(predictions: Sequence[Prediction]) -> dict[str, list[Prediction]]:
    """The predictions by language and by whether a log was posted; empty parts are left out."""
    parts = {
        "English": [item for item in predictions if item.thread.language != "zh"],
        "Chinese": [item for item in predictions if item.thread.language == "zh"],
        "with a log": [item for item in predictions if item.thread.log],
        "words only": [item for item in predictions if not item.thread.log],
    }
    return {name: part for name, part in parts.items() if part}
