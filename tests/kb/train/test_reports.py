"""The shipped reports: enough of each cause in both languages, none twice, no side channel."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.train.reports import FOLDER, Report, load_reports
from kb.train.threads import LabelledThread, near_duplicates

ROW = '{"id":"a","source":"voice","lang":"en","cause":"rank-crash","also":[],"text":"t","log":""}'


@pytest.fixture(scope="module")
def reports(data_dir: Path) -> tuple[Report, ...]:
    """All of them."""
    return load_reports(data_dir / FOLDER)


def test_there_are_enough(reports: tuple[Report, ...], data_dir: Path) -> None:
    """Of every cause, in both languages, and of many real threads."""
    from kb.knowledge.load import load_knowledge

    known = {cause.id for cause in load_knowledge(data_dir).causes} - {"unknown"}
    counts = Counter(report.cause for report in reports)
    assert set(counts) == known
    assert min(counts.values()) >= 120
    assert len(reports) >= 3000
    in_chinese = Counter(report.cause for report in reports if report.lang == "zh")
    assert all(0.3 < in_chinese[cause] / counts[cause] < 0.7 for cause in known)
    assert len({report.url for report in reports if report.url}) >= 800


def test_none_tells_the_same_twice(reports: tuple[Report, ...]) -> None:
    """No two share a good part of their rare word sequences."""
    threads = [
        LabelledThread(
            id=report.id,
            url="",
            repo="",
            language=report.lang,
            text=report.text,
            log="",
            cause=report.cause,
            also=(),
            measurable=True,
        )
        for report in reports
    ]
    assert near_duplicates(threads) == {}


def test_voices_have_a_first_telling(reports: tuple[Report, ...]) -> None:
    """Of the same cause; what is retold names its thread."""
    by_id = {report.id: report for report in reports}
    for report in reports:
        assert (report.source == "retold") == bool(report.url)
        assert (report.source == "voice") == bool(report.of)
        if report.of:
            assert by_id[report.of].cause == report.cause


def test_length_and_logs_tell_no_cause(reports: tuple[Report, ...]) -> None:
    """Written reports of every cause are alike in how many hold a log and how long they are."""
    written = [report for report in reports if report.source != "retold"]
    for cause in {report.cause for report in written}:
        own = [report for report in written if report.cause == cause]
        logs = sum(bool(report.log) for report in own) / len(own)
        short = sum(len(_words(report)) < 40 for report in own) / len(own)
        assert 0.35 < logs < 0.75, cause
        assert 0.05 < short < 0.6, cause


def _words(report: Report) -> list[str]:
    return re.findall(r"[\u4e00-\u9fff]{1,2}|[^\s\u4e00-\u9fff]+", report.text)


@pytest.mark.parametrize(
    ("rows", "says"),
    [("{}", "line 1"), (ROW + "\n" + ROW, "line 2: id a stands twice"), ("[", "line 1")],
)
def test_damaged_reports_are_named(tmp_path: Path, rows: str, says: str) -> None:
    """With their file and line."""
    (tmp_path / "some.jsonl").write_text(rows)
    with pytest.raises(DataError, match=f"some.jsonl, {says}"):
        load_reports(tmp_path)
