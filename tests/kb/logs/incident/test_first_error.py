"""The first error that no other error explains."""

from __future__ import annotations

import pytest

from kb.logs.incident.first_error import as_value, candidates, first_error
from kb.types.incident import Event, FirstError
from tests.kb.logs.builders import event, log, report


def place(events: list[Event]) -> tuple[str, int] | None:
    """File and line of the first error."""
    error = first_error(log(*events))
    return None if error is None else (error.file, error.line)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], None),
        ([report(1), event("peer_closed", 2), event("teardown", 3)], None),
        ([event("cuda_oom", 7), event("device_assert", 5)], ("", 5)),
        # before the first timeout of its file outweighs after it, but for what is reaped late
        ([report(4, 0), event("cuda_oom", 5), event("device_assert", 6)], ("", 5)),
        ([event("cuda_oom", 3), report(4, 0)], ("", 3)),
        ([event("cuda_oom", 4), report(4, 0)], ("", 4)),
        ([report(4, 0), event("cuda_oom", 5), event("signal_death", 6)], ("", 6)),
        ([report(4, 0), event("cuda_oom", 5), event("host_oom", 6)], ("", 6)),
        ([report(4, 0), event("cuda_oom", 5), event("xid", 6)], ("", 6)),
        # timeouts of other files say nothing about the order in this one
        (
            [report(4, 0, file="a"), event("cuda_oom", 9, file="b"), event("xid", 1, file="c")],
            ("b", 9),
        ),
        # the watchdog's own abort is nobody's first error; without a timeout SIGABRT is one
        ([report(4, 0), event("signal_death", 6, rank=0, signal="SIGABRT")], None),
        ([report(4, 0), event("signal_death", 6, rank=0, signal_number=6)], None),
        ([event("signal_death", 2, rank=1, exit_code=134), report(4, 0)], None),
        ([event("signal_death", 6, rank=0, signal="SIGABRT")], ("", 6)),
        ([report(4, 0), event("signal_death", 6, rank=0, signal="SIGKILL")], ("", 6)),
        # of several files the clock decides, where clocks are comparable
        (
            [event("cuda_oom", 1, file="a", time_s=9.0), event("xid", 5, file="b", time_s=8.0)],
            ("b", 5),
        ),
        ([event("cuda_oom", 9, time_s=8.0), event("xid", 5, time_s=9.0)], ("", 5)),
        (
            [
                event("cuda_oom", 1, file="a", time_s=9.0),
                event("xid", 5, file="b", time_s=8.0),
                event("store_timeout", 9, file="a", time_s=2 * 86_400.0),
            ],
            ("a", 1),
        ),
        # a broken connection follows from a host or link that went, unless that was clearly later
        ([event("ib_completion_error", 3), event("link_down", 4), report(5, 0)], ("", 4)),
        ([event("ib_completion_error", 3), event("node_failure", 4)], ("", 4)),
        ([event("link_down", 2), event("ib_completion_error", 3)], ("", 2)),
        ([event("ib_completion_error", 3), event("cuda_oom", 4), report(5, 0)], ("", 3)),
        ([event("cuda_oom", 2), event("ib_completion_error", 3), event("link_down", 4)], ("", 2)),
        (
            [event("ib_completion_error", 3, time_s=9.0), event("link_down", 4, time_s=200.0)],
            ("", 3),
        ),
        (
            [event("ib_completion_error", 3, time_s=9.0), event("link_down", 4, time_s=60.0)],
            ("", 4),
        ),
    ],
)
def test_which_comes_first(events: list[Event], expected: tuple[str, int] | None) -> None:
    """Place in the log, then the clock across files."""
    assert place(events) == expected


@pytest.mark.parametrize(
    ("vague", "specific", "expected"),
    [
        (event("exception", 100), event("cuda_oom", 160), 160),
        (event("exception", 100), event("cuda_oom", 161), 100),
        (event("nccl_system_error", 100), event("cuda_oom", 130), 130),
        (event("nccl_internal_error", 100), event("cuda_oom", 130), 130),
        (event("nccl_cuda_error", 100), event("cuda_oom", 130), 130),
        (event("device_assert", 100), event("cuda_oom", 130), 100),
        (event("exception", 100, rank=0), event("cuda_oom", 130, rank=0), 130),
        (event("exception", 100, rank=0), event("cuda_oom", 130, rank=1), 100),
        (event("exception", 100, rank=0), event("cuda_oom", 130), 130),
        (event("exception", 100), event("cuda_oom", 130, rank=1), 130),
        (event("exception", 100), event("nccl_system_error", 130), 100),
        (event("exception", 100, file="a"), event("cuda_oom", 130, file="b"), 100),
    ],
)
def test_a_specific_error_explains_a_vague_one(
    vague: Event, specific: Event, expected: int
) -> None:
    """Within 60 lines of one file, on the same rank or one of them unknown."""
    error = first_error(log(vague, specific))
    assert error is not None
    assert error.line == expected


def test_the_first_of_several_explanations() -> None:
    """Specific errors beside a vague one are ordered like all errors."""
    events = [event("exception", 50), event("cuda_oom", 60), event("device_assert", 55)]
    assert place(events) == ("", 55)


@pytest.mark.parametrize(
    ("others", "root", "counts"),
    [
        # a generic exception on the line of something specific is its message
        ([event("peer_closed", 5)], event("exception", 5), False),
        ([event("teardown", 5)], event("exception", 5), False),
        ([report(5, 0)], event("exception", 5), False),
        ([event("cuda_oom", 5)], event("exception", 5), False),
        ([event("train_step", 5)], event("exception", 5), True),
        ([event("peer_closed", 5, file="a")], event("exception", 5, file="b"), True),
        ([event("peer_closed", 4)], event("exception", 5), True),
        # after its rank timed out, a vague error follows from that
        ([report(4, 0)], event("exception", 5, rank=0), False),
        ([report(5, 0)], event("nccl_system_error", 5, rank=0), True),
        ([report(4, 0)], event("nccl_system_error", 5, rank=0), False),
        ([report(4, 0)], event("exception", 5, rank=1), True),
        ([report(4, 0)], event("exception", 5), False),
        ([report(4, None)], event("exception", 5, rank=0), True),
        ([report(4, 0, file="a")], event("exception", 5, file="b"), True),
        ([report(4, 0), report(9, 0)], event("exception", 5, rank=0), False),
        ([report(4, 0)], event("cuda_oom", 5, rank=0), True),
    ],
)
def test_candidates(others: list[Event], root: Event, counts: bool) -> None:
    """Which root events can be the first error."""
    events = sorted([*others, root], key=lambda e: e.line)
    assert (root in candidates(log(*events))) is counts


def test_the_value_of_the_contract() -> None:
    """Rank, place, kind and text of the event."""
    assert as_value(None) is None
    error = event("cuda_oom", 7, rank=2, file="a", text="out of memory", host="node7")
    assert as_value(error) == FirstError(
        rank=2, line=7, kind="cuda_oom", text="out of memory", file="a", host="node7"
    )
