"""How ranks ended, compared: tables of endings and exactly who is named."""

from __future__ import annotations

import pytest

from kb.logs.incident.endings import (
    alive_at_the_end,
    came_late,
    ended_from_outside,
    job_ranks,
    lost_by_all,
)
from kb.types.incident import Event
from tests.kb.logs.builders import event, observed

FRAMES = "all_reduce (/torch/distributed/distributed_c10d.py:3)\ntrain (/job/train.py:{line})"


def row(rank: int, code: int, line: int = 50) -> list[Event]:
    """A rank in torchrun's table; its process is 100 and its rank."""
    at = line + 10 * rank
    return [
        event("rank_row", at, rank=rank),
        event("exit_row", at + 1, rank=rank, exit_code=code, pid=100 + rank),
    ]


def closing(rank: int) -> Event:
    """The launcher ends a rank's process."""
    return event("sigterm", 40, process=100 + rank)


def lost(rank: int, line: int = 20) -> Event:
    """A rank whose peer hung up."""
    return event("peer_closed", line, rank=rank)


def waited(rank: int, line: int = 10) -> Event:
    """A rank that timed out."""
    return event("gloo_timeout", line, rank=rank)


def stands(rank: int, *, source_line: int = 40, until: int = 0, line: int = 5) -> Event:
    """A rank's traceback."""
    frames = FRAMES.format(line=source_line)
    return event("traceback", line, rank=rank, frames=frames, until=until, code="")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([waited(0), waited(1), waited(3), closing(2), *row(2, -15)], [2]),
        # not silent, not of the launcher, not by SIGTERM
        ([waited(0), waited(1), waited(2), closing(2), *row(2, -15)], []),
        ([waited(0), waited(1), waited(3), *row(2, -15)], []),
        ([waited(0), waited(1), waited(3), closing(1), *row(2, -15)], []),
        ([waited(0), waited(1), waited(3), closing(2), *row(2, -9)], []),
    ],
)
def test_silent_ranks_that_lived(events: list[Event], expected: list[int]) -> None:
    """The launcher had to end it: it did not die, it was elsewhere."""
    assert sorted(alive_at_the_end(observed(*events))) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([lost(0), lost(1), lost(3), *row(1, 1), *row(2, -15), *row(3, 1)], [2]),
        # the launcher sent it
        ([lost(0), lost(1), lost(3), closing(2), *row(2, -15)], []),
        # its lines are missing where several ended so, or where ranks timed out
        ([lost(0), lost(1), *row(2, -15), *row(3, -15)], []),
        ([lost(0), lost(1), waited(3), *row(2, -15)], []),
        # one rank alone that lost a peer is no witness, and the rank itself lost none
        ([lost(0), *row(2, -15)], []),
        ([lost(0), lost(1), lost(2), *row(2, -15)], []),
        ([lost(0), lost(1), lost(3), *row(2, -9)], []),
    ],
)
def test_who_was_ended_from_outside(events: list[Event], expected: list[int]) -> None:
    """SIGTERM that torchrun did not send, on the rank that all others lost."""
    assert list(ended_from_outside(observed(*events))) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([lost(0), lost(1), lost(3)], [2]),
        ([lost(0), lost(1), event("rank_row", rank=2)], [2]),
        ([lost(0), lost(1), event("init_complete", world_size=3)], [2]),
        # all are accounted for, or several are missing
        ([lost(0), lost(1)], []),
        ([lost(0), lost(3)], []),
        ([lost(1)], []),
        # it printed why, or ranks waited in vain
        ([lost(0), lost(1), lost(3), event("nccl_cuda_failure", rank=2)], []),
        ([lost(0), lost(1), lost(3), event("mismatch_detected")], []),
        ([lost(0), lost(1), lost(3), waited(0)], []),
    ],
)
def test_who_was_lost_by_all(events: list[Event], expected: list[int]) -> None:
    """Nobody timed out and all but one lost a peer."""
    assert list(lost_by_all(observed(*events))) == expected


def late(*, late_line: int = 60, world: int = 4, timed_out: int = 3, **of_last: int) -> list[Event]:
    """Ranks in one call: the first ones time out, the others lose their peers."""
    events = [stands(rank, **(of_last if rank == world - 1 else {})) for rank in range(world)]
    events += [waited(rank) for rank in range(timed_out)]
    return [*events, *(lost(rank, late_line) for rank in range(timed_out, world))]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (late(), [3]),
        (late(world=8, timed_out=7), [7]),
        # of two neither can be told; one witness is none
        (late(world=4, timed_out=2), []),
        (late(world=2, timed_out=1), []),
        # before the others timed out it had no peer to lose to them
        (late(late_line=6), []),
        # it stands elsewhere: then that is what says so
        (late(source_line=43), []),
        # a rank of which nothing is known may be the one
        ([*late(), event("init_complete", world_size=5)], []),
    ],
)
def test_who_came_last(events: list[Event], expected: list[int]) -> None:
    """In one call all time out but one: its limit had not run out."""
    events.sort(key=lambda item: item.line)
    assert list(came_late(observed(*events))) == expected


def test_the_ranks_of_the_job() -> None:
    """All up to the world size, or up to the highest rank that failed, waited or is listed."""
    assert job_ranks(observed(waited(0), lost(2))) == {0, 1, 2}
    assert job_ranks(observed(waited(0), event("rank_row", rank=4))) == {0, 1, 2, 3, 4}
    assert job_ranks(observed(waited(0), event("init_complete", world_size=4))) == {0, 1, 2, 3}
    assert job_ranks(observed()) == set()
