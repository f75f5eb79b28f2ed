"""The history: a line a change, nothing for a run that changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evaluation.history import append, key_figures
from tests.kb.evaluation.samples import SIX, measured


def lines(path: Path) -> list[dict[str, object]]:
    """The history as objects."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_line_holds_date_counts_and_figures(tmp_path: Path) -> None:
    """The first run writes one line with what was measured on how much."""
    path = tmp_path / "history.jsonl"
    assert append(path, measured(), date="2030-01-02")
    (line,) = lines(path)
    assert line["date"] == "2030-01-02"
    assert (line["incidents"], line["measurable"], line["top1"]) == (6, 6, 0.5)
    assert line["false_alarms"] == 0.5
    assert line["known_recall_at_1"] == 1.0


def test_only_a_change_adds_a_line(tmp_path: Path) -> None:
    """The same figures another day add nothing; another figure adds a line below the first."""
    path = tmp_path / "history.jsonl"
    append(path, measured(), date="2030-01-02")
    assert not append(path, measured(), date="2030-01-03")
    assert append(path, replace(measured(), cases=8), date="2030-01-04")
    assert [(line["date"], line["cases"]) for line in lines(path)] == [
        ("2030-01-02", 7),
        ("2030-01-04", 8),
    ]


def test_time_alone_is_no_change(tmp_path: Path) -> None:
    """A faster or slower machine adds no line."""
    path = tmp_path / "history.jsonl"
    append(path, measured(), date="2030-01-02")
    assert not append(path, measured(took_ms=99.0), date="2030-01-02")


def test_a_damaged_history_is_named(tmp_path: Path) -> None:
    """A last line that is no JSON stops the run with the file's name."""
    path = tmp_path / "history.jsonl"
    path.write_text("not json\n", "utf-8")
    with pytest.raises(InputError, match=r"history\.jsonl"):
        append(path, measured(), date="2030-01-02")


def test_without_negatives_there_is_no_rate_of_alarms() -> None:
    """What was not measured is left out, not written as 0."""
    assert "false_alarms" not in key_figures(replace(measured(), negatives=()))
    assert len(SIX) == measured().measurable.top1.n
