"""The measure of likeness: shares by place and score, and what is listed as not alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.diagnose.likeness import ALIKE
from kb.evaluation.alike import ShownCase, alike_figures, not_alike, shown_cases
from kb.service import Service
from kb.settings import Settings
from kb.train.threads import LabelledThread
from tests.shipped_part import shipped_part

REPORTS = 50  # of each file
CASE = ShownCase(
    thread="t",
    causes=("uneven-data", "rank-crash"),
    case="c",
    cause="rank-crash",
    score=0.65,
    place=1,
)
OTHER = replace(CASE, case="o", cause="shm-limits", score=0.45, place=2)
SURE = replace(CASE, case="s", cause="shm-limits", score=0.95, place=3)


def test_shares_by_place_and_score() -> None:
    """A cause as defensible counts; bands do not overlap and the last one has no end."""
    means = {name: figure.mean for name, figure in alike_figures([CASE, OTHER, SURE]).items()}
    assert means == {
        "all that are shown": pytest.approx(1 / 3),
        "the first": 1.0,
        "score 0.4 to 0.5": 0.0,
        "score 0.5 to 0.6": None,
        "score 0.6 to 0.7": 1.0,
        "score 0.7 and more": 0.0,
    }
    assert not_alike([CASE, OTHER, SURE]) == [SURE, OTHER]


@pytest.fixture
def service(tmp_path: Path, data_dir: Path) -> Iterator[Service]:
    """The shipped knowledge, with a part of its cases and reports: the fit takes seconds."""
    cases = data_dir.glob("cases/*shm*.md")
    data = shipped_part(tmp_path / "data", data_dir, cases, without=["reports"])
    (data / "reports").mkdir()
    for file in data_dir.glob("reports/*.jsonl"):
        lines = file.read_text("utf-8").splitlines(keepends=True)
        (data / "reports" / file.name).write_text("".join(lines[:REPORTS]), "utf-8")
    opened = open_service(Settings(home=tmp_path / "home", data=data))
    yield opened
    opened.close()


def test_cases_are_shown_for_threads_that_can_be_judged(service: Service) -> None:
    """In order of place, none below the limit; a thread that says too little is left out."""
    thread = LabelledThread(
        id="own/1",
        url="https://example.org/own/1",
        repo="own",
        language="en",
        text="DataLoader worker is killed by signal: Bus error. It is possible that dataloader's "
        "workers are out of shared memory. /dev/shm is 64M in the container, then NCCL times out.",
        log="",
        cause="shm-limits",
        also=(),
        measurable=True,
    )
    silent = replace(thread, id="own/2", url="https://example.org/own/2", measurable=False)
    shown = shown_cases(service, [thread, silent])
    assert shown
    assert {one.thread for one in shown} == {"own/1"}
    assert [one.place for one in shown] == list(range(1, len(shown) + 1))
    assert all(one.score >= ALIKE for one in shown)
