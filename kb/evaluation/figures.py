"""Figures over held-out predictions: accuracy, calibration, what abstaining buys."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kb.evaluation.incidents import Incident
from kb.evaluation.intervals import Interval, figure_interval, mean_interval

BINS = 10
COVERAGE = 0.8  # share of answers kept where abstaining is judged
FIGURE_RESAMPLES = 500  # of figures that are no mean: each draw costs a millisecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One incident's held-out ranking: causes best first with their probabilities.

    `because` names the strongest evidence for the leading cause.
    """

    incident: Incident
    causes: tuple[str, ...]
    probabilities: tuple[float, ...]
    because: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        """Place of the right cause, counted from 1."""
        return self.causes.index(self.incident.cause) + 1

    @property
    def rank_also(self) -> int:
        """Place of the first cause that is right or equally defensible."""
        good = (self.incident.cause, *self.incident.also)
        return min(self.causes.index(cause) for cause in good if cause in self.causes) + 1

    @property
    def confidence(self) -> float:
        """Probability of the leading cause."""
        return self.probabilities[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Figures over a set of predictions; `macro` averages per cause."""

    top1: Interval
    top3: Interval
    top1_also: Interval
    top3_also: Interval
    macro_top1: Interval
    macro_top3: Interval
    calibration_error: Interval
    top1_at_80: Interval


def quality(predictions: Sequence[Prediction]) -> Quality:
    """All figures of `predictions`."""
    return Quality(
        top1=mean_interval([float(item.rank == 1) for item in predictions]),
        top3=mean_interval([float(item.rank <= 3) for item in predictions]),
        top1_also=mean_interval([float(item.rank_also == 1) for item in predictions]),
        top3_also=mean_interval([float(item.rank_also <= 3) for item in predictions]),
        macro_top1=_interval(predictions, lambda drawn: macro(drawn, 1)),
        macro_top3=_interval(predictions, lambda drawn: macro(drawn, 3)),
        calibration_error=_interval(predictions, calibration_error),
        top1_at_80=_interval(predictions, lambda drawn: top1_at_coverage(drawn, COVERAGE)),
    )


def _interval(
    predictions: Sequence[Prediction], figure: Callable[[Sequence[Prediction]], float]
) -> Interval:
    return figure_interval(predictions, figure, resamples=FIGURE_RESAMPLES)


def macro(predictions: Sequence[Prediction], k: int) -> float:
    """Mean over causes of the share ranked among the first `k`."""
    per_cause: Mapping[str, list[bool]] = defaultdict(list)
    for item in predictions:
        per_cause[item.incident.cause].append(item.rank <= k)
    return sum(sum(values) / len(values) for values in per_cause.values()) / len(per_cause)


# --- calibration -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Predictions of like confidence: its mean and the share that was right."""

    confidence: float
    right: Interval


def reliability(predictions: Sequence[Prediction], bins: int = BINS) -> list[Bin]:
    """Bins of equally many predictions, least confident first; empty bins are left out."""
    return [
        Bin(
            confidence=sum(confidence for confidence, _ in part) / len(part),
            right=mean_interval([float(right) for _, right in part]),
        )
        for part in _parts(predictions, bins)
    ]


def calibration_error(predictions: Sequence[Prediction], bins: int = BINS) -> float:
    """Expected calibration error of the leading cause, in equally filled bins.

    Source: Guo et al. 2017, https://arxiv.org/abs/1706.04599 (bins here hold equal counts).
    """
    gaps = [
        abs(sum(confidence - right for confidence, right in part))
        for part in _parts(predictions, bins)
    ]
    return sum(gaps) / len(predictions)


def _parts(predictions: Sequence[Prediction], bins: int) -> list[list[tuple[float, bool]]]:
    pairs = sorted((item.confidence, item.rank == 1) for item in predictions)
    edges = [round(number * len(pairs) / bins) for number in range(bins + 1)]
    parts = [pairs[low:high] for low, high in itertools.pairwise(edges)]
    return [part for part in parts if part]


# --- what abstaining buys ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPoint:
    """Answering only at `threshold` or above: the share answered, and the share of it wrong."""

    threshold: float
    coverage: float
    risk: float


def risk_coverage(predictions: Sequence[Prediction]) -> list[RiskPoint]:
    """The curve from the surest prediction to all of them.

    Source: El-Yaniv and Wiener 2010, https://www.jmlr.org/papers/v11/el-yaniv10a.html
    """
    wrong = 0
    points = []
    for count, item in enumerate(_surest_first(predictions), start=1):
        wrong += item.rank != 1
        points.append(
            RiskPoint(
                threshold=item.confidence, coverage=count / len(predictions), risk=wrong / count
            )
        )
    return points


def top1_at_coverage(predictions: Sequence[Prediction], coverage: float) -> float:
    """Share right among the `coverage` most confident predictions."""
    kept = _surest_first(predictions)[: max(1, round(coverage * len(predictions)))]
    return sum(item.rank == 1 for item in kept) / len(kept)


def _surest_first(predictions: Sequence[Prediction]) -> list[Prediction]:
    return sorted(predictions, key=lambda item: (-item.confidence, item.incident.id))


# --- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseRow:
    """One cause: how many incidents have it, how they are ranked, how often it is named first."""

    cause: str
    n: int
    top1: float
    top3: float
    named: int
    precision: float


def per_cause(predictions: Sequence[Prediction]) -> list[CauseRow]:
    """A row a cause that is right or named first, most frequent first; no share of nothing: NaN."""
    named = Counter(item.causes[0] for item in predictions)
    by_cause: dict[str, list[int]] = {cause: [] for cause in named}
    for item in predictions:
        by_cause.setdefault(item.incident.cause, []).append(item.rank)
    rows = [
        CauseRow(
            cause=cause,
            n=len(places),
            top1=_share(sum(place == 1 for place in places), len(places)),
            top3=_share(sum(place <= 3 for place in places), len(places)),
            named=named[cause],
            precision=_share(sum(place == 1 for place in places), named[cause]),
        )
        for cause, places in by_cause.items()
    ]
    return sorted(rows, key=lambda row: (-row.n, row.cause))


def confusion(predictions: Sequence[Prediction]) -> dict[tuple[str, str], int]:
    """How often a cause (first) was given as another or itself (second)."""
    pairs = Counter((item.incident.cause, item.causes[0]) for item in predictions)
    return dict(sorted(pairs.items()))


def splits(predictions: Sequence[Prediction]) -> dict[str, list[Prediction]]:
    """The predictions by language and by whether a log was posted; empty parts are left out."""
    parts = {
        "English": [item for item in predictions if item.incident.language == "en"],
        "Chinese": [item for item in predictions if item.incident.language == "zh"],
        "with a log": [item for item in predictions if item.incident.log],
        "words only": [item for item in predictions if not item.incident.log],
    }
    return {name: part for name, part in parts.items() if part}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
