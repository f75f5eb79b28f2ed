"""Ranks and hosts out of prefixes and file names, times out of every logger's form."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from kb.logs.scan.clock import moment
from kb.logs.scan.prefix import (
    device,
    file_ranks,
    origin,
    program_rank,
    split_front,
    table_host,
)

FRONTS = {
    "[rank12]:[E511 21:37:10.112405891 ProcessGroupNCCL.cpp:629] [Rank 12] ": 12,
    "[PG ID 0 PG GUID 0(default_pg) Rank 11] ": 11,
    "[PG 0 (default_pg) Rank 6] ": 6,
    "[default3]:Traceback": 3,
    "[trainer0|0]:ncclInternalError": 0,
    "[3]:Traceback": 3,
    "[12]: Traceback": 12,
    "node:1:2 [3] NCCL INFO": None,
    "11: something": 11,
    "[1,7]<stderr>:WARNING": 7,
    "RANK=5 started": 5,
    "GLOBAL_RANK: 1, MEMBER: 2/2": 1,
    "[2025-03-19 12:00:00 TP3] Prefill": 3,
    "[2025-03-19 12:00:00 DP0 TP5] Prefill": 5,
    "(VllmWorker_TP2 pid=12) ": 2,
    "[pod/trainer-4/pytorch] ": 4,
    "> [3]: Traceback": 3,
    ">> 11: something": 11,
    "May 17 03:11:09 11: something": 11,
    "trainer-1  | [3]: Traceback": 3,
    "trainer-1  | Traceback": None,
    "INFO 05-11 21:27:10 [worker.py:284] ": None,
    "step 12: done": None,
}


@pytest.mark.parametrize(("front", "rank"), FRONTS.items(), ids=FRONTS)
def test_ranks_of_prefixes(front: str, rank: int | None) -> None:
    """The rank a launcher, logger or the program itself puts in front."""
    assert origin(front).rank == rank


SPLIT = {
    '[default2]:[rank2]:   File "x"': ("[default2]:[rank2]:", '  File "x"'),
    "[default0]:2026-11-22 10:31:27,343 - INFO": ("[default0]:", "- INFO"),
    "2026-11-22 10:31:27,343 [rank2]: x": ("[rank2]:", "x"),
    "[2]: Traceback": ("[2]:", "Traceback"),
    "  0: [rank0]: x": ("0: [rank0]:", "x"),
    "(Worker pid=14, ip=10.5.5.3) [rank12]: z": ("(Worker pid=14, ip=10.5.5.3) [rank12]:", "z"),
    "[1,3]<stderr>:  File": ("[1,3]<stderr>:", " File"),
    "[rank3]: 2: x": ("[rank3]: 2:", "x"),
    "10:31:27 [rank2]:   File": ("[rank2]:", "  File"),
    "[10:31:27.5] [rank2]: x": ("[] [rank2]:", "x"),
    "stderr: [rank2]: x": ("stderr: [rank2]:", "x"),
    "node-a: [default2]:  File": ("node-a: [default2]:", " File"),
    "RuntimeError: [gloo/pair.cc:1] x": ("", "RuntimeError: [gloo/pair.cc:1] x"),
    "   12  [rank2]:   File": ("[rank2]:", "  File"),
    "  113\tTraceback": ("", "Traceback"),
    "3 x": ("", "3 x"),
    "Traceback (most": ("", "Traceback (most"),
    '> [rank2]:   File "x"': ("> [rank2]:", '  File "x"'),
    ">> Traceback": (">>", "Traceback"),
    "May 17 03:11:09 [rank1]: x": ("[rank1]:", "x"),
    "May  7 03:11:09 node-a train.sh[41]: [rank1]: x": ("node-a train.sh[41]: [rank1]:", "x"),
    "trainer-1  | [rank1]: x": ("trainer-1  | [rank1]:", "x"),
    "12:30 lunch": ("", "12:30 lunch"),
    "": ("", ""),
}


@pytest.mark.parametrize(("line", "parts"), SPLIT.items(), ids=SPLIT)
def test_a_line_in_two(line: str, parts: tuple[str, str]) -> None:
    """Tags of who printed it, times left out, and the rest with its indentation."""
    assert split_front(line) == parts


@pytest.mark.parametrize(
    ("front", "rank"),
    [
        ("[rank9]:[E511 ProcessGroupNCCL.cpp:629] [PG ID 2 PG GUID 5(tp) Rank 1] ", 9),
        ("[default1]:[rank9]: ", 9),
        ("timed out.[rank3]:[E511] x [rank4]:[E511] ", 4),
        ("[PG 0 Rank 6] ", None),
        ("[default3]:", None),
        ("rank 3: ", None),
    ],
)
def test_the_rank_torch_prints(front: str, rank: int | None) -> None:
    """The tag nearest to what follows it; ranks of process groups and nodes are others."""
    assert program_rank(front) == rank


HOSTS = {
    "(RayWorkerWrapper pid=144878, ip=10.52.51.35) [rank12]:": "10.52.51.35",
    "gpu2-ru7:2144:2556 [2] NCCL INFO": "gpu2-ru7",
    "2025-08-12 09:37:02.25487 worker-9 >> :169:1234 [3]": "worker-9",
    "> gpu2-ru7:2144:2556 [2] NCCL INFO": "gpu2-ru7",
    "2024-05-17T03:11:20.001Z gpu2-ru7:2144:2556 [2] NCCL INFO": "gpu2-ru7",
    "[rank3]:[node1] ": "node1",
    "[rank3]:[step12] ": "",
    "[rank3]:[W1118 10:00:00 x.cpp:1] ": "",
    "Nov 23 01:25:30 gpu-07 kernel: [1234.5] NVRM: ": "gpu-07",
    "2024-05-17T03:11:20.001+08:00 gpu-07 kernel: NVRM: ": "gpu-07",
    "plain text": "",
}


@pytest.mark.parametrize(("front", "host"), HOSTS.items(), ids=HOSTS)
def test_hosts_of_prefixes(front: str, host: str) -> None:
    """The host Ray, NCCL and log collectors name."""
    assert origin(front).host == host


TABLE = b"[0]:\n  time      : 12:00\n  host      : gpu-07\n  rank      : 1 (local_rank: 1)\n"


@pytest.mark.parametrize(
    ("table", "host"),
    [
        (TABLE, "gpu-07"),
        (TABLE.replace(b"  host      : gpu-07\n", b""), ""),
        (b"  rank      : 1 (local_rank: 1)\n", ""),
        (TABLE.replace(b"  rank", b"  x\n  y\n  rank"), ""),
    ],
    ids=["above", "none", "first line of all", "too far above"],
)
def test_the_host_above_a_row(table: bytes, host: str) -> None:
    """The host of the rank in the row below it, within two lines."""
    assert table_host(table, table.index(b"  rank")) == host


def test_the_device_in_front() -> None:
    """NCCL's lines name the number of the device; other brackets are none."""
    assert device("2024-05-17T03:11:20.001Z gpu2-ru7:2144:2556 [2] NCCL INFO x") == "2"
    assert device("gpu2-ru7:2144:2556 [2] other") == ""
    assert device("[rank3]: x NCCL") == ""


