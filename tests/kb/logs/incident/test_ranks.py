"""What is known of each rank: tables of events and exact states."""

from __future__ import annotations

import pytest

from kb.logs.incident.ranks import (
    ENDED_ON_PURPOSE,
    MAX_RANKS_LISTED,
    behind,
    crashed,
    exit_code,
    reporting_ranks,
    silent_ranks,
)
from kb.types.incident import Event, RankState
from tests.kb.logs.builders import event, log, observed, report


def progress(
    rank: int, enqueued: int, completed: int = 1, *, line: int = 1, group: str = "0"
) -> Event:
    """A rank's progress line."""
    fields = {"enqueued": enqueued, "completed": completed, "seq": enqueued}
    return event("rank_progress", line, rank=rank, group=group, **fields)


TENSOR = event("parallel_size", 9, name="tensor_parallel_size", size=2)
TENSOR_1 = event("parallel_size", 9, name="tensor_parallel_size", size=1)
NAMED = (report(3, 2, seq=8, group="a"), report(4, 3, seq=8, group="b"))


def states(*events: Event) -> dict[int, RankState]:
    """The rank table of these events."""
    return {state.rank: state for state in observed(*events).incident.ranks}


@pytest.mark.parametrize(
    ("name", "reports"),
    [
        ("collective_timeout", True),
        ("watchdog_timeout", True),
        ("rank_progress", True),
        ("barrier_waiter", True),
        ("monitored_barrier", True),
        ("gloo_timeout", True),
        ("store_timeout", False),
        ("cuda_oom", False),
        ("train_step", False),
    ],
)
def test_who_waited(name: str, reports: bool) -> None:
    """A rank reports where the event says that it waited itself."""
    assert reporting_ranks(log(event(name, rank=3), event(name))) == ((3,) if reports else ())


@pytest.mark.parametrize(
    ("reporting", "world", "others", "silent"),
    [
        ((), 4, [], ()),
        ((0,), None, [], ()),
        ((0,), 4, [], ()),
        ((1, 3), None, [], (0, 2)),
        ((0, 1), None, [], ()),
        ((0, 1), 2, [], ()),
        ((0, 1), 3, [], (2,)),
        ((0, 1), 4, [], (2, 3)),
        # a world no larger than the highest rank is the size of a part
        ((0, 3), 3, [], (1, 2)),
        ((0, 3), 2, [], (1, 2)),
        # ranks that failed or that the launcher lists take part; ranks that print only do not
        ((0, 1), None, [event("cuda_oom", rank=3)], (2, 3)),
        ((0, 1), None, [event("peer_closed", rank=3)], (2, 3)),
        ((0, 1), None, [event("rank_row", rank=3)], (2, 3)),
        ((0, 1), None, [event("train_step", rank=3)], ()),
        ((0, 1), None, [event("cuda_oom")], ()),
    ],
)
def test_silent_ranks(
    reporting: tuple[int, ...], world: int | None, others: list[Event], silent: tuple[int, ...]
) -> None:
    """Who takes part and reports nothing."""
    assert silent_ranks(log(*others), reporting, world) == silent


def test_silent_ranks_are_bounded() -> None:
    """A world of a million is listed in part."""
    assert silent_ranks(log(), (0, 1), 10**6) == tuple(range(2, MAX_RANKS_LISTED))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([progress(0, 5), progress(1, 4)], {1: 4}),
        # the last word of each rank counts
        ([progress(0, 5), progress(1, 4, line=1), progress(1, 5, line=2)], {}),
        # groups are compared each for itself
        ([progress(0, 5), progress(1, 4, group="1")], {}),
        (
            [progress(rank, 5 - rank % 2, group=group) for group in "01" for rank in range(2)],
            {1: 4},
        ),
        # without progress the timed-out numbers are compared
        ([report(1, 0, seq=5), report(2, 1, seq=4)], {1: 4}),
        ([report(1, 0, seq=5), report(2, 1, seq=5)], {}),
        ([report(1, 0, seq=5), report(2, None, seq=4)], {}),
        ([report(1, 0, seq=5), report(2, 1, seq=None)], {}),
        # of each rank the first report counts
        ([report(1, 0, seq=5), report(2, 1, seq=5), report(3, 1, seq=4)], {}),
        # further apart than ranks of one group ever are
        ([report(1, 0, seq=1004), report(2, 1, seq=4)], {1: 4}),
        ([report(1, 0, seq=1005), report(2, 1, seq=4)], {}),
        ([progress(0, 1004), progress(1, 4)], {1: 4}),
        ([progress(0, 1005), progress(1, 4)], {}),
        # without names several groups may be meant
        ([report(1, 0, seq=5), report(2, 1, seq=4), TENSOR], {}),
        ([report(1, 0, seq=5), report(2, 1, seq=4), TENSOR_1], {1: 4}),
        ([report(1, 0, seq=5), report(2, 0, seq=2000), report(3, 1, seq=4)], {}),
        ([report(1, 0, seq=5), report(2, 1, seq=4), *NAMED], {}),
        # progress decides where there is some
        ([progress(0, 5), progress(1, 4), report(3, 0, seq=3), report(4, 2, seq=9)], {1: 4}),
        ([progress(0, 5), progress(1, 5), report(3, 0, seq=3), report(4, 2, seq=9)], {0: 3}),
    ],
)
def test_ranks_behind(events: list[Event], expected: dict[int, int]) -> None:
    """Ranks with the lowest number of their group and the number itself."""
    slow = behind(observed(*events))
    numbers = {rank: e.fields.get("enqueued") or e.fields["seq"] for rank, e in slow.items()}
    assert numbers == {rank: str(number) for rank, number in expected.items()}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (None, False),
        (0, False),
        (1, False),
        (-1, True),
        (-6, False),
        (-9, True),
        (-11, True),
        (-15, False),
    ],
)
def test_crashes(code: int | None, expected: bool) -> None:
    """A signal is a crash, but for the watchdog's SIGABRT and the launcher's SIGTERM."""
    assert crashed(code) is expected
    assert ENDED_ON_PURPOSE == (-6, -15)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, None),
        ({"exit_code": "x"}, None),
        ({"exit_code": "1"}, 1),
        ({"exit_code": "-9"}, -9),
        ({"exit_code": "128"}, 128),
        ({"exit_code": "129"}, -1),
        ({"exit_code": "159"}, -31),
        ({"exit_code": "160"}, 160),
        ({"return_code": "2"}, 2),
        ({"exit_code": "3", "return_code": "2"}, 3),
        ({"signal_number": "11"}, -11),
        ({"signal": "SIGABRT"}, -6),
        ({"signal": "Killed"}, None),
        ({"signal": "SIGABRT", "exit_code": "1"}, 1),
    ],
)
def test_exit_codes(fields: dict[str, str], code: int | None) -> None:
    """Shells print 128 + signal for a signal below 32."""
    assert exit_code(event("exit_row", **fields)) == code


