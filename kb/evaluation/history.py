"""The history of figures: one JSON object a line, so that a regression is seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kb.errors import InputError
from kb.evaluation.measure import Measured

DIGITS = 4
UNSTEADY = "ms"  # figures whose name ends so are measured on a clock and never repeat


def key_figures(measured: Measured) -> dict[str, float]:
    """The figures worth following, by name."""
    quality, known, parity = measured.measurable, measured.known, measured.parity
    figures = {
        "top1": quality.top1.mean,
        "top1_also": quality.top1_also.mean,
        "top3": quality.top3.mean,
        "macro_top1": quality.macro_top1.mean,
        "macro_top3": quality.macro_top3.mean,
        "calibration_error": quality.calibration_error.mean,
        "top1_at_80": quality.top1_at_80.mean,
        "top1_all": measured.everything.top1.mean,
        "top3_all": measured.everything.top3.mean,
        "known_recall_at_1": known.recall_at_1.mean,
        "known_recall_at_5": known.recall_at_5.mean,
        "known_top1": known.top1.mean,
        "parity": parity.words.agreement.mean,
        "parity_with_lines": parity.with_lines.agreement.mean,
        "p50_ms": measured.stages.p50_ms("total"),
        "p99_ms": measured.stages.p99_ms("total"),
    }
    if measured.negatives:
        alarms = sum(item.alarm for item in measured.negatives)
        figures["false_alarms"] = alarms / len(measured.negatives)
    return {name: round(value, DIGITS) for name, value in figures.items()}


def append(path: Path, measured: Measured, *, date: str) -> bool:
    """Add a line to the history; False where nothing but the clock has changed since the last.

    Raises:
        InputError: the file's last line is no line of a history.
    """
    line: dict[str, Any] = {
        "date": date,
        "incidents": len(measured.predictions),
        "measurable": measured.measurable.top1.n,
        "cases": measured.cases,
        "negatives": len(measured.negatives),
        **key_figures(measured),
    }
    last = last_line(path)
    if last is not None and _steady(last) == _steady(line):
        return False
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
    return True


def last_line(path: Path) -> dict[str, Any] | None:
    """The newest line, or None where there is no history.

    Raises:
        InputError: it is no JSON object.
    """
    if not path.is_file():
        return None
    lines = path.read_bytes().splitlines()
    if not lines:
        return None
    try:
        return msgspec.json.decode(lines[-1], type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: {error}", todo="mend or remove its last line") from error


def _steady(line: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in line.items()
        if name != "date" and not name.endswith(UNSTEADY)
    }
