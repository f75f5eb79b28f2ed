"""The evidence model's weights, fitted on labelled samples (`python -m kb.train.fit`).

Maximum a posteriori: the log likelihood of the labels, with Gaussian priors that hold the scales
near 1 (the expert's weights as written) and the learned corrections near 0. Temperature and the
share of `unknown` are fitted on cross-validated predictions, never on fitted ones.
Cross-fitting: every ranking comes from weights that never saw the project. Folds keep the threads
of one project together, and of projects that tell the same story.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.evidence_model import (
    WEIGHTS_FORMAT,
    Ranking,
    Weights,
    discounted,
    rank_causes,
    vote_logit,
)
from kb.diagnose.signals import Signal
from kb.types.vocabulary import EvidenceKind

KINDS: tuple[EvidenceKind, ...] = ("log", "rank", "text", "case", "reader")
PRIOR_TEMPER = 0.7  # the labelled incidents are no fair draw: their shares count less than fully
PRIOR_COUNT = 2.0  # incidents added to every cause
ALSO_TARGET = 0.25  # share of the label that goes to equally defensible causes
EXPERT_TARGET = 0.7  # the same, to what an expert thought where nothing is confirmed
SCALE_PULL = 4.0  # precision of a scale around 1
# Own cases are left out while fitting, so what a case of the same project is worth cannot be
# learned: it is held at 1. Most labels are an expert's opinion on the same words, which flatters
# the learned reader (left to the fit it takes .78). The stronger it and the votes are, the more the
# wording decides: a case's symptoms in Chinese and in English get the same first cause in .85 of
# the cases with both at .5, in .88 with .4 and .35, as many of them right.
HELD: dict[EvidenceKind, float] = {"case": 1.0, "reader": 0.4}
SCALES = np.array([HELD.get(kind, 1.0) for kind in KINDS])
PULLS = np.array([1e6 if kind in HELD else SCALE_PULL for kind in KINDS])
LEARNED_PULL = 20.0  # precision of a learned correction around 0; held-out likelihood is flat here
# Votes of similar cases are held as well. Of 215 first-sight threads they leave first causes alone
# or cost some (.47 right at .5, .49 at .35) and bring right ones among three (.805, .795).
CASE_START, CASE_PULL = 0.35, 1e7
MIN_SUPPORT = 2  # incidents a signal must stand in before anything is learned of it
FOLDS = 10
SEED = 7  # of the order in which folds of equal size are filled
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A labelled incident: what was observed and what it was. `group` keeps folds apart.

    `words` is the description the learned reader reads; `p` what an expert thought on reading it.
    `prior_weight` is what it counts when asked how frequent causes are.
    """

    signals: tuple[Signal, ...]
    votes: dict[str, float]
    cause: str
    also: tuple[str, ...]
    group: str
    weight: float = 1.0
    words: str = ""
    p: Mapping[str, float] = field(default_factory=dict)
    prior_weight: float = 1.0

    @property
    def target(self) -> dict[str, float]:
        """Share of the label per cause; they sum to 1."""
        shares = {self.cause: 1 - (ALSO_TARGET if self.also else 0.0)}
        for cause in self.also:
            shares[cause] = shares.get(cause, 0.0) + ALSO_TARGET / len(self.also)
        total = sum(self.p.values())
        if not total:
            return shares
        own = {cause: (1 - EXPERT_TARGET) * share for cause, share in shares.items()}
        for cause, share in self.p.items():
            own[cause] = own.get(cause, 0.0) + EXPERT_TARGET * share / total
        return own


@dataclass(frozen=True, slots=True)
class _Matrix:
    """Samples as arrays: n samples, c causes, k kinds, f features."""

    expert: Floats  # (n, k, c)
    votes: Floats  # (n, c)
    present: Floats  # (n, f)
    target: Floats  # (n, c), rows sum to 1
    weight: Floats  # (n,)
    names: tuple[str, ...]


def prior_of(samples: Sequence[Sample], causes: Sequence[str]) -> dict[str, float]:
    """Tempered log shares of the causes, smoothed by PRIOR_COUNT."""
    counts = dict.fromkeys(causes, PRIOR_COUNT)
    for sample in samples:
        counts[sample.cause] += sample.prior_weight
    total = sum(counts.values())
    return {cause: PRIOR_TEMPER * math.log(count / total) for cause, count in counts.items()}


