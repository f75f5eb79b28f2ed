"""The report: every figure in its place, every link there, the same text for the same figures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evaluation.report import append_history, diagnosis_figures, render, table, write_report
from tests.kb.evaluation.examples import measured, without_healthy


def rows(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table under a heading, header and rule left out."""
    part = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2:]]


def test_tables_are_even() -> None:
    """Every row of every table has as many cells as its header."""
    width = 0
    for line in render(measured()).splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = line.count("|") - 1
        width = width or cells
        assert cells == width, line


def test_a_goal_is_met_or_not() -> None:
    """A figure at its goal is met, one below (or an error above) is not."""
    by_name = {row[0]: row for row in rows(render(measured()), "Goals")}
    assert by_name["first is right"][1:] == ["≥ 0.64", "0.500 [0.167, 0.833], n=6", "**no**"]
    assert by_name["right among three"][3] == "yes"
    assert by_name["false alarms"][3] == "**no**"
    assert by_name["p50 of a 200-line paste"][2:] == ["4.0 ms", "yes"]


def test_the_confusion_matrix_counts_rows_and_columns() -> None:
    """Alpha is taken for beta twice and is right twice; chi is taken for alpha."""
    assert rows(render(measured()), "Confusion") == [
        ["A alpha", "**2**", "2", "·"],
        ["B beta", "·", "**1**", "·"],
        ["C chi", "1", "·", "·"],
    ]


def test_misses_are_listed_nearest_first() -> None:
    """The three incidents whose first cause is wrong, by place, each with its thread."""
    missed = rows(render(measured()), "Misses")
    assert [(row[0], row[2]) for row in missed] == [
        ("[i3](https://example.org/i3/issues/1)", "2"),
        ("[i4](https://example.org/i4/issues/1)", "3"),
        ("[i6](https://example.org/i6/issues/1)", "3"),
    ]


def test_alarms_and_parting_twins_are_named() -> None:
    """The alarm stands there with its trigger, the twins that differ with both causes."""
    text = render(measured())
    assert rows(text, "Logs without a timeout") == [["alarm", "beta", "`cue-x: a ¦ b`"]]
    assert "| two | alpha | beta | alpha |" in text
    assert "| one | alpha |" not in text
    assert "| cue:x | 0 | 1 |" in text


def test_what_was_not_measured_says_so() -> None:
    """Without negatives the report names the option that adds them."""
    text = render(without_healthy(measured()))
    assert "Not measured: add `--negatives DIR`" in text
    assert "| false alarms | ≤ 0.03 | not measured |" in text


def test_files_are_written_and_linked(tmp_path: Path) -> None:
    """Report, plots and history are there, and every picture of the report is one of them."""
    first = write_report(measured(), tmp_path / "golden", date="2030-01-02")
    assert [path.name for path in first] == [
        "REPORT.md",
        "reliability.svg",
        "risk-coverage.svg",
        "history.jsonl",
        "figures.json",
    ]
    text = first[0].read_text("utf-8")
    pictures = re.findall(r"\]\(([^)]+\.svg)\)", text)
    assert pictures == ["reliability.svg", "risk-coverage.svg"]
    before = {path: path.read_bytes() for path in first}
    write_report(measured(), tmp_path / "golden", date="2030-01-03")
    assert {path: path.read_bytes() for path in first} == before


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file in place of the folder is an error of the input."""
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(InputError, match="file"):
        write_report(measured(), tmp_path / "file", date="2030-01-02")


def test_a_table_is_markdown() -> None:
    """Header, rule, rows."""
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


# --- the history ---------------------------------------------------------------------------------


def lines(path: Path) -> list[dict[str, object]]:
    """The history as objects."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_line_holds_date_counts_and_figures(tmp_path: Path) -> None:
    """The first run writes one line with what was measured on how much."""
    path = tmp_path / "history.jsonl"
    assert append_history(path, measured(), date="2030-01-02")
    (line,) = lines(path)
    assert line["date"] == "2030-01-02"
    assert (line["incidents"], line["measurable"], line["top1"]) == (6, 6, 0.5)
    assert line["false_alarms"] == 0.5
    assert line["known_recall_at_1"] == 1.0


def test_only_a_change_adds_a_line(tmp_path: Path) -> None:
    """The same figures another day add nothing; another figure adds a line below the first."""
    path = tmp_path / "history.jsonl"
    append_history(path, measured(), date="2030-01-02")
    assert not append_history(path, measured(), date="2030-01-03")
    assert append_history(path, replace(measured(), cases=8), date="2030-01-04")
    assert [(line["date"], line["cases"]) for line in lines(path)] == [
        ("2030-01-02", 7),
        ("2030-01-04", 8),
    ]


def test_time_alone_is_no_change(tmp_path: Path) -> None:
    """A faster or slower machine adds no line."""
    path = tmp_path / "history.jsonl"
    append_history(path, measured(), date="2030-01-02")
    assert not append_history(path, measured(took_ms=99.0), date="2030-01-02")


def test_a_damaged_history_is_named(tmp_path: Path) -> None:
    """A last line that is no JSON stops the run with the file's name."""
    path = tmp_path / "history.jsonl"
    path.write_text("not json\n", "utf-8")
    with pytest.raises(InputError, match=r"history\.jsonl"):
        append_history(path, measured(), date="2030-01-02")


def test_without_healthy_logs_there_is_no_rate_of_alarms(tmp_path: Path) -> None:
    """What was not measured is left out, not written as 0."""
    path = tmp_path / "history.jsonl"
    append_history(path, without_healthy(measured()), date="2030-01-02")
    assert "false_alarms" not in lines(path)[0]


def test_what_the_reports_teach_is_reported() -> None:
    """A row a share of the reports, in the text and among the published figures."""
    assert "| 50% | 12 | 0.500" in render(measured())
    assert diagnosis_figures(measured(), date="2026-01-01").learning == measured().learning
