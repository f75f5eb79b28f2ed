"""Sizes that Gloo refuses: who refuses, where the others stand, and which of the pair is named."""

from __future__ import annotations

import pytest

from kb.logs.incident.culprits import find_culprits
from kb.types.incident import Event
from tests.kb.logs.builders import event, observed


def stands(rank: int, line: int = 40, call: str = "all_reduce", code: str = "") -> Event:
    """A rank that lost its peers in a call of the program."""
    frames = f"{call} (/torch/distributed/distributed_c10d.py:3)\ntrain (/job/train.py:{line})"
    return event("traceback", 10 + rank, rank=rank, frames=frames, code=code)


def refuses(rank: int | None) -> Event:
    """A rank whose peer sent 512 bytes where it expects 32."""
    return event(
        "mismatch_detected",
        5,
        pattern="gloo-size-mismatch",
        rank=rank,
        received=512,
        expected=32,
    )


def aborted(rank: int) -> Event:
    """A rank's row in the launcher's table."""
    return event("exit_row", 90 + rank, rank=rank, exit_code=-6)


SENDS = "it sent 512 bytes where its peer expects 32, and stands elsewhere"
EXPECTS = "it expects 32 bytes and got 512; the others stand in one place"
JOB = event("init_complete", 1, world_size=4)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # rank 2 receives from rank 3, which stands elsewhere than rank 1
        pytest.param([JOB, refuses(2), stands(1, 40), stands(3, 41)], [(3, SENDS)], id="sender"),
        pytest.param([JOB, refuses(3), stands(0, 41), stands(1, 40)], [(0, SENDS)], id="around"),
        # its line does not tell who refuses: the only one that aborted
        pytest.param(
            [JOB, refuses(None), stands(1, 40), stands(3, 41), aborted(2)], [(3, SENDS)], id="abort"
        ),
        pytest.param(
            [JOB, refuses(None), stands(1, 40), stands(3, 41), aborted(2), aborted(0)],
            [],
            id="two-aborted",
        ),
        # all others gather in one place, so the size that is unlike is its own
        pytest.param(
            [JOB, refuses(1), stands(0, call="all_gather"), stands(2, call="all_gather")],
            [(1, EXPECTS)],
            id="a-short-last-batch",
        ),
        # rank 0 had announced an evaluation, the others train
        pytest.param(
            [JOB, event("evaluating", 3, rank=0), refuses(0), stands(1), stands(2), stands(3)],
            [(0, EXPECTS)],
            id="rank-0-evaluates-alone",
        ),
        # which of two in one place has the other size is not said
        pytest.param([JOB, refuses(1), stands(0), stands(2), stands(3)], [], id="one-place"),
        pytest.param(
            [JOB, event("evaluating", 3, rank=0), refuses(1), stands(0), stands(2)],
            [],
            id="another-announced-it",
        ),
        pytest.param([JOB, refuses(1)], [], id="no-places"),
        pytest.param([JOB, refuses(None), stands(1, 40), stands(3, 41)], [], id="nobody's-line"),
        pytest.param(
            [JOB, refuses(2), refuses(0), stands(1, 40), stands(3, 41)], [], id="two-refuse"
        ),
    ],
)
def test_which_of_the_pair(events: list[Event], expected: list[tuple[int, str]]) -> None:
    """The sender where it stands elsewhere, the receiver where it is surely alone, else nobody."""
    found = find_culprits(observed(*sorted(events, key=lambda item: item.line)))
    assert [(culprit.rank, culprit.reason.en) for culprit in found] == expected


CODE = "step(x, size=2048 if rank == 2 else 1024)"


@pytest.mark.parametrize(
    ("quoted", "expected"),
    [
        ((CODE,), [2]),
        ((CODE, "y = 3 if rank == 1 else 4"), []),
        # code that stands in no traceback of a rank is not what failed
        ((), []),
    ],
)
def test_the_code_at_the_failure_names_a_rank(quoted: tuple[str, ...], expected: list[int]) -> None:
    """A line of the traceback treats one rank unlike the others: where nothing else tells."""
    code = "\n".join(quoted)
    lines = {CODE: 2, "y = 3 if rank == 1 else 4": 1}
    events = [
        event("rank_in_code", 20, rank=0, peer=rank, text=f"[rank0]:     {line}")
        for line, rank in lines.items()
        if line in quoted or not quoted
    ]
    found = find_culprits(
        observed(JOB, refuses(1), stands(0, code=code), stands(2, code=code), *events)
    )
    assert [culprit.rank for culprit in found] == expected
