"""The whole evaluation of the diagnosis, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kb.diagnose.engine import UNKNOWN_BELOW
from kb.evaluation.diagnosis import CrossFit, cross_validate, predict
from kb.evaluation.evidence import Worth, worth_of_evidence
from kb.evaluation.figures import Prediction, Quality, quality
from kb.evaluation.incidents import Incident
from kb.evaluation.known import Known, KnownQuality, known_incidents, known_quality
from kb.evaluation.negatives import Negative, judge_negatives
from kb.evaluation.parity import ParityQuality, Twin, parity_quality, twins
from kb.evaluation.samples import (
    Kinships,
    case_samples,
    kinships,
    observe,
    sample_of,
    samples_of,
    thread_address,
)
from kb.evaluation.stages import Stages, pastes, time_stages
from kb.service import Service
from kb.types import UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Twins and their figures: of the words alone, and of words with the log lines of the case."""

    words: ParityQuality
    with_lines: ParityQuality
    pairs: tuple[Twin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything the report says. `predictions` are those of all incidents, in their order.

    `measurable` and `everything` are figures; `unknown_below` is the threshold of the product.
    """

    predictions: tuple[Prediction, ...]
    measurable: Quality
    everything: Quality
    known: KnownQuality
    known_answers: tuple[Known, ...]
    parity: Parity
    worth: tuple[Worth, ...]
    stages: Stages
    negatives: tuple[Negative, ...]
    cases: int
    unknown_below: float = UNKNOWN_BELOW


def kept(predictions: Sequence[Prediction]) -> list[Prediction]:
    """The predictions of measurable incidents."""
    return [item for item in predictions if item.incident.measurable]


def causes_of(service: Service) -> list[str]:
    """Ids of all causes a ranking holds."""
    return [cause.id for cause in service.causes() if cause.id != UNKNOWN]


def held_out(service: Service, incidents: Sequence[Incident]) -> list[Prediction]:
    """Predictions of all incidents, each by weights and cases that never saw it."""
    samples = samples_of(incidents, service)
    return cross_validate(incidents, samples, causes_of(service), case_samples(service, incidents))


def measure(
    service: Service, incidents: Sequence[Incident], negatives: Path | None = None
) -> Measured:
    """Evaluate the diagnosis of `service`.

    Args:
        service: built from the shipped data alone, so that two runs see the same cases.
        incidents: labelled threads.
        negatives: folder of logs without a timeout; None leaves them out.

    Raises:
        InputError: the folder of negatives holds no logs.
    """
    kin = kinships(incidents, service)
    samples = [
        sample_of(item, observe(item.text, service, kin.aside[item.id]), kin) for item in incidents
    ]
    more = case_samples(service, incidents)
    causes = causes_of(service)
    fitted = CrossFit(samples, causes, more)
    predictions = predict(incidents, samples, fitted)
    known = known_incidents(incidents, kin, service, fitted)
    stages = time_stages(service, pastes(incidents))
    return Measured(
        predictions=tuple(predictions),
        measurable=quality(kept(predictions)),
        everything=quality(predictions),
        known=known_quality(known),
        known_answers=tuple(known),
        parity=_parity(service, kin, fitted, incidents),
        worth=tuple(worth_of_evidence(incidents, samples, causes, more, stages)),
        stages=stages,
        negatives=tuple(judge_negatives(service, negatives)) if negatives else (),
        cases=len(service.knowledge.cases),
    )


def _parity(
    service: Service, kin: Kinships, fitted: CrossFit, incidents: Sequence[Incident]
) -> Parity:
    threads = frozenset(thread_address(incident.url) for incident in incidents)
    words = twins(service, kin, fitted, threads, lines=False)
    with_lines = twins(service, kin, fitted, threads, lines=True)
    return Parity(
        words=parity_quality(words), with_lines=parity_quality(with_lines), pairs=tuple(words)
    )
