"""Quality of the diagnosis over labelled incidents, each judged without its own case.

Every learned weight is cross-fitted: folds keep the threads of one project together, so no
prediction comes from weights that saw the project.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.fit import Sample, calibrate, fit
from kb.diagnose.model import Scored, Weights, rank_causes
from kb.diagnose.signals import Signal
from kb.evaluation.incidents import Incident
from kb.evaluation.intervals import Interval, mean_interval
from kb.service import Service
from kb.types import UNKNOWN

FOLDS = 10
CASE_WEIGHT = 0.3  # of a case's symptoms beside a thread: two languages, and written knowingly
BINS = 10
SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One incident's held-out ranking: causes best first with their probabilities."""

    incident: Incident
    causes: tuple[str, ...]
    probabilities: tuple[float, ...]

    @property
    def rank(self) -> int:
        """Place of the right cause, counted from 1."""
        return self.causes.index(self.incident.cause) + 1


def samples_of(incidents: Sequence[Incident], service: Service) -> list[Sample]:
    """Signals and votes of each incident; its own cases do not vote."""
    own = _cases_by_url(service)
    samples = []
    for incident in incidents:
        signals, votes = _observe(incident.text, service, own.get(_thread(incident.url), ()))
        samples.append(
            Sample(
                signals=signals,
                votes=votes,
                cause=incident.cause,
                also=incident.also,
                group=incident.repo.lower(),
            )
        )
    return samples


def case_samples(service: Service) -> list[Sample]:
    """The symptoms of every shipped case as further samples, one a language; it does not vote."""
    samples = []
    for case in service.knowledge.cases:
        for section in case.sections:
            if section.role != "symptoms" or case.causes[0].id == UNKNOWN:
                continue
            signals, votes = _observe(section.text, service, (case.id,))
            samples.append(
                Sample(
                    signals=signals,
                    votes=votes,
                    cause=case.causes[0].id,
                    also=tuple(claim.id for claim in case.causes[1:]),
                    group=case.project.lower(),
                    weight=CASE_WEIGHT,
                )
            )
    return samples


def _observe(
    text: str, service: Service, exclude: Sequence[str]
) -> tuple[tuple[Signal, ...], dict[str, float]]:
    reading = service.reader.read_text(text)
    found = service.similar(reading, exclude=exclude)
    entries = service.entries_of(found)
    signals = (*service.engine.signals(reading), *service.engine.kin(reading, found, entries))
    return signals, service.engine.votes(found, entries)


def _thread(url: str) -> str:
    """The address of a thread without the place inside it."""
    return url.split("#", maxsplit=1)[0].rstrip("/").lower()


def _cases_by_url(service: Service) -> dict[str, tuple[str, ...]]:
    """Ids of the cases that stand on each thread."""
    table: dict[str, list[str]] = defaultdict(list)
    for case in service.knowledge.cases:
        for url in {_thread(source.url) for source in case.sources} | {_thread(case.url)}:
            table[url].append(case.id)
    return {url: tuple(ids) for url, ids in table.items()}


def folds_of(samples: Sequence[Sample], folds: int = FOLDS) -> NDArray[np.int64]:
    """Fold of each sample; a group is never split, groups are dealt largest first."""
    counts = Counter(sample.group for sample in samples)
    shuffled = sorted(counts, key=lambda group: (-counts[group], group))
    sizes = [0] * folds
    fold_of: dict[str, int] = {}
    order = np.random.default_rng(SEED).permutation(folds)
    for group in shuffled:
        fold = min(range(folds), key=lambda number: (sizes[number], order[number]))
        fold_of[group] = fold
        sizes[fold] += counts[group]
    return np.array([fold_of[sample.group] for sample in samples])


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldOut:
    """Held-out scores of the first n samples, from weights that saw none of their group.

    `logits` has shape (n, causes) at temperature 1, `support` (n,) nats for the leading cause.
    """

    folds: NDArray[np.int64]
    weights: Mapping[int, Weights]
    logits: NDArray[np.float64]
    support: NDArray[np.float64]
    truth: NDArray[np.int64]

    def calibrated(self, weights: Weights, fold: int | None = None) -> Weights:
        """`weights` calibrated on all samples, or on those outside `fold`."""
        kept = np.ones(len(self.truth), dtype=bool) if fold is None else self.folds != fold
        return calibrate(weights, self.logits[kept], self.support[kept], self.truth[kept])


