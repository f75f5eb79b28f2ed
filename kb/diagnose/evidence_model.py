"""The evidence model: a log-linear combination of signals into calibrated probabilities.

For each cause c:  logit(c) = prior(c) + Σ over signals  scale(kind) · discounted expert(signal, c)
                                        + learned(signal, c)  +  case_weight · vote(c)

Signals repeat each other (a framework, its stage, its error text), so the expert's weights that
point the same way count in full, then REPEAT_DISCOUNT of it, and so on, strongest first.

`expert` stands in data/*.yaml, everything else in data/weights.json, fitted by `kb.train.fit`.
The softmax at the fitted temperature is shared out with `unknown`: the fewer nats the evidence
moves, the larger the share that none of it decides. What a person rules out takes from its causes
and gives to `unknown`: that the network is fine speaks for no other cause. Every logit is a sum,
so each probability can be explained by its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kb.diagnose.signals import Signal
from kb.errors import DataError
from kb.types.vocabulary import EvidenceKind, ReaderName

WEIGHTS = "weights.json"  # of data/
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
class Contribution:
    """What one signal adds to a cause's logit, in nats."""

    signal: Signal
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCause:
    """A cause with its probability and what contributes to its logit, most first."""

    cause: str
    probability: float
    logit: float
    contributions: tuple[Contribution, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Causes best first (ties by id) with the probability that none of them is it."""

    causes: tuple[ScoredCause, ...]
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
        raise DataError(f"{path.name}: {error}", todo="run python -m kb.train.fit") from error
    if weights.format != WEIGHTS_FORMAT:
        raise DataError(
            f"{path.name} has format {weights.format}, this program reads {WEIGHTS_FORMAT}",
            todo="run python -m kb.train.fit",
        )
    return weights


def rank_causes(signals: Sequence[Signal], votes: Mapping[str, float], weights: Weights) -> Ranking:
    """Weigh all signals and the votes of similar cases.

    Args:
        signals: what was observed.
        votes: share of similar cases per cause, summing to at most 1.
        weights: the fitted numbers.
    """
    explained = {cause: explain(signals, cause, weights) for cause in weights.prior}
    denials = {id(signal) for signal in signals if signal.rules_out}
    logits: dict[str, float] = {}
    against: dict[str, float] = {}
    for cause, contributions in explained.items():
        evidence = sum(item.weight for item in contributions if id(item.signal) not in denials)
        ruled_out = sum(item.weight for item in contributions if id(item.signal) in denials)
        vote = weights.case_weight * vote_logit(cause, votes, len(weights.prior))
        logits[cause] = (weights.prior[cause] + evidence + vote) / weights.temperature
        against[cause] = min(0.0, ruled_out) / weights.temperature
    top = max(logits.values())
    total = sum(math.exp(logit - top) for logit in logits.values())
    decided = 1 - _unknown_share(explained.values(), weights)
    causes = [
        ScoredCause(
            cause=cause,
            probability=decided * math.exp(logit - top + against[cause]) / total,
            logit=logit + against[cause],
            contributions=tuple(explained[cause]),
        )
        for cause, logit in sorted(
            logits.items(), key=lambda pair: (-pair[1] - against[pair[0]], pair[0])
        )
    ]
    return Ranking(causes=tuple(causes), unknown=1 - sum(cause.probability for cause in causes))


def opinions(
    ranking: Ranking, votes: Mapping[str, float], weights: Weights
) -> dict[ReaderName, dict[str, float]]:
    """What parts of the evidence alone would say: the shares of all causes, by part.

    Parts are what was observed, the learned reader, and similar cases; one that said nothing of
    the input is left out.
    """
    parts: dict[ReaderName, dict[str, float]] = {}
    for name, kinds in _PARTS.items():
        nats = {
            scored.cause: sum(
                one.weight for one in scored.contributions if one.signal.kind in kinds
            )
            for scored in ranking.causes
        }
        if name == "cases":
            for cause in nats:
                nats[cause] += weights.case_weight * vote_logit(cause, votes, len(nats))
        if any(nats.values()):
            logits = {c: (weights.prior[c] + n) / weights.temperature for c, n in nats.items()}
            top = max(logits.values())
            total = sum(math.exp(logit - top) for logit in logits.values())
            parts[name] = {c: math.exp(logit - top) / total for c, logit in logits.items()}
    return parts


_PARTS: Mapping[ReaderName, frozenset[EvidenceKind]] = {
    "evidence": frozenset({"log", "rank", "text", "prior"}),
    "reader": frozenset({"reader"}),
    "cases": frozenset({"case"}),
}


def explain(signals: Sequence[Signal], cause: str, weights: Weights) -> list[Contribution]:
    """The nats each signal adds to one cause, most first; those that add nothing are left out."""
    contributions: list[Contribution] = []
    for signal, expert in zip(signals, discounted(signals, cause), strict=True):
        learned = weights.learned.get(signal.name, {}).get(cause, 0.0)
        weight = weights.scale.get(signal.kind, 1.0) * expert + learned
        if weight:
            contributions.append(Contribution(signal=signal, weight=weight))
    return sorted(contributions, key=lambda item: (-item.weight, item.signal.name))


def discounted(signals: Sequence[Signal], cause: str) -> list[float]:
    """The expert's weights for `cause`, repeats of one direction discounted, strongest first."""
    raw = [signal.weights.get(cause, 0.0) for signal in signals]
    result = list(raw)
    for sign in (1, -1):
        same = [
            number
            for number, weight in enumerate(raw)
            # the reader's are parts of one sum: they repeat nothing
            if weight * sign > 0 and signals[number].kind != "reader"
        ]
        same.sort(key=lambda number: (-abs(raw[number]), signals[number].name))
        for repeat, number in enumerate(same):
            result[number] = raw[number] * REPEAT_DISCOUNT**repeat
    return result


def vote_logit(cause: str, votes: Mapping[str, float], causes: int) -> float:
    """Log of a cause's share of votes against an even split; what is left open is spread evenly.

    At least MIN_OPEN is left open: cases never rule the other causes out.
    """
    cast = sum(votes.values())
    factor = min(1.0, (1 - MIN_OPEN) / cast) if cast else 0.0
    share = votes.get(cause, 0.0) * factor
    left = (1 - cast * factor) / causes
    return math.log((share + left) * causes)


def _unknown_share(explained: Iterable[Sequence[Contribution]], weights: Weights) -> float:
    """The fewer nats speak for the cause with most of them, the larger."""
    support = max(sum(max(item.weight, 0.0) for item in items) for items in explained)
    log_odds = weights.unknown_bias - weights.unknown_slope * support
    return 1 / (1 + math.exp(-log_odds))