def test_ranks_of_file_names() -> None:
    """Names tell ranks; a bare number only where the files of a folder differ in it alone."""
    named = {
        "a/rank_3.log": 3,
        "a/rank3.stderr": 3,
        "b/attempt_0/7/stderr.log": 7,
        "c/job_0.out": 0,
        "c/job_1.out": 1,
        "c/job_2.out": 2,
        "d/global_rank=5/out.txt": 5,
    }
    unnamed = ["e/train_48213.log", "f/run_2024.log", "f/run_2025.log", "g/log.txt"]
    paths = [Path(name) for name in (*named, *unnamed)]
    assert file_ranks(paths) == {Path(name): rank for name, rank in named.items()}


def epoch(*parts: int) -> float:
    """Seconds since the epoch of a UTC time."""
    return dt.datetime(*parts, tzinfo=dt.UTC).timestamp()  # type: ignore[misc,arg-type]


TIMES = {
    "2025-08-12 09:37:02.25 worker": epoch(2025, 8, 12, 9, 37, 2) + 0.25,
    "[2026-03-13 22:26:02] host": epoch(2026, 3, 13, 22, 26, 2),
    "2021-11-24 08:11:49,857 INFO": epoch(2021, 11, 24, 8, 11, 49) + 0.857,
    "2024-05-01T12:00:00.5Z x": epoch(2024, 5, 1, 12, 0, 0) + 0.5,
    "EI0002: [PID: 7277] 2024-11-28-11:59:30.645.648 The": epoch(2024, 11, 28, 11, 59, 30) + 0.645,
    "[rank8]:[E511 21:37:10.112405891 Proc": epoch(1970, 5, 11, 21, 37, 10) + 0.112405891,
    "I0302 02:01:36.274989 31267 nccl": epoch(1970, 3, 2, 2, 1, 36) + 0.274989,
    "INFO 05-11 21:27:10 [worker.py": epoch(1970, 5, 11, 21, 27, 10),
    "Nov 28 11:56:34 node kernel": epoch(1970, 11, 28, 11, 56, 34),
    "[Thu Nov 28 11:56:34 2024]": epoch(2024, 11, 28, 11, 56, 34),
    "12:34:56 done": 12 * 3600 + 34 * 60 + 56.0,
}


@pytest.mark.parametrize(("line", "seconds"), TIMES.items(), ids=TIMES)
def test_times(line: str, seconds: float) -> None:
    """Date, year or none of both: the same moment however it is written."""
    found = moment(line)
    assert found is not None
    assert found.seconds == pytest.approx(seconds, abs=1e-6)
    assert found.text in line


@pytest.mark.parametrize("line", ["no time", "ratio 3:4", "10:99:00", "2024-13-45 00:00:00"])
def test_no_time(line: str) -> None:
    """What only looks like a time is none, or at least no date."""
    found = moment(line)
    assert found is None or found.seconds < 86400