def cross_validate(
    incidents: Sequence[Incident],
    samples: Sequence[Sample],
    causes: Sequence[str],
    more: Sequence[Sample] = (),
) -> list[Prediction]:
    """Held-out predictions: log-linear weights, then calibration, each fitted on other folds.

    `samples` belong to `incidents` in order; `more` are only learned from.
    """
    held = _hold_out(samples, causes, more)
    calibrated = {fold: held.calibrated(weights, fold) for fold, weights in held.weights.items()}
    predictions: list[Prediction] = []
    for number, (incident, sample) in enumerate(zip(incidents, samples, strict=True)):
        ranking = rank_causes(sample.signals, sample.votes, calibrated[int(held.folds[number])])
        predictions.append(
            Prediction(
                incident=incident,
                causes=tuple(scored.cause for scored in ranking.causes),
                probabilities=tuple(scored.probability for scored in ranking.causes),
            )
        )
    return predictions


def fit_all(
    samples: Sequence[Sample], causes: Sequence[str], more: Sequence[Sample] = (), *, fitted_on: str
) -> Weights:
    """The weights to ship: fitted on all samples, calibrated on held-out predictions."""
    held = _hold_out(samples, causes, more)
    return held.calibrated(fit([*samples, *more], causes, fitted_on=fitted_on))


def _hold_out(samples: Sequence[Sample], causes: Sequence[str], more: Sequence[Sample]) -> _HeldOut:
    everything = [*samples, *more]
    folds = folds_of(everything)
    fitted: dict[int, Weights] = {}
    logits = np.zeros((len(samples), len(causes)))
    support = np.zeros(len(samples))
    for fold in sorted(set(folds[: len(samples)].tolist())):
        training = [item for item, where in zip(everything, folds, strict=True) if where != fold]
        fitted[fold] = fit(training, causes)
        for number, sample in enumerate(samples):
            if folds[number] != fold:
                continue
            ranking = rank_causes(sample.signals, sample.votes, fitted[fold])
            for scored in ranking.causes:
                logits[number, causes.index(scored.cause)] = scored.logit
            support[number] = max(_support(scored) for scored in ranking.causes)
    truth = np.array([causes.index(sample.cause) for sample in samples])
    return _HeldOut(
        folds=folds[: len(samples)], weights=fitted, logits=logits, support=support, truth=truth
    )


def _support(scored: Scored) -> float:
    return sum(part.weight for part in scored.parts if part.weight > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Figures over a set of predictions; `macro` averages per cause."""

    top1: Interval
    top3: Interval
    top1_also: Interval
    macro_top1: float
    macro_top3: float
    calibration_error: float
    top1_at_80: float


def quality(predictions: Sequence[Prediction]) -> Quality:
    """All figures of `predictions`."""
    right = [float(item.rank == 1) for item in predictions]
    near = [float(item.rank <= 3) for item in predictions]
    also = [
        float(item.causes[0] in (item.incident.cause, *item.incident.also)) for item in predictions
    ]
    return Quality(
        top1=mean_interval(right),
        top3=mean_interval(near),
        top1_also=mean_interval(also),
        macro_top1=macro(predictions, 1),
        macro_top3=macro(predictions, 3),
        calibration_error=calibration_error(predictions),
        top1_at_80=top1_at_coverage(predictions, 0.8),
    )


def macro(predictions: Sequence[Prediction], k: int) -> float:
    """Mean over causes of the share ranked among the first `k`."""
    per_cause: Mapping[str, list[bool]] = defaultdict(list)
    for item in predictions:
        per_cause[item.incident.cause].append(item.rank <= k)
    return float(np.mean([np.mean(values) for values in per_cause.values()]))


def calibration_error(predictions: Sequence[Prediction], bins: int = BINS) -> float:
    """Expected calibration error of the leading cause, in equally filled bins.

    Source: Guo et al. 2017, https://arxiv.org/abs/1706.04599 (bins here hold equal counts).
    """
    pairs = sorted((item.probabilities[0], item.rank == 1) for item in predictions)
    error = 0.0
    for part in np.array_split(np.array(pairs, dtype=float), bins):
        if len(part):
            error += len(part) / len(pairs) * abs(part[:, 0].mean() - part[:, 1].mean())
    return float(error)


def top1_at_coverage(predictions: Sequence[Prediction], coverage: float) -> float:
    """Share right among the `coverage` most confident predictions."""
    ordered = sorted(predictions, key=lambda item: (-item.probabilities[0], item.incident.id))
    kept = ordered[: max(1, round(coverage * len(ordered)))]
    return float(np.mean([item.rank == 1 for item in kept]))
