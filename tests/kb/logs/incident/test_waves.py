"""Bursts of timeouts: where one ends and the next begins."""

from __future__ import annotations

import pytest

from kb.logs.incident.waves import join_waves, second_begins, split_bursts
from kb.types.incident import Event, Wave
from tests.kb.logs.builders import event, log, report


def timeout(line: int, *, time_s: float | None = None, ms: int | None = None) -> Event:
    """A timeout without a number."""
    fields = {} if ms is None else {"timeout_ms": ms}
    return event("collective_timeout", line, rank=0, time_s=time_s, **fields)


def starts(*events: Event) -> list[int]:
    """The lines on which bursts start."""
    return [burst[0].line for burst in split_bursts(log(*events)).get("", ())]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # lines alone: more than 3,000 quiet ones, or more than 300 and progress between
        ([timeout(1), timeout(3001)], [1]),
        ([timeout(1), timeout(3002)], [1, 3002]),
        ([timeout(1), event("train_step", 2), timeout(301)], [1]),
        ([timeout(1), event("train_step", 2), timeout(302)], [1, 302]),
        ([timeout(1), event("train_start", 2), timeout(302)], [1, 302]),
        ([timeout(1), event("init_complete", 2), timeout(302)], [1, 302]),
        ([timeout(1), event("saving", 2), timeout(302)], [1]),
        # progress before a burst does not part the next one
        ([event("train_step", 1), timeout(2), timeout(400)], [2]),
        # the distance counts from the last timeout, not from the first
        ([timeout(1), timeout(2500), timeout(5000)], [1]),
        # clocks decide where both are printed and comparable
        ([timeout(1, time_s=0), timeout(9000, time_s=300)], [1]),
        ([timeout(1, time_s=0), timeout(2, time_s=300.5)], [1, 2]),
        ([timeout(1, time_s=301), timeout(2, time_s=0)], [1, 2]),
        ([timeout(1, time_s=0), timeout(2, time_s=31 * 86_400)], [1]),
        ([timeout(1, time_s=0), timeout(3002)], [1, 3002]),
        # another limit is another run where progress or 3,000 lines stand between
        ([timeout(1, ms=5), event("train_step", 2), timeout(3, ms=6)], [1, 3]),
        ([timeout(1, ms=5), timeout(3, ms=6)], [1]),
        ([timeout(1, ms=5), timeout(3002, ms=6)], [1, 3002]),
        ([timeout(1, ms=5), event("train_step", 2), timeout(3, ms=5)], [1]),
        ([timeout(1), event("train_step", 2), timeout(3, ms=6)], [1]),
        # other kinds of timeouts have limits of their own
        (
            [timeout(1, ms=5), event("train_step", 2), event("store_timeout", 3, timeout_ms=6)],
            [1],
        ),
        # a rank that reports another number after progress is in another run, soon or late
        ([report(1, 0), event("init_complete", 2), report(3, 0, seq=9)], [1, 3]),
        ([report(1, 0), event("train_step", 2), report(3, 0, seq=51), report(4, 1)], [1, 3]),
        ([report(1, 0), report(3, 0, seq=9)], [1]),
        ([report(1, 0), event("train_step", 2), report(3, 1, seq=9)], [1]),
        ([report(1, 0), event("train_step", 2), report(3, 0, seq=9, group="1")], [1]),
        ([report(1, 0), event("train_step", 2), report(3, 0)], [1]),
        # what is no timeout makes no burst
        ([event("cuda_oom", 1), event("train_step", 2)], []),
    ],
)
def test_bursts(events: list[Event], expected: list[int]) -> None:
    """Progress, a gap in lines or in time, or another limit starts a new burst."""
    assert starts(*events) == expected


def test_files_are_cut_apart_and_joined_by_order() -> None:
    """The first bursts of all files are one wave, the second ones another."""
    events = [
        report(5, 0, file="a", seq=7),
        report(9000, 0, file="a", seq=9, timeout_ms=1000),
        report(3, 1, file="b", seq=7),
    ]
    bursts = split_bursts(log(*events))
    assert second_begins(bursts) == {"a": 9000}
    first, second = join_waves(bursts)
    assert first == Wave(
        first_line=5,
        last_line=5,
        op="ALLREDUCE",
        seq=7,
        timeout_ms=700_000,
        ranks=(0, 1),
        started_s=None,
        file="a",
    )
    assert (second.first_line, second.seq, second.timeout_ms, second.ranks) == (9000, 9, 1000, (0,))


def test_a_wave_is_named_after_most_of_its_reports() -> None:
    """The commonest work and limit; ties by name and number; the earliest clock."""
    events = [
        event("collective_timeout", 1, rank=2, op="B", seq=2, timeout_ms=20, time_s=9.0),
        event("collective_timeout", 2, rank=0, op="A", seq=2, timeout_ms=10, time_s=8.0),
        event("collective_timeout", 3, rank=0, op="A", seq=1, timeout_ms=10),
        event("store_timeout", 4),
    ]
    (wave,) = join_waves(split_bursts(log(*events)))
    assert (wave.op, wave.seq, wave.timeout_ms, wave.ranks) == ("A", 1, 10, (0, 2))
    assert (wave.first_line, wave.last_line, wave.started_s) == (1, 4, 8.0)
    more = event("collective_timeout", 5, rank=3, op="B", seq=2, timeout_ms=20)
    both = event("collective_timeout", 6, rank=3, timeout_ms=20)
    (wave,) = join_waves(split_bursts(log(*events, more, both)))
    assert (wave.op, wave.seq, wave.timeout_ms) == ("B", 2, 20)


def test_a_wave_without_names() -> None:
    """A timeout that prints nothing else still is a wave."""
    (wave,) = join_waves(split_bursts(log(event("store_timeout", 4))))
    assert wave == Wave(first_line=4, last_line=4)
