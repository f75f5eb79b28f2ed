"""Held-out rankings: every learned weight is cross-fitted.

Folds keep the threads of one project together (and of projects that tell the same story), so no
prediction comes from weights that saw the project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.fit import Sample, calibrate, fit
from kb.diagnose.model import Ranking, Scored, Weights, rank_causes
from kb.evaluation.figures import Prediction
from kb.evaluation.incidents import Incident

FOLDS = 10
SEED = 7
EXPLAINING = 4  # pieces of evidence named beside a prediction


def assign_folds(samples: Sequence[Sample], folds: int = FOLDS) -> dict[str, int]:
    """Fold of each group; a group is never split, groups are dealt largest first."""
    counts = Counter(sample.group for sample in samples)
    dealt = sorted(counts, key=lambda group: (-counts[group], group))
    sizes = [0] * folds
    fold_of: dict[str, int] = {}
    order = np.random.default_rng(SEED).permutation(folds)
    for group in dealt:
        fold = min(range(folds), key=lambda number: (sizes[number], order[number]))
        fold_of[group] = fold
        sizes[fold] += counts[group]
    return fold_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldOut:
    """Held-out scores of n samples, from weights that saw none of their group.

    `logits` has shape (n, causes) at temperature 1, `support` (n,) nats for the leading cause,
    `truth` (n,) the place of the right cause, `folds` (n,).
    """

    folds: NDArray[np.int64]
    logits: NDArray[np.float64]
    support: NDArray[np.float64]
    truth: NDArray[np.int64]

    def calibrate(self, weights: Weights, fold: int | None = None) -> Weights:
        """`weights` calibrated on all samples, or on those outside `fold`."""
        kept = np.ones(len(self.truth), dtype=bool) if fold is None else self.folds != fold
        return calibrate(weights, self.logits[kept], self.support[kept], self.truth[kept])


class CrossFit:
    """Weights fitted and calibrated without one fold, for every fold.

    Args:
        samples: what is learned from and calibrated on.
        causes: ids of all causes.
        more: further samples, only learned from.
    """

    def __init__(
        self, samples: Sequence[Sample], causes: Sequence[str], more: Sequence[Sample] = ()
    ) -> None:
        everything = [*samples, *more]
        self._fold_of = assign_folds(everything)
        fitted = {
            fold: fit([item for item in everything if self._fold_of[item.group] != fold], causes)
            for fold in sorted(set(self._fold_of.values()))
        }
        self._held = self._hold_out(samples, causes, fitted)
        self._weights = {
            fold: self._held.calibrate(weights, fold) for fold, weights in fitted.items()
        }

    def weights_of(self, group: str) -> Weights:
        """Weights that never saw `group`."""
        return self._weights[self._fold_of.get(group, 0)]

    def rank(self, sample: Sample) -> Ranking:
        """The held-out ranking of a sample."""
        return rank_causes(sample.signals, sample.votes, self.weights_of(sample.group))

    def calibrate(self, weights: Weights) -> Weights:
        """`weights` calibrated on all held-out rankings."""
        return self._held.calibrate(weights)

    def _hold_out(
        self, samples: Sequence[Sample], causes: Sequence[str], fitted: dict[int, Weights]
    ) -> _HeldOut:
        folds = [self._fold_of[sample.group] for sample in samples]
        place = {cause: number for number, cause in enumerate(causes)}
        logits = np.zeros((len(samples), len(causes)))
        support = np.zeros(len(samples))
        for number, sample in enumerate(samples):
            ranking = rank_causes(sample.signals, sample.votes, fitted[folds[number]])
            for scored in ranking.causes:
                logits[number, place[scored.cause]] = scored.logit
            support[number] = max(_support(scored) for scored in ranking.causes)
        return _HeldOut(
            folds=np.array(folds, dtype=np.int64),
            logits=logits,
            support=support,
            truth=np.array([place[sample.cause] for sample in samples], dtype=np.int64),
        )


def _support(scored: Scored) -> float:
    return sum(part.weight for part in scored.parts if part.weight > 0)


def predict(
    incidents: Sequence[Incident], samples: Sequence[Sample], fitted: CrossFit
) -> list[Prediction]:
    """Held-out predictions of `incidents`, whose samples stand in the same order."""
    return [
        prediction(incident, fitted.rank(sample))
        for incident, sample in zip(incidents, samples, strict=True)
    ]


def prediction(incident: Incident, ranking: Ranking) -> Prediction:
    """A ranking beside the incident's label."""
    leading = ranking.causes[0]
    return Prediction(
        incident=incident,
        causes=tuple(scored.cause for scored in ranking.causes),
        probabilities=tuple(scored.probability for scored in ranking.causes),
        because=tuple(part.signal.name for part in leading.parts[:EXPLAINING] if part.weight > 0),
    )


def cross_validate(
    incidents: Sequence[Incident],
    samples: Sequence[Sample],
    causes: Sequence[str],
    more: Sequence[Sample] = (),
) -> list[Prediction]:
    """Held-out predictions: log-linear weights, then calibration, each fitted on other folds.

    `samples` belong to `incidents` in order; `more` are only learned from.
    """
    return predict(incidents, samples, CrossFit(samples, causes, more))


def fit_all(
    samples: Sequence[Sample], causes: Sequence[str], more: Sequence[Sample] = (), *, fitted_on: str
) -> Weights:
    """The weights to ship: fitted on all samples, calibrated on held-out predictions."""
    held = CrossFit(samples, causes, more)
    return held.calibrate(fit([*samples, *more], causes, fitted_on=fitted_on))