@pytest.mark.parametrize(
    ("code", "signal"),
    [
        (-4, "SIGILL"),
        (-6, "SIGABRT"),
        (-7, "SIGBUS"),
        (-8, "SIGFPE"),
        (-9, "SIGKILL"),
        (-11, "SIGSEGV"),
        (-15, "SIGTERM"),
        (-10, ""),
        (137, "SIGKILL"),
        (1, ""),
        (9, ""),
        (0, ""),
    ],
)
def test_signals(code: int, signal: str) -> None:
    """The name of the signal that ended a rank's process."""
    assert states(event("exit_row", rank=0, exit_code=code))[0].signal == signal


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([event("train_step", rank=0)], {0: "seen"}),
        ([report(1, 0)], {0: "waiting"}),
        ([report(1, 0), report(2, 2)], {0: "waiting", 1: "silent", 2: "waiting"}),
        ([report(1, 0, seq=5), report(2, 1, seq=4)], {0: "waiting", 1: "behind"}),
        # the first error, or a signal of its own
        ([event("cuda_oom", 1, rank=1), report(2, 0)], {0: "waiting", 1: "crashed"}),
        ([event("exit_row", 1, rank=0, exit_code=-9)], {0: "crashed"}),
        ([event("exit_row", 1, rank=0, exit_code=-15)], {0: "seen"}),
        ([event("exit_row", 1, rank=0, exit_code=-6), report(2, 0)], {0: "waiting"}),
        ([event("exit_row", 1, rank=0, exit_code=1)], {0: "seen"}),
        # crashed outweighs behind, behind outweighs waiting
        (
            [report(1, 0, seq=5), report(2, 1, seq=4), event("exit_row", 3, rank=1, exit_code=-9)],
            {0: "waiting", 1: "crashed"},
        ),
    ],
)
def test_states(events: list[Event], expected: dict[int, str]) -> None:
    """One word for each rank."""
    assert {rank: state.state for rank, state in states(*events).items()} == expected


def test_a_row_holds_what_the_rank_printed() -> None:
    """Report, progress of the same group, last step, first exit code, host: one row a rank."""
    events = [
        event("train_step", 1, rank=0, host="node-a", file="a", step=10),
        event("train_step", 2, rank=0, host="node-b", file="a", step=20),
        event("rank_progress", 3, rank=0, group="9", file="a", enqueued=70, completed=69, seq=70),
        report(4, 0, group="1", file="a", seq=50, numel_in=8, numel_out=16),
        event("rank_progress", 5, rank=0, group="1", file="a", enqueued=51, completed=49, seq=50),
        event("exit_row", 6, rank=0, file="a", exit_code=-6),
        event("exit_row", 7, rank=0, file="a", exit_code=-9),
    ]
    assert states(*events)[0] == RankState(
        rank=0,
        state="waiting",
        host="node-a",
        process_group="1",
        last_enqueued=51,
        last_completed=49,
        last_seq=50,
        last_op="ALLREDUCE",
        numel_in=8,
        numel_out=16,
        last_step=20,
        exit_code=-6,
        signal="SIGABRT",
        line=4,
        file="a",
    )


def test_a_row_without_a_report() -> None:
    """Progress alone gives group and number, and the first event gives the line."""
    row = states(event("train_step", 2, rank=1), progress(1, 7, 6, line=3, group="5"))[1]
    assert row == RankState(
        rank=1,
        state="waiting",
        process_group="5",
        last_enqueued=7,
        last_completed=6,
        last_seq=7,
        line=2,
    )


def test_a_silent_rank_has_a_row() -> None:
    """Nothing is known of it, and no line shows it."""
    assert states(report(1, 0), report(2, 2))[1] == RankState(rank=1, state="silent")
