"""Whose line an event is: what the line says before what its file is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.logs import LogReader
from kb.logs.event_log import EventVocabulary
from kb.logs.scan.events import join_rows
from kb.types.incident import LogReading
from tests.kb.logs.builders import event, knowledge

FAILED = (
    "E0511 21:37:12 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: -9)"
)
FAILED += " local_rank: 3 (pid: 71) of binary: /usr/bin/python"
WORK = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=4,"
)
WORK += " NumelOut=4, Timeout(ms)=1800000) ran for 1802157 milliseconds before timing out."


def read_file(reader: LogReader, folder: Path, name: str, text: str) -> LogReading:
    """The reading of one file of a folder."""
    (folder / name).write_text(text + "\n", encoding="utf-8")
    return reader.read_paths([folder])


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        pytest.param(FAILED, 3, id="the-launcher's-word"),
        pytest.param(
            "RuntimeError: CUDA error: an illegal memory access was encountered", 0, id="file"
        ),
        pytest.param("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried", 3, id="tag"),
        pytest.param("[default5]:Fatal Python error: Segmentation fault", 5, id="launcher's-tag"),
        pytest.param(
            f"[rank9]:[E511 x.cpp:1] [PG ID 2 PG GUID 5 Rank 1] [Rank 1] {WORK}", 9, id="group"
        ),
        pytest.param("srun: error: node2: task 6: Killed", 6, id="slurm"),
        pytest.param(
            "[launch.py:321:sigkill_handler] exits with return code = -7", None, id="nobody's"
        ),
    ],
)
def test_a_file_of_rank_0_may_hold_others(
    reader: LogReader, tmp_path: Path, line: str, rank: int | None
) -> None:
    """`rank_0.log` may hold the launcher's output and the lines of all ranks."""
    reading = read_file(reader, tmp_path, "rank_0.log", line)
    assert {item.rank for item in reading.events if item.kind != "context"} == {rank}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["[pod/t-1/m] {work}", "[pod/t-2/m] {work}"], [1, 2]),
        (["[pod/t-1/m] {work}", "[pod/t-1/m] [rank3]: {work}"], [None, 3]),
        (["[pod/t-1/m] [rank1]: {work}", "[pod/t-1/m] [rank3]: {work}"], [1, 3]),
        (
            ["[pod/t-1/m] {work}", "[pod/t-2/m] {work}", "[pod/t-2/m] [rank3]: {work}"],
            [None, None, 3],
        ),
        (["[pod/t-1/m] {work}"], [None]),
        (["[pod/t-1/m] {work} It waits for 'rank 3'."], [None]),
    ],
    ids=["pods", "shared", "named", "another", "alone", "words"],
)
def test_a_pod_of_several_ranks_is_none(
    reader: LogReader, lines: list[str], expected: list[int | None]
) -> None:
    """Pods' numbers are ranks where several pods print, each for one."""
    reading = reader.read_text("\n".join(lines).replace("{work}", f"RuntimeError: {WORK}"))
    reports = [item.rank for item in reading.events if item.event == "collective_timeout"]
    assert reports == expected


def ranks(*events: object) -> list[int | None]:
    """Ranks after rows were joined."""
    joined = join_rows(events, EventVocabulary.of(knowledge()))  # type: ignore[arg-type]
    return [item.rank for item in joined if item.event == "worker_exit"]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        # on one node without a table the place is the rank
        ([], 3),
        # the table knows the process: place 3 of the second node is rank 11
        ([event("rank_row", 5, rank=11), event("exit_row", 6, exit_code=-9, pid=71)], 11),
        # a table that does not have it, and several nodes: nobody knows
        ([event("rank_row", 5, rank=11), event("exit_row", 6, exit_code=-9, pid=72)], None),
        ([event("network", 5, host="node1"), event("network", 6, host="node2")], None),
        ([event("network", 5, host="node1"), event("network", 6, host="node1")], 3),
    ],
)
def test_the_place_on_a_node(others: list[object], expected: int | None) -> None:
    """`local_rank` is a rank of the job on one node only; the table tells it by the process."""
    line = event("worker_exit", 1, exit_code=-9, local_rank=3, pid=71)
    assert ranks(line, *others) == [expected]
