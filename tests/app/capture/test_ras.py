"""Reports of NCCL's RAS service over time: who hangs is told once, and taken back when it moves."""

from __future__ import annotations

import pytest

from app.capture.ras import RasReports
from kb.evidence.ras import rank_standings
from tests.kb.evidence.test_ras import DEAD, HEAD

AFTER_S = 60.0
EVEN = HEAD


def behind(own: int, usual: int, rank: int = 3, op: str = "AllReduce") -> str:
    """A report in which one rank has launched less than seven others."""
    return (
        HEAD
        + f"#0-0 (78db921d1c117b4a) MISMATCH\n  Communicator ranks have different {op} operation "
        f"counts\n  7 ranks have launched up to operation {usual}\n"
        f"  Rank {rank} has launched up to operation {own} -- GPU 0 managed by process 5 on n\n"
    )


def told(*reports: str, every_s: float = 20.0) -> list[str]:
    """What is said after each report: `stuck 3 after 60`, `moved 3 after 80`, or nothing."""
    history = RasReports(AFTER_S)
    said = []
    for number, report in enumerate(reports):
        now_s = number * every_s
        stuck = history.take(rank_standings(report), now_s)
        moved = None if stuck else history.went_on(now_s)
        event = stuck or moved
        word = "stuck" if stuck else "moved"
        ranks = ",".join(map(str, event.ranks)) if event else ""
        said.append(f"{word} {ranks} after {event.seconds:g}" if event else "")
    return said


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([behind(60, 61)] * 5, ["", "", "", "stuck 3 after 60", ""], id="one behind"),
        pytest.param(
            [behind(60, 61), behind(60, 64), behind(60, 70), behind(60, 99)],
            ["", "", "", "stuck 3 after 60"],
            id="the others go on launching",
        ),
        pytest.param(
            [behind(60 + n, 62 + n) for n in range(6)], [""] * 6, id="slow, and it moves each time"
        ),
        pytest.param(
            [behind(60, 61), behind(60, 61), EVEN, behind(60, 61), behind(60, 61), behind(60, 61)],
            [""] * 6,
            id="caught up in between",
        ),
        pytest.param(
            [*[behind(60, 61)] * 4, EVEN, EVEN],
            ["", "", "", "stuck 3 after 60", "moved 3 after 80", ""],
            id="taken back",
        ),
        pytest.param(
            [*[behind(60, 61)] * 4, behind(61, 65), *[behind(61, 65)] * 3],
            ["", "", "", "stuck 3 after 60", "moved 3 after 80", "", "", "stuck 3 after 60"],
            id="stuck again",
        ),
        pytest.param([DEAD] * 4, ["", "", "", "stuck 21 after 60"], id="dead"),
        pytest.param([EVEN] * 5, [""] * 5, id="all alike"),
    ],
)
def test_a_rank_that_does_not_move_is_told_once(reports: list[str], expected: list[str]) -> None:
    """With the same count in report after report, however little it is behind; moves reset it."""
    assert told(*reports) == expected


def test_few_reports_are_no_proof() -> None:
    """However far apart two are: it may have been behind by chance both times."""
    assert told(behind(60, 61), behind(60, 61), every_s=500.0) == ["", ""]
    assert told(*[behind(60, 61)] * 3, every_s=500.0)[2] == "stuck 3 after 1000"


def test_operations_of_a_kind_are_compared_with_themselves() -> None:
    """A rank that is behind in broadcasts now and in reductions then moves."""
    reports = [behind(60, 61, op=op) for op in ("AllReduce", "Broadcast") * 3]
    assert told(*reports) == [""] * 6
