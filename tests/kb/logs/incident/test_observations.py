"""Reports and progress: what is read off the watchdog's lines."""

from __future__ import annotations

import pytest

from kb.logs.incident.observations import number, read_progress, read_reports
from kb.types.incident import Event
from kb.types.vocabulary import EventRole
from tests.kb.logs.builders import event, log, observed, report


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-1", -1), ("", None), (None, None), ("x", None), ("1.5", None)],
)
def test_numbers(text: str | None, value: int | None) -> None:
    """Whole numbers only."""
    assert number(text) == value


def test_a_report_holds_what_was_printed() -> None:
    """Every field of the line, None or empty where nothing was printed."""
    full = event(
        "collective_timeout",
        9,
        rank=3,
        group="0",
        seq=7,
        op="SEND",
        numel_in=1,
        numel_out=2,
        timeout_ms=3,
        ran_ms=4,
    )
    (one,) = read_reports(log(full))
    assert (one.rank, one.process_group, one.seq, one.op, one.line) == (3, "0", 7, "SEND", 9)
    assert (one.numel_in, one.numel_out, one.timeout_ms, one.ran_ms) == (1, 2, 3, 4)
    (bare,) = read_reports(log(event("collective_timeout")))
    assert (bare.rank, bare.process_group, bare.seq, bare.op) == (None, "", None, "")
    assert (bare.numel_in, bare.numel_out, bare.timeout_ms, bare.ran_ms) == (None,) * 4


@pytest.mark.parametrize(
    ("events", "groups"),
    [
        # its own
        ([report(1, 0, group="a")], ["a"]),
        # the only one the log names
        ([report(1, 0), event("watchdog_timeout", 2, rank=1, group="a")], ["a"]),
        ([report(1, 0), event("store_timeout", 2, rank=1, group="a")], [""]),
        # of several the one of the same rank and number
        (
            [
                report(1, 0, seq=5),
                event("rank_progress", 2, rank=0, group="a", seq=5),
                event("rank_progress", 3, rank=1, group="b", seq=5),
            ],
            ["a"],
        ),
        (
            [
                report(1, 0, seq=5),
                event("rank_progress", 2, rank=0, group="a", seq=6),
                event("rank_progress", 3, rank=1, group="b", seq=5),
            ],
            [""],
        ),
        # two lines that disagree say nothing
        (
            [
                report(1, 0, seq=5),
                event("rank_progress", 2, rank=0, group="a", seq=5),
                event("rank_progress", 3, rank=0, group="b", seq=5),
            ],
            [""],
        ),
    ],
)
def test_process_groups(events: list[Event], groups: list[str]) -> None:
    """A missing group is taken from a line that can only mean the same work."""
    assert [one.process_group for one in read_reports(log(*events))] == groups


@pytest.mark.parametrize(
    ("second", "merged"),
    [
        (report(2, 0), True),
        (report(500, 0), True),
        (report(501, 0), False),
        (report(2, 1), False),
        (report(2, 0, seq=51), False),
        (report(2, 0, op="BROADCAST"), False),
        (report(2, 0, numel_in=8), False),
        (report(2, 0, file="b"), False),
        (report(2, 0, numel_out=8), True),
        (report(2, 0, timeout_ms=1), True),
    ],
)
def test_the_watchdog_repeats_itself(second: Event, merged: bool) -> None:
    """One report per rank, group, number and wave; the first one stays."""
    reports = read_reports(log(report(1, 0), second))
    assert [one.line for one in reports] == ([1] if merged else [1, second.line])


@pytest.mark.parametrize(
    ("first", "second", "merged"), [("a", "a", True), ("a", "b", False), ("a", "", True)]
)
def test_repeats_of_one_group(first: str, second: str, merged: bool) -> None:
    """An unknown group may be the same one."""
    other = event("watchdog_timeout", 9, rank=8, group="z")
    reports = read_reports(log(report(1, 0, group=first), report(2, 0, group=second), other))
    assert len(reports) == (1 if merged else 2)


def test_repeats_behind_many_other_ranks() -> None:
    """However many ranks print in between, a repeat within 500 lines is one."""
    first = [report(rank + 1, rank) for rank in range(240)]
    again = [report(rank + 241, rank) for rank in range(240)]
    assert [one.line for one in read_reports(log(*first, *again))] == list(range(1, 241))


def test_the_last_progress_of_each_rank_and_group() -> None:
    """By rank and group; lines without a rank or an enqueued number are none."""
    events = [
        event("rank_progress", 1, rank=1, group="a", enqueued=5, completed=4, seq=5),
        event("rank_progress", 2, rank=1, group="a", enqueued=6),
        event("rank_progress", 3, rank=0, group="b", enqueued=7, completed=-1),
        event("rank_progress", 4, rank=0, group="a", enqueued=8, completed=8),
        event("rank_progress", 5, group="a", enqueued=9, completed=9),
        event("rank_progress", 6, rank=0, group="a", completed=9),
    ]
    watchdog = log(*events).of(EventRole.WATCHDOG_REPORT)
    rows = [
        (p.rank, p.process_group, p.seq, p.enqueued, p.completed, p.event.line)
        for p in read_progress(watchdog)
    ]
    assert rows == [
        (0, "a", None, 8, 8, 4),
        (0, "b", None, 7, -1, 3),
        (1, "a", None, 6, None, 2),
    ]


@pytest.mark.parametrize(
    ("events", "line"),
    [
        ([event("collective_timeout", 1, rank=0), report(2, 1, seq=None), report(3, 2)], 3),
        ([event("collective_timeout", 1, rank=0), report(2, 1, seq=None)], 2),
        ([event("collective_timeout", 1, rank=0, seq=5)], 1),
        ([report(1, 0), report(2, 1)], 1),
        ([event("store_timeout", 1)], None),
    ],
)
def test_the_main_report(events: list[Event], line: int | None) -> None:
    """The first that names operation and number, else operation, else any."""
    main = observed(*events).main
    assert (main.line if main else None) == line


def test_ranks_are_compared_within_the_first_wave() -> None:
    """Reports and progress of a second burst are left out of the comparison."""
    events = [
        report(1, 0),
        event("rank_progress", 2, rank=0, enqueued=50, completed=49),
        report(9000, 1, seq=99),
        event("rank_progress", 9001, rank=1, enqueued=99, completed=98),
    ]
    seen = observed(*events)
    assert [one.line for one in seen.reports] == [1, 9000]
    assert [one.line for one in seen.first_reports] == [1]
    assert [one.rank for one in seen.progress] == [0]
    assert [wave.first_line for wave in seen.incident.waves] == [1, 9000]
