"""The evidence model: a log-linear combination of signals into calibrated probabilities.

For each cause c:  logit(c) = prior(c) + Σ over signals  scale(kind) · discounted expert(signal, c)
                                        + learned(signal, c)  +  case_weight · vote(c)

Signals repeat each other (a framework, its stage, its error text), so the expert's weights that
point the same way count in full, then REPEAT_DISCOUNT of it, and so on, strongest first.

`expert` stands in data/*.yaml, everything else in data/weights.json, fitted by `kb.evaluation.fit`.
The softmax at the fitted temperature is shared out with `unknown`: the fewer nats the evidence
moves, the larger the share that none of it decides. Every logit is a sum, so each probability can
be explained by its parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kb.diagnose.signals import Signal
from kb.errors import DataError
from kb.types import EvidenceKind

WEIGHTS_FORMAT = 1
REPEAT_DISCOUNT = 0.85  # 1 double counts, 0.55 forgets; held-out likelihood is best about here
MIN_OPEN = 0.5  # share of the votes that always stays spread evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What was fitted: data/weights.json. Units are nats unless said otherwise.

    Attributes:
        prior: log share of each cause among real incidents, tempered.
        scale: factor on the expert's weights, by kind of signal.
        learned: signal name → cause → correction.
        case_weight: factor on the log votes of similar cases.
        temperature: divisor of all logits, ≥ 0.1.
        unknown_bias, unknown_slope: log odds of "none of these" before any evidence, and how
            much they fall a nat of evidence in favour of the leading cause.
    """

    format: int
    prior: dict[str, float]
    scale: dict[EvidenceKind, float]
    learned: dict[str, dict[str, float]]
    case_weight: float
    temperature: float
    unknown_bias: float
    unknown_slope: float
    fitted_on: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one signal adds to a cause's logit, in nats."""

    signal: Signal
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A cause with its probability and the parts of its logit, strongest first."""

    cause: str
    probability: float
    logit: float
    parts: tuple[Part, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Causes best first (ties by id) with the probability that none of them is it."""

    causes: tuple[Scored, ...]
    unknown: float


def load_weights(path: Path) -> Weights:
    """Read data/weights.json.

    Raises:
        DataError: the file is missing, damaged or of another format.
    """
    try:
        weights = msgspec.json.decode(path.read_bytes(), type=Weights)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", todo="reinstall the package") from error
    except msgspec.DecodeError as error:
        raise DataError(f"{path.name}: {error}", todo="run python -m kb.evaluation.fit") from error
    if weights.format != WEIGHTS_FORMAT:
        raise DataError(
            f"{path.name} has format {weights.format}, this program reads {WEIGHTS_FORMAT}",
            todo="run python -m kb.evaluation.fit",
        )
    return weights


def rank_causes(signals: Sequence[Signal], votes: Mapping[str, float], weights: Weights) -> Ranking:
    """Weigh all signals and the votes of similar cases.

    Args:
        signals: what was observed.
        votes: share of similar cases per cause, summing to at most 1.
        weights: the fitted numbers.
    """
    scored: list[tuple[str, float, list[Part]]] = []
    for cause in weights.prior:
        parts = explain(signals, cause, weights)
        logit = weights.prior[cause] + sum(part.weight for part in parts)
        logit += weights.case_weight * vote_logit(cause, votes, len(weights.prior))
        scored.append((cause, logit / weights.temperature, parts))
    top = max(logit for _, logit, _ in scored)
    total = sum(math.exp(logit - top) for _, logit, _ in scored)
    unknown = _unknown_share(scored, weights)
    ranked = [
        Scored(
            cause=cause,
            probability=(1 - unknown) * math.exp(logit - top) / total,
            logit=logit,
            parts=tuple(sorted(parts, key=lambda part: (-part.weight, part.signal.name))),
        )
        for cause, logit, parts in scored
    ]
    ranked.sort(key=lambda item: (-item.logit, item.cause))
    return Ranking(causes=tuple(ranked), unknown=unknown)


def explain(signals: Sequence[Signal], cause: str, weights: Weights) -> list[Part]:
    """The nats each signal adds to one cause; signals that add nothing are left out."""
    experts = discounted(signals, cause)
    parts: list[Part] = []
    for signal, expert in zip(signals, experts, strict=True):
        learned = weights.learned.get(signal.name, {}).get(cause, 0.0)
        weight = weights.scale.get(signal.kind, 1.0) * expert + learned
        if weight:
            parts.append(Part(signal=signal, weight=weight))
    return parts


def discounted(signals: Sequence[Signal], cause: str) -> list[float]:
    """The expert's weights for `cause`, repeats of one direction discounted, strongest first."""
    raw = [signal.weights.get(cause, 0.0) for signal in signals]
    result = list(raw)
    for sign in (1, -1):
        same = [number for number, weight in enumerate(raw) if weight * sign > 0]
        same.sort(key=lambda number: (-abs(raw[number]), signals[number].name))
        for repeat, number in enumerate(same):
            result[number] = raw[number] * REPEAT_DISCOUNT**repeat
    return result


def vote_logit(cause: str, votes: Mapping[str, float], causes: int) -> float:
    """Log of a cause's share of votes against an even split; what is left open is spread evenly.

    At least MIN_OPEN is left open: cases never rule the other causes out.
    """
    given = sum(votes.values())
    keep = min(1.0, (1 - MIN_OPEN) / given) if given else 0.0
    share = votes.get(cause, 0.0) * keep
    left = (1 - given * keep) / causes
    return math.log((share + left) * causes)


def _unknown_share(scored: list[tuple[str, float, list[Part]]], weights: Weights) -> float:
    support = max(sum(part.weight for part in parts if part.weight > 0) for _, _, parts in scored)
    log_odds = weights.unknown_bias - weights.unknown_slope * support
    return 1 / (1 + math.exp(-log_odds))
