"""Where ranks run: every line that shows a host or a GPU, and what failed where."""

from __future__ import annotations

from functools import cache

import pytest

from kb.logs.event_log import EventVocabulary
from kb.logs.incident.hosts import culprit_places, distinct_places
from kb.logs.reader import LogReader
from kb.types.entries import RankPlace
from kb.types.incident import LogReading
from tests.kb.logs.builders import knowledge

WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran "
    "for 600010 milliseconds before timing out."
)


@cache
def reader() -> LogReader:
    """A reader with the shipped patterns."""
    return LogReader(EventVocabulary.of(knowledge()), cache=None)


def read(*lines: str) -> LogReading:
    """What is read in these lines."""
    return reader().read_text("\n".join(lines) + "\n")


def places(*lines: str) -> dict[int, tuple[str, str]]:
    """Host and GPU by rank."""
    return {state.rank: (state.host, state.gpu) for state in read(*lines).incident.ranks}


SHOWN = {
    "communicator": (
        [
            (
                "gpu-07:97:221 [3] NCCL INFO comm 0x5581 rank 11 nranks 16 cudaDev 3 nvmlDev 3 "
                "busId 1b000 commId 0x47 - Init COMPLETE"
            )
        ],
        {11: ("gpu-07", "3 (1b:00)")},
    ),
    "communicator of an older version": (
        ["gpu-07:97:221 [3] NCCL INFO comm 0x5581 rank 11 nranks 16 cudaDev 3 - Init COMPLETE"],
        {11: ("gpu-07", "3")},
    ),
    "physical number first": (
        [
            (
                "gpu-07:97:221 [0] NCCL INFO comm 0x5581 rank 1 nranks 2 cudaDev 0 nvmlDev 5 "
                "busId 9d000 commId 0x47 - Init START"
            )
        ],
        {1: ("gpu-07", "5 (9d:00)")},
    ),
    "the job's communicator, not a part's": (
        [
            "gpu-07:97:221 [3] NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 3 - Init COMPLETE",
            "gpu-07:98:221 [4] NCCL INFO comm 0x2 rank 3 nranks 4 cudaDev 4 - Init COMPLETE",
        ],
        {3: ("gpu-07", "3")},
    ),
    "front of a rank's line": (
        [
            (
                "[rank3]: gpu-07:97:221 [5] include/shm.h:28 NCCL WARN Call to posix_fallocate "
                "failed : No space left on device"
            )
        ],
        {3: ("gpu-07", "5")},
    ),
    "rank and host of a launcher": (
        ["[rank3]:[node1] torch.cuda.OutOfMemoryError: CUDA out of memory."],
        {3: ("node1", "")},
    ),
    "a word in brackets is no host": (
        ["[rank3]:[step12] torch.cuda.OutOfMemoryError: CUDA out of memory."],
        {3: ("", "")},
    ),
    "table of failures": (
        [
            "NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
            WATCHDOG.format(rank=0),
            "Root Cause (first observed failure):",
            "[0]:",
            "  time      : 2024-05-01_12:00:00",
            "  host      : gpu-07.cluster",
            "  rank      : 11 (local_rank: 3)",
            "  exitcode  : -9 (pid: 1234)",
        ],
        {0: ("", ""), 11: ("gpu-07.cluster", "3")},
    ),
    "a job without GPUs has none": (
        [
            "  host      : cpu-01",
            "  rank      : 1 (local_rank: 1)",
            "  exitcode  : 1 (pid: 1234)",
        ],
        {1: ("cpu-01", "")},
    ),
    "srun": (
        ["srun: error: gpu-07: task 5: Segmentation fault"],
        {5: ("gpu-07", "")},
    ),
    "Ray's list": (
        [
            (
                "(TorchTrainer pid=1, ip=10.0.0.1) - (node_id=2b, ip=10.0.0.2, pid=13) "
                "world_rank=9, local_rank=1, node_rank=1"
            ),
            WATCHDOG.format(rank=9),
        ],
        {9: ("10.0.0.2", "1")},
    ),
    "Ray's front": (
        ["(Worker pid=14, ip=10.5.5.3) " + WATCHDOG.format(rank=12)],
        {12: ("10.5.5.3", "")},
    ),
    "DeepSpeed's list": (
        [
            (
                "[INFO] [launch.py:155:main] global_rank_mapping=defaultdict(<class 'list'>, "
                "{'worker-0': [0, 1], 'worker-1': [2, 3]})"
            ),
            WATCHDOG.format(rank=3),
        ],
        {3: ("worker-1", "1")},
    ),
    "Ascend": (
        [
            (
                "[INFO] HCCL(7,python):2025-11-20-11:59:56.716.583 [op_base.cc:1293] [7]"
                "Entry-HcclCommInitRootInfoInner:ranks[4], rank[3], rootinfo: host ip[127.10.0.1] "
                "port[60000] nicDeploy[1] identifier[x], deviceLogicId[3]"
            )
        ],
        {3: ("", "3")},
    ),
    "every machine is called localhost": (
        ["  host      : localhost", "  rank      : 1 (local_rank: 1)"],
        {1: ("", "")},
    ),
}


