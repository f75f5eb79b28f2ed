"""What each kind of evidence is worth: the evaluation repeated with parts of it taken away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kb.diagnose.fit import Sample
from kb.evaluation.diagnosis import cross_validate
from kb.evaluation.figures import macro
from kb.evaluation.incidents import Incident
from kb.evaluation.intervals import Interval, mean_interval
from kb.evaluation.stages import Stages
from kb.types import EvidenceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A part of the evidence: kinds of signals, whether similar cases vote, and what it runs."""

    name: str
    kinds: frozenset[EvidenceKind]
    votes: bool
    stages: tuple[str, ...]


def _variant(
    name: str, *kinds: EvidenceKind, votes: bool = False, stages: tuple[str, ...]
) -> Variant:
    return Variant(name=name, kinds=frozenset(kinds), votes=votes, stages=stages)


VARIANTS = (
    _variant("priors only", stages=("rank",)),
    _variant("similar cases only", "case", votes=True, stages=("read", "search", "rank")),
    _variant("log patterns only", "log", stages=("read", "patterns and facts", "rank")),
    _variant("+ ranks and facts", "log", "rank", stages=("read", "patterns and facts", "rank")),
    _variant(
        "+ description",
        "log",
        "rank",
        "text",
        stages=("read", "patterns and facts", "description", "rank"),
    ),
    _variant(
        "+ votes of similar cases",
        "log",
        "rank",
        "text",
        votes=True,
        stages=("read", "patterns and facts", "description", "search", "rank"),
    ),
    _variant(
        "all (+ kinship)",
        "log",
        "rank",
        "text",
        "case",
        votes=True,
        stages=("read", "patterns and facts", "description", "search", "rank"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a variant reaches and what it costs a paste, in ms.

    Figures are of the measurable incidents, those ending in `_all` of all.
    """

    variant: str
    top1: Interval
    top3: Interval
    macro_top3: float
    top1_all: Interval
    top3_all: Interval
    p50_ms: float


def restrict(sample: Sample, variant: Variant) -> Sample:
    """The sample with only the evidence of `variant`."""
    return replace(
        sample,
        signals=tuple(signal for signal in sample.signals if signal.kind in variant.kinds),
        votes=sample.votes if variant.votes else {},
    )


def worth_of_evidence(
    incidents: Sequence[Incident],
    samples: Sequence[Sample],
    causes: Sequence[str],
    more: Sequence[Sample],
    stages: Stages,
) -> list[Worth]:
    """Every variant, fitted and judged anew."""
    table = []
    for variant in VARIANTS:
        predictions = cross_validate(
            incidents,
            [restrict(sample, variant) for sample in samples],
            causes,
            [restrict(sample, variant) for sample in more],
        )
        kept = [item for item in predictions if item.incident.measurable]
        table.append(
            Worth(
                variant=variant.name,
                top1=mean_interval([float(item.rank == 1) for item in kept]),
                top3=mean_interval([float(item.rank <= 3) for item in kept]),
                macro_top3=macro(kept, 3),
                top1_all=mean_interval([float(item.rank == 1) for item in predictions]),
                top3_all=mean_interval([float(item.rank <= 3) for item in predictions]),
                p50_ms=sum(stages.p50_ms(name) for name in variant.stages),
            )
        )
    return table