def fit(samples: Sequence[Sample], causes: Sequence[str], *, fitted_on: str = "") -> Weights:
    """Weights of the log-linear part; temperature 1 and no `unknown` yet (see `calibrate`)."""
    from scipy.optimize import minimize

    matrix = _matrix(samples, causes)
    prior = prior_of(samples, causes)
    base = np.array([prior[cause] for cause in causes])
    kinds, features = len(KINDS), len(matrix.names)
    start = np.concatenate([SCALES, [CASE_START], np.zeros(features * len(causes))])
    result = minimize(
        _objective,
        start,
        args=(matrix, base),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 300},
    )
    scales, case_weight = result.x[:kinds], float(result.x[kinds])
    learned = result.x[kinds + 1 :].reshape(features, len(causes))
    return Weights(
        format=WEIGHTS_FORMAT,
        prior={cause: round(value, 4) for cause, value in prior.items()},
        scale=cast(
            "dict[EvidenceKind, float]",
            {kind: round(float(value), 4) for kind, value in zip(KINDS, scales, strict=True)},
        ),
        learned=_named(learned, matrix.names, causes),
        case_weight=round(max(case_weight, 0.0), 4),
        temperature=1.0,
        unknown_bias=-20.0,
        unknown_slope=0.0,
        fitted_on=fitted_on,
    )


