"""Known incidents: the incident's own case is in the knowledge base, as it is for a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb.evaluation.diagnosis import CrossFit, prediction
from kb.evaluation.figures import Prediction
from kb.evaluation.incidents import Incident
from kb.evaluation.intervals import Interval, mean_interval
from kb.evaluation.samples import Kinships, observe, sample_of
from kb.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One incident with a case of its own: where the case stands, and the ranking of causes.

    `place` counts from 1; 0 where the case was not found. `first` is the case found first.
    """

    prediction: Prediction
    own: tuple[str, ...]
    place: int
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQuality:
    """Figures of the known-incident mode."""

    recall_at_1: Interval
    recall_at_5: Interval
    top1: Interval
    top3: Interval


def known_incidents(
    incidents: Sequence[Incident], kin: Kinships, service: Service, fitted: CrossFit
) -> list[Known]:
    """The incidents some case stands on, judged with all cases present.

    The weights are still those that never saw the project: only the case is known.
    """
    answers = []
    for incident in incidents:
        own = kin.own[incident.id]
        if not own:
            continue
        seen = observe(incident.text, service)
        found = [place for place, hit in enumerate(seen.hits, start=1) if hit.entry_id in own]
        ranking = fitted.rank(sample_of(incident, seen, kin))
        answers.append(
            Known(
                prediction=prediction(incident, ranking),
                own=own,
                place=min(found, default=0),
                first=seen.hits[0].entry_id if seen.hits else "",
            )
        )
    return answers


def known_quality(answers: Sequence[Known]) -> KnownQuality:
    """Figures of `answers`."""
    return KnownQuality(
        recall_at_1=mean_interval([float(item.place == 1) for item in answers]),
        recall_at_5=mean_interval([float(1 <= item.place <= 5) for item in answers]),
        top1=mean_interval([float(item.prediction.rank == 1) for item in answers]),
        top3=mean_interval([float(item.prediction.rank <= 3) for item in answers]),
    )
