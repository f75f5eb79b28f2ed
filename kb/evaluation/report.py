"""The report of the diagnosis: Markdown with tables, two plots, and the history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kb.errors import InputError
from kb.evaluation.history import append
from kb.evaluation.measure import Measured, kept
from kb.evaluation.plots import reliability_plot, risk_coverage_plot
from kb.evaluation.publish import diagnosis_figures
from kb.evaluation.published import save_published
from kb.evaluation.report_tables import (
    causes_section,
    confusion_section,
    evidence_section,
    figures_section,
    goals_section,
    known_section,
    misses_section,
    negatives_section,
    parity_section,
    splits_section,
    stages_section,
)

REPORT, HISTORY = "REPORT.md", "history.jsonl"
RELIABILITY, RISK = "reliability.svg", "risk-coverage.svg"


def render(measured: Measured) -> str:
    """The report in Markdown; the same figures give the same text."""
    sections: Sequence[str] = (
        _head(measured),
        goals_section(measured),
        figures_section(measured),
        splits_section(measured),
        _plots(measured),
        causes_section(measured),
        confusion_section(measured),
        known_section(measured),
        parity_section(measured),
        negatives_section(measured),
        evidence_section(measured),
        stages_section(measured),
        misses_section(measured),
    )
    return "\n\n".join(section for section in sections if section) + "\n"


def write_report(measured: Measured, folder: Path, *, date: str) -> list[Path]:
    """Write report, plots and figures into `folder`, add to the history; returns the files written.

    Args:
        measured: what `kb.evaluation.measure.measure` found.
        folder: made where it does not exist.
        date: of today, ``YYYY-MM-DD``.

    Raises:
        InputError: the folder cannot be written.
    """
    shown = kept(measured.predictions)
    texts = {
        REPORT: render(measured),
        RELIABILITY: reliability_plot(shown),
        RISK: risk_coverage_plot(shown, measured.unknown_below),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        append(folder / HISTORY, measured, date=date)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", todo="name a folder to write to") from error
    figures = save_published(folder, diagnosis=diagnosis_figures(measured, date=date))
    return [*(folder / name for name in (*texts, HISTORY)), figures]


def _head(measured: Measured) -> str:
    return (
        "# How good the diagnosis is\n\n"
        "Written by `timeout-kb evaluate diagnosis --threads FILE --report DIR`; do not edit.\n\n"
        f"{len(measured.predictions)} real threads with a label, {measured.measurable.top1.n} of "
        "them measurable (the post says enough and does not tell the cause), against "
        f"{measured.cases} cases. Every incident is judged without its own case and those of its "
        "near-duplicates, by weights fitted and calibrated without its project. Brackets hold "
        "95 % bootstrap intervals; that of the calibration error lies high, since drawing "
        "anew adds noise to every bin. *As good* also counts causes a reader of the thread found "
        "equally defensible. Macro averages per cause."
    )


def _plots(measured: Measured) -> str:
    return (
        "## Calibration and abstaining\n\n"
        f"![Reliability of the stated probabilities]({RELIABILITY})\n\n"
        f"![Share of wrong answers by share of incidents answered]({RISK})\n\n"
        f"{_operating_point(measured)}"
    )


def _operating_point(measured: Measured) -> str:
    shown = kept(measured.predictions)
    answered = [item for item in shown if item.confidence >= measured.unknown_below]
    right = sum(item.rank == 1 for item in answered)
    return (
        f'The product says "unknown" below {measured.unknown_below:.2f}: it answers '
        f"{len(answered)} of {len(shown)} measurable incidents and {right} of those rightly."
    )
