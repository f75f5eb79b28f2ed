"""What the logs of an archive come to: weeks, repeat offenders, kinds of failures."""

from __future__ import annotations

from typing import Any

import pytest

from kb.incidents.archive import (
    ArchivedLog,
    ArchiveTally,
    LogGroup,
    RepeatOffender,
    WeekCount,
    fingerprint_of,
    query_key,
)
from kb.logs import LogReader
from kb.types.entries import RankPlace

OOM = (
    "[rank{rank}]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {rank}3 MiB\n"
    "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum={rank}1, "
    "OpType={op}, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600{rank}31 milliseconds\n"
)


def log(name: str, date: str, *places: tuple[str, str], **fields: Any) -> ArchivedLog:
    """A failure at these hosts and GPUs."""
    values: dict[str, Any] = {
        "path": name,
        "size": 1,
        "mtime_ns": 1,
        "digest": "",
        "knowledge": "",
        "status": "diagnosed",
        "cause": "rank-crash",
        "date": date,
        "fingerprint": "a",
        "culprits": tuple(RankPlace(rank=0, host=host, gpu=gpu) for host, gpu in places),
    }
    return ArchivedLog(**(values | fields))


def test_places_that_fail_again_are_offenders() -> None:
    """A GPU; a host by its short name where it failed more often than any one of its GPUs."""
    tally = ArchiveTally()
    tally.add(log("1", "2026-03-02", ("n1.cluster", "3"), ("n2", "")))
    tally.add(log("2", "2026-03-09", ("n1", "3"), cause="gpu-hardware"))
    tally.add(log("3", "2026-03-03", ("n2", "1"), ("n2", "1")))
    tally.add(log("4", "2026-03-04", ("n3", "5"), ("", "7")))
    tally.add(log("5", "2026-03-05", ("n2", "1"), fingerprint="", status="no_timeout"))
    assert tally.summary().offenders == (
        RepeatOffender(
            host="n1",
            gpu="3",
            logs=2,
            causes=("gpu-hardware", "rank-crash"),
            last_date="2026-03-09",
        ),
        RepeatOffender(host="n2", gpu="", logs=2, causes=("rank-crash",), last_date="2026-03-03"),
    )


def test_weeks_and_kinds_are_counted() -> None:
    """Weeks by time, within one the most frequent cause first; the largest kind first."""
    tally = ArchiveTally()
    tally.add(log("1", "2026-03-08", first_error="boom", fingerprint="b"))
    tally.add(log("2", "2026-03-09", cause="shm-limits"))
    tally.add(log("3", "2026-03-15", first_error="later"))
    tally.add(log("4", "2026-03-10"))
    tally.add(log("5", "", status="refused", fingerprint=""))
    summary = tally.summary()
    assert summary.statuses == {"diagnosed": 4, "refused": 1}
    assert summary.weeks == (
        WeekCount(week="2026-03-02", cause="rank-crash", logs=1),
        WeekCount(week="2026-03-09", cause="rank-crash", logs=2),
        WeekCount(week="2026-03-09", cause="shm-limits", logs=1),
    )
    large, small = summary.groups
    assert large == LogGroup(
        fingerprint="a",
        logs=3,
        cause="rank-crash",
        first_error="later",
        first_date="2026-03-09",
        last_date="2026-03-15",
        example="2",
    )
    assert (small.fingerprint, small.logs, small.first_error) == ("b", 1, "boom")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (OOM.format(rank=3, op="ALLREDUCE"), True),
        (OOM.format(rank=3, op="BROADCAST"), False),
        (OOM.format(rank=1, op="ALLREDUCE").replace("CUDA out of", "host out of"), False),
    ],
    ids=["other-rank-and-numbers", "other-operation", "other-error"],
)
def test_failures_of_one_kind_have_one_fingerprint(
    reader: LogReader, text: str, same: bool
) -> None:
    """Ranks, numbers and times are no part of it; operation and first error are."""
    first = fingerprint_of(reader.read_text(OOM.format(rank=1, op="ALLREDUCE")))
    assert first
    assert (fingerprint_of(reader.read_text(text)) == first) is same


def test_a_log_without_a_failure_has_no_fingerprint(reader: LogReader) -> None:
    """There is nothing to group."""
    assert fingerprint_of(reader.read_text("step 1 loss 0.5\nstep 2 loss 0.4\n")) == ""


def test_questions_are_one_when_numbers_differ() -> None:
    """Lines count once, whatever their order and numbers; another word makes another question."""
    key = query_key("rank 3 failed\nat 0x7f, /tmp/a")
    assert query_key("at 0x99, /tmp/b\nrank 14 failed\nrank 15 failed") == key
    assert query_key("rank 3 hangs\nat 0x7f, /tmp/a") != key
