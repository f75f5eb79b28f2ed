"""From what was measured to the figures a page shows (`kb.evaluation.published`)."""

from __future__ import annotations

import math

from kb.evaluation.figures import per_cause, reliability, splits
from kb.evaluation.history import DIGITS
from kb.evaluation.intervals import Interval, mean_interval
from kb.evaluation.measure import Measured, kept
from kb.evaluation.published import (
    BinFigures,
    CauseFigures,
    DiagnosisFigures,
    Figure,
    PartFigures,
    RetrievalFigures,
    RouteFigures,
)
from kb.evaluation.search_quality import GoldenReport

TOP = 3  # places that count as "among three"


def diagnosis_figures(measured: Measured, *, date: str) -> DiagnosisFigures:
    """The figures of the diagnosis, over measurable incidents where nothing else is said."""
    shown = kept(measured.predictions)
    answered = [item for item in shown if item.confidence >= measured.unknown_below]
    return DiagnosisFigures(
        date=date,
        incidents=len(measured.predictions),
        measurable=len(shown),
        cases=measured.cases,
        negatives=len(measured.negatives),
        unknown_below=measured.unknown_below,
        answered=len(answered),
        answered_right=sum(item.rank == 1 for item in answered),
        figures={name: figure(value) for name, value in _named(measured).items()},
        bins=tuple(
            BinFigures(confidence=round(part.confidence, DIGITS), right=figure(part.right))
            for part in reliability(shown)
        ),
        causes=tuple(
            CauseFigures(
                cause=row.cause,
                n=row.n,
                named=row.named,
                top1=number(row.top1),
                top3=number(row.top3),
                precision=number(row.precision),
            )
            for row in per_cause(shown)
        ),
        parts=tuple(
            PartFigures(
                name=name,
                top1=figure(mean_interval([float(item.rank == 1) for item in part])),
                top3=figure(mean_interval([float(item.rank <= TOP) for item in part])),
            )
            for name, part in splits(shown).items()
        ),
    )


def _named(measured: Measured) -> dict[str, Interval]:
    quality, known = measured.measurable, measured.known
    return {
        "top1": quality.top1,
        "top1_also": quality.top1_also,
        "top3": quality.top3,
        "top3_also": quality.top3_also,
        "macro_top1": quality.macro_top1,
        "macro_top3": quality.macro_top3,
        "calibration_error": quality.calibration_error,
        "top1_all": measured.everything.top1,
        "top3_all": measured.everything.top3,
        "known_recall_at_1": known.recall_at_1,
        "known_recall_at_5": known.recall_at_5,
        "parity": measured.parity.words.agreement,
        "false_alarms": mean_interval([float(item.alarm) for item in measured.negatives]),
    }


def retrieval_figures(report: GoldenReport, *, date: str) -> RetrievalFigures:
    """The figures of the search on the golden set."""
    return RetrievalFigures(
        date=date,
        queries=report.queries,
        cases=report.cases,
        kappa=number(report.agreement.kappa),
        routes=tuple(
            RouteFigures(
                setting=result.group,
                route=result.route,
                n=result.count,
                mrr=figure(result.mrr),
                recall_at_1=figure(result.recall_at_1),
                recall_at_5=figure(result.recall_at_5),
            )
            for result in report.results
        ),
        parity=figure(report.parity),
        parity_of_words=figure(report.parity_of_words),
    )


def figure(value: Interval) -> Figure:
    """An interval in few digits."""
    return Figure(
        mean=number(value.mean), low=number(value.low), high=number(value.high), n=value.n
    )


def number(value: float) -> float | None:
    """A number in few digits; JSON has no NaN."""
    return None if math.isnan(value) else round(value, DIGITS)
