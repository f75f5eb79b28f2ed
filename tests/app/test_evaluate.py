"""`timeout-kb evaluate diagnosis`: the report is written from labelled threads, on clean data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.commands.common import State
from app.commands.evaluate import command
from kb.settings import Settings

CASES = 6
THREADS = [
    ("rank-crash", "rank 2 died with CUDA out of memory, then every other rank timed out"),
    ("uneven-data", "the last epoch has one batch fewer on rank 3 and all_reduce hangs at its end"),
    ("network-config", "two nodes never connect, NCCL_SOCKET_IFNAME was set to docker0"),
]


@pytest.fixture
def data(tmp_path: Path, data_dir: Path) -> Path:
    """The shipped data with a handful of cases."""
    folder = tmp_path / "data"
    (folder / "cases").mkdir(parents=True)
    for part in data_dir.iterdir():
        if part.name != "cases":
            (folder / part.name).symlink_to(part)
    for case in sorted((data_dir / "cases").glob("*.md"))[:CASES]:
        (folder / "cases" / case.name).symlink_to(case)
    return folder


@pytest.fixture
def threads(tmp_path: Path) -> Path:
    """Four reports of each cause, each of a project of its own."""
    path = tmp_path / "threads.jsonl"
    records = [
        {
            "id": f"owner__{cause}__{number}",
            "url": f"https://example.org/{cause}/issues/{number}",
            "repo": f"owner/{cause}-{number}",
            "title": f"training stops {number}",
            "lang": "en",
            "cause": cause,
            "also": [],
            "stage": "train",
            "query_text": f"{words}. It is run number {number}, with {number * 8} cards. " * 2,
            "query_log": "",
            "text_leaks_cause": False,
        }
        for cause, words in THREADS
        for number in range(1, 5)
    ]
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n", "utf-8")
    return path


def evaluate(settings: Settings, *options: str | Path) -> Result:
    """Run the verb."""
    state = State(settings_source=lambda: settings)
    return CliRunner().invoke(command, [str(option) for option in options], obj=state)


def test_a_report_is_written(tmp_path: Path, data: Path, threads: Path) -> None:
    """Report, plots and one line of history are there, over the cases of the data alone."""
    settings = Settings(home=tmp_path / "home", data=data)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "fine.log").write_text("step 1 loss 0.5\n", "utf-8")
    out = tmp_path / "golden"
    result = evaluate(
        settings, "diagnosis", "--threads", threads, "--report", out, "--negatives", logs
    )
    assert result.exit_code == 0, result.output
    report = (out / "REPORT.md").read_text("utf-8")
    assert "12 real threads with a label, 12 of them measurable" in report
    assert f"against {CASES} cases" in report
    assert "0 of 1 healthy or otherwise failed runs are said to be a timeout" in report
    (line,) = (out / "history.jsonl").read_text("utf-8").splitlines()
    figures = json.loads(line)
    assert (figures["incidents"], figures["cases"], figures["negatives"]) == (12, CASES, 1)
    assert figures["top1"] >= 0.5, "words that name the cause are read in projects never seen"


def test_a_report_needs_threads(tmp_path: Path) -> None:
    """Asked for a report of something else the verb says what is missing and writes nothing."""
    out = tmp_path / "golden"
    result = evaluate(Settings(home=tmp_path / "home"), "knowledge", "--report", out)
    assert result.exit_code == 2
    assert "add --threads FILE" in result.output
    assert not out.exists()
