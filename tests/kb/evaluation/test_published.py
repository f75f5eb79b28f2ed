"""The figures a page shows: the same as the report's, kept in one file, refused when not ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from kb.errors import DataError, InputError
from kb.evaluation.published import (
    PUBLISHED,
    Interval,
    PublishedFigures,
    RetrievalFigures,
    load_published,
    save_published,
)
from kb.evaluation.report import diagnosis_figures, last_line
from tests.kb.evaluation.examples import measured

RETRIEVAL = RetrievalFigures(
    date="2030-01-02",
    queries=2,
    cases=7,
    kappa=None,
    routes=(),
    parity=Interval(mean=None, low=None, high=None, n=0),
    parity_of_words=Interval(mean=0.9, low=0.8, high=1.0, n=2),
)


def test_the_figures_are_those_of_the_predictions() -> None:
    """Of six incidents three are right at first place; bins, causes and answers add up."""
    found = diagnosis_figures(measured(), date="2030-01-02")
    assert found.figures["top1"].mean == 0.5
    assert found.figures["top3"].mean == 1.0
    assert found.figures["false_alarms"] == Interval(mean=0.5, low=0.0, high=1.0, n=2)
    assert found.measurable == sum(row.n for row in found.causes) == 6
    assert sum(part.right.n for part in found.bins) == 6
    assert {row.cause: (row.n, row.named) for row in found.causes} == {
        "alpha": (4, 3),
        "beta": (1, 3),
        "chi": (1, 0),
    }
    assert (found.answered, found.answered_right) == (6, 3)


def test_what_was_not_measured_is_none(tmp_path: Path) -> None:
    """JSON has no NaN: nothing measured is null, and reads back as None."""
    found = diagnosis_figures(measured(), date="2030-01-02")
    assert (found.causes[-1].cause, found.causes[-1].precision) == ("chi", None)
    save_published(tmp_path, found)
    read = load_published(tmp_path).diagnosis
    assert read is not None
    assert read.causes[-1].precision is None


def test_figures_are_rounded(tmp_path: Path) -> None:
    """Four digits: more would change with every platform."""
    interval = Interval(mean=1 / 3, low=0.123456, high=2 / 3, n=3)
    save_published(tmp_path, replace(RETRIEVAL, parity=interval))
    found = load_published(tmp_path).retrieval
    assert found is not None
    assert found.parity == Interval(mean=0.3333, low=0.1235, high=0.6667, n=3)


def test_parts_are_written_one_by_one(tmp_path: Path) -> None:
    """Writing one part keeps the other, and reading gives back what was written."""
    save_published(tmp_path / "old", diagnosis_figures(measured(), date="2030-01-02"))
    diagnosis = load_published(tmp_path / "old").diagnosis
    assert diagnosis is not None
    assert load_published(tmp_path) == PublishedFigures()
    save_published(tmp_path / "new", diagnosis)
    save_published(tmp_path / "new", RETRIEVAL)
    assert load_published(tmp_path / "new") == PublishedFigures(
        diagnosis=diagnosis, retrieval=RETRIEVAL
    )
    assert [path.name for path in (tmp_path / "new").iterdir()] == [PUBLISHED]


def test_the_date_moves_with_the_figures(tmp_path: Path) -> None:
    """Measuring the same again leaves the file as it is; another figure brings its date."""
    path = save_published(tmp_path, RETRIEVAL)
    before = path.read_bytes()
    save_published(tmp_path, replace(RETRIEVAL, date="2031-01-01"))
    assert path.read_bytes() == before
    save_published(tmp_path, replace(RETRIEVAL, date="2031-01-01", queries=3))
    found = load_published(tmp_path).retrieval
    assert found is not None
    assert (found.date, found.queries) == ("2031-01-01", 3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"format": 99}', "is of format 99"),
        ('{"format": 1, "retrieval": 3}', "cannot be read"),
        ("{", "cannot be read"),
    ],
    ids=["newer", "wrong type", "cut off"],
)
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, content: str, says: str) -> None:
    """The error names the file and the command that writes it anew, and nothing is overwritten."""
    (tmp_path / PUBLISHED).write_text(content, "utf-8")
    with pytest.raises(DataError, match=says) as refused:
        load_published(tmp_path)
    assert PUBLISHED in refused.value.what
    assert "timeout-kb evaluate" in refused.value.todo
    with pytest.raises(DataError):
        save_published(tmp_path, RETRIEVAL)
    assert (tmp_path / PUBLISHED).read_text("utf-8") == content


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file in place of the folder is an error of the input."""
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises((InputError, DataError), match="file"):
        save_published(tmp_path / "file", RETRIEVAL)


def test_the_shipped_figures_are_those_of_the_report(data_dir: Path) -> None:
    """Page, report and history tell the same figures."""
    golden = data_dir / "golden"
    found = load_published(golden).diagnosis
    last = last_line(golden / "history.jsonl")
    assert found is not None
    assert last is not None
    shared = {name: value.mean for name, value in found.figures.items() if name in last}
    assert shared == {name: last[name] for name in shared}
    assert {"top1", "top3", "calibration_error", "false_alarms", "parity"} <= set(shared)
    report = (golden / "REPORT.md").read_text("utf-8")
    top1 = found.figures["top1"]
    assert f"{top1.mean:.3f} [{top1.low:.3f}, {top1.high:.3f}], n={top1.n}" in report
    assert msgspec.json.encode(found)