def _named(
    learned: Floats, names: Sequence[str], causes: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The corrections worth keeping, by name."""
    table: dict[str, dict[str, float]] = {}
    for row, name in zip(learned, names, strict=True):
        corrections = {
            cause: round(float(value), 3)
            for cause, value in zip(causes, row, strict=True)
            if abs(value) >= 0.02
        }
        if corrections:
            table[name] = corrections
    return table


def _matrix(samples: Sequence[Sample], causes: Sequence[str]) -> _Matrix:
    place = {cause: number for number, cause in enumerate(causes)}
    counts = Counter(
        name
        for sample in samples
        for name in {s.name for s in sample.signals if s.weights and s.kind != "reader"}
    )
    names = tuple(sorted(name for name, count in counts.items() if count >= MIN_SUPPORT))
    column = {name: number for number, name in enumerate(names)}
    expert = np.zeros((len(samples), len(KINDS), len(causes)))
    votes = np.zeros((len(samples), len(causes)))
    present = np.zeros((len(samples), len(names)))
    target = np.zeros((len(samples), len(causes)))
    for row, sample in enumerate(samples):
        for cause in causes:
            shares = discounted(sample.signals, cause)
            for signal, share in zip(sample.signals, shares, strict=True):
                expert[row, KINDS.index(signal.kind), place[cause]] += share
        for signal in sample.signals:
            if signal.name in column:
                present[row, column[signal.name]] = 1.0
        for cause in causes:
            votes[row, place[cause]] = vote_logit(cause, sample.votes, len(causes))
        for cause, share in sample.target.items():
            if cause in place:
                target[row, place[cause]] = share
    weight = np.array([sample.weight for sample in samples])
    return _Matrix(expert, votes, present, target, weight, names)


def _objective(values: Floats, matrix: _Matrix, base: Floats) -> tuple[float, Floats]:
    """Negative log posterior and its gradient."""
    kinds = len(KINDS)
    scales, case_weight = values[:kinds], values[kinds]
    learned = values[kinds + 1 :].reshape(len(matrix.names), len(base))
    logits = base + np.einsum("k,nkc->nc", scales, matrix.expert)
    logits += case_weight * matrix.votes + matrix.present @ learned
    logits -= logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    loss = -float((matrix.weight[:, None] * matrix.target * logs).sum())
    loss += 0.5 * float((PULLS * (scales - SCALES) ** 2).sum())
    loss += 0.5 * CASE_PULL * float((case_weight - CASE_START) ** 2)
    loss += 0.5 * LEARNED_PULL * float((learned**2).sum())
    error = matrix.weight[:, None] * (np.exp(logs) - matrix.target)
    gradient = np.concatenate(
        [
            np.einsum("nc,nkc->k", error, matrix.expert) + PULLS * (scales - SCALES),
            [float((error * matrix.votes).sum()) + CASE_PULL * (case_weight - CASE_START)],
            (matrix.present.T @ error + LEARNED_PULL * learned).ravel(),
        ]
    )
    return loss, gradient


def calibrate(
    weights: Weights, logits: Floats, support: Floats, truth: NDArray[np.int64]
) -> Weights:
    """Temperature and `unknown` share, from held-out predictions.

    Args:
        weights: the fitted weights.
        logits: shape (n, causes), held-out, at temperature 1.
        support: shape (n,), nats of evidence for the leading cause.
        truth: shape (n,), place of the right cause.
    """
    from scipy.optimize import minimize

    order = np.argsort(-logits, axis=1)
    missed = (order[:, :3] != truth[:, None]).all(axis=1).astype(float)
    right = (order[:, 0] == truth).astype(float)

    def unknown_loss(pair: Floats) -> float:
        share = 1 / (1 + np.exp(-(pair[0] - np.exp(pair[1]) * support)))
        share = np.clip(share, 1e-6, 1 - 1e-6)
        likelihood = missed * np.log(share) + (1 - missed) * np.log(1 - share)
        return float(-likelihood.sum() + 0.5 * ((pair[1] + 1.5) ** 2))

    bias, log_slope = minimize(unknown_loss, np.array([-1.0, -1.5]), method="Nelder-Mead").x
    unknown = 1 / (1 + np.exp(-(bias - math.exp(log_slope) * support)))

    def temperature_loss(temperature: float) -> float:
        scaled = logits / temperature
        scaled = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        top = (1 - unknown) * scaled.max(axis=1) / scaled.sum(axis=1)
        top = np.clip(top, 1e-6, 1 - 1e-6)
        return float(-(right * np.log(top) + (1 - right) * np.log(1 - top)).sum())

    grid = [round(0.4 + 0.05 * step, 2) for step in range(60)]
    temperature = min(grid, key=temperature_loss)
    return replace(
        weights,
        temperature=temperature,
        unknown_bias=round(float(bias), 4),
        unknown_slope=round(math.exp(float(log_slope)), 4),
    )


# --- cross-fitting -------------------------------------------------------------------------------


def assign_folds(samples: Sequence[Sample], folds: int = FOLDS) -> dict[str, int]:
    """Fold of each group; a group is never split, groups are dealt largest first."""
    counts = Counter(sample.group for sample in samples)
    sizes = [0] * folds
    fold_of: dict[str, int] = {}
    order = np.random.default_rng(SEED).permutation(folds)
    for group in sorted(counts, key=lambda group: (-counts[group], group)):
        fold = min(range(folds), key=lambda number: (sizes[number], order[number]))
        fold_of[group] = fold
        sizes[fold] += counts[group]
    return fold_of


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
        self._folds = np.array([self._fold_of[sample.group] for sample in samples], dtype=np.int64)
        place = {cause: number for number, cause in enumerate(causes)}
        self._truth = np.array([place[sample.cause] for sample in samples], dtype=np.int64)
        self._logits = np.zeros((len(samples), len(causes)))  # at temperature 1
        self._support = np.zeros(len(samples))  # nats for the leading cause
        for number, sample in enumerate(samples):
            weights = fitted[int(self._folds[number])]
            for scored in rank_causes(sample.signals, sample.votes, weights).causes:
                self._logits[number, place[scored.cause]] = scored.logit
                support = sum(part.weight for part in scored.contributions if part.weight > 0)
                self._support[number] = max(self._support[number], support)
        self._weights = {fold: self.calibrate(weights, fold) for fold, weights in fitted.items()}

    def weights_of(self, group: str) -> Weights:
        """Weights that never saw `group`."""
        return self._weights[self._fold_of.get(group, 0)]

    def rank(self, sample: Sample) -> Ranking:
        """The held-out ranking of a sample."""
        return rank_causes(sample.signals, sample.votes, self.weights_of(sample.group))

    def calibrate(self, weights: Weights, fold: int | None = None) -> Weights:
        """`weights` calibrated on all held-out rankings, or on those outside `fold`."""
        outside = np.ones(len(self._truth), dtype=bool) if fold is None else self._folds != fold
        return calibrate(
            weights, self._logits[outside], self._support[outside], self._truth[outside]
        )