@pytest.mark.parametrize(("lines", "shown"), SHOWN.values(), ids=SHOWN)
def test_where_ranks_run(lines: list[str], shown: dict[int, tuple[str, str]]) -> None:
    """Host and GPU of the ranks of which the log shows either."""
    found = places(*lines)
    assert {rank: found[rank] for rank in shown} == shown


def test_every_row_of_a_table_has_its_own_host() -> None:
    """More ranks on one host than lines are kept of other context, and none of them is lost."""
    rows = [
        line
        for rank in range(32)
        for line in (
            f"[{rank}]:",
            "  time      : 2024-05-01_12:00:00",
            f"  host      : node-{rank // 8}",
            f"  rank      : {rank} (local_rank: {rank % 8})",
            f"  exitcode  : 1 (pid: {1000 + rank})",
        )
    ]
    found = places(WATCHDOG.format(rank=0), *rows)
    assert found == {rank: (f"node-{rank // 8}", str(rank % 8)) for rank in range(32)}


INIT = (
    "gpu-07:9{n}:221 [{n}] NCCL INFO comm 0x55 rank {n} nranks 2 cudaDev {n} nvmlDev {n} "
    "busId {bus} commId 0x47 - Init COMPLETE"
)
XID = "Nov 23 01:25:30 gpu-07 kernel: [1234.5] NVRM: Xid (PCI:0000:3d:00): 79, GPU has fallen off"


def test_the_rank_that_failed_and_where() -> None:
    """A culprit stands with its host and GPU."""
    reading = read(
        INIT.format(n=0, bus="1b000"),
        INIT.format(n=1, bus="3d000"),
        "[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        WATCHDOG.format(rank=0),
    )
    assert culprit_places(reading) == (RankPlace(rank=1, host="gpu-07", gpu="1 (3d:00)"),)


def test_a_gpu_that_the_driver_names_is_its_rank_s() -> None:
    """The bus id of an Xid leads to the rank whose communicator has it."""
    reading = read(INIT.format(n=0, bus="1b000"), INIT.format(n=1, bus="3d000"), XID)
    assert culprit_places(reading) == (RankPlace(rank=1, host="gpu-07", gpu="1 (3d:00)"),)


def test_a_gpu_and_a_node_of_no_known_rank() -> None:
    """What the driver and the scheduler name counts without a rank."""
    assert culprit_places(read(XID)) == (RankPlace(rank=None, host="gpu-07", gpu="3d:00"),)
    lost = read("slurmctld: error: Nodes gpu-09 not responding", WATCHDOG.format(rank=0))
    assert RankPlace(rank=None, host="gpu-09", gpu="") in culprit_places(lost)


def test_a_place_of_which_another_says_more_goes() -> None:
    """Of one rank and of one GPU the fuller place stays; other ranks are other places."""
    whole, bare = RankPlace(rank=3, host="gpu-07", gpu="3 (1b:00)"), RankPlace(rank=3)
    of_driver = RankPlace(rank=None, host="gpu-07", gpu="1b:00")
    other_gpu = RankPlace(rank=None, host="gpu-07", gpu="3d:00")
    other = RankPlace(rank=4, host="gpu-07")
    places = distinct_places([bare, whole, of_driver, other_gpu, other, whole])
    assert places == (whole, other_gpu, other)
