"""Whole logs of NCCL jobs of 4 to 16 ranks: who is named; healthy text changes nobody."""

from __future__ import annotations

import random

import pytest

from kb.logs import LogReader
from kb.types.incident import Incident

CLOCK = "[E1122 16:13:{:02d}.222705810 ProcessGroupNCCL.cpp:{}]"
WORK = "WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000)"


def watchdog(
    rank: int, seq: int, op: str = "ALLREDUCE", numel: int = 7168, *, enqueued: int = 0
) -> list[str]:
    """What torch 2.5 prints of a rank that times out, up to the end of its process."""
    tag, group = f"[rank{rank}]:", f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    work = WORK.format(seq=seq, op=op, numel=numel)
    caught = f"[Rank {rank}] Watchdog caught collective operation timeout: {work} ran for 600013 "
    caught += "milliseconds before timing out."
    at_work = (
        f"{group} Exception (either an error or timeout) detected by watchdog at work: {seq}, "
    )
    at_work += f" last enqueued NCCL work: {enqueued or seq}, last completed NCCL work: {seq - 1}."
    down = "To avoid data inconsistency, we are taking the entire process down."
    ended = f"{group} Process group watchdog thread terminated with exception: {caught}"
    return [
        f"{tag}{CLOCK.format(20, 616)} {caught}",
        f"{tag}{CLOCK.format(20, 1785)} {at_work}",
        f"{tag}{CLOCK.format(21, 630)} [Rank {rank}] Some NCCL operations have failed or timed out",
        f"{tag}{CLOCK.format(21, 636)} [Rank {rank}] {down}",
        f"{tag}terminate called after throwing an instance of 'c10::DistBackendError'",
        f"{tag}  what():  {ended}",
    ]


def table(rows: dict[int, int], first: int) -> list[str]:
    """Torchrun's last words: what it ended, what it saw first, and all that failed."""
    ended = [rank for rank, code in rows.items() if code == -15]
    api = "torch/distributed/elastic/multiprocessing/api.py"
    lines = [
        f"W1122 16:13:25.1 99 {api}:897] Sending process {700 + rank} closing signal SIGTERM"
        for rank in ended
    ]
    lines.append(
        f"E1122 16:13:26.1 99 {api}:869] failed (exitcode: {rows[first]}) local_rank: {first} "
        f"(pid: {700 + first}) of binary: /usr/bin/python3"
    )
    for rank, code in sorted(rows.items(), key=lambda row: row[0] == first):
        if rank == first:
            lines.append("Root Cause (first observed failure):")
        lines += [
            "[0]:",
            "  time      : 2026-11-22_16:13:26",
            "  host      : node1",
            f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : {code} (pid: {700 + rank})",
        ]
    return lines


def shuffled(seed: int, of_ranks: list[list[str]]) -> list[str]:
    """Lines of all ranks in any order, each rank's own in order."""
    chance = random.Random(seed)
    turns = [place for place, lines in enumerate(of_ranks) for _ in lines]
    chance.shuffle(turns)
    rest = [iter(lines) for lines in of_ranks]
    return [next(rest[turn]) for turn in turns]


def missing(world: int, odd: int, seed: int) -> list[str]:
    """All wait for one rank that is elsewhere until the launcher ends it."""
    others = [rank for rank in range(world) if rank != odd]
    codes = dict.fromkeys(others, -6) | {odd: -15}
    ranks = shuffled(seed, [watchdog(rank, 4711) for rank in others])
    return [*ranks, *table(codes, others[seed % len(others)])]


def lagging(world: int, odd: int, seed: int) -> list[str]:
    """One rank waits in an earlier collective."""
    ranks = [watchdog(rank, 95 if rank == odd else 97) for rank in range(world)]
    return [*shuffled(seed, ranks), *table(dict.fromkeys(range(world), -6), (odd + 1) % world)]


def unlike(world: int, odd: int, seed: int) -> list[str]:
    """One rank runs another collective at the same number."""
    ranks = [
        watchdog(rank, 97, *(("_ALLGATHER_BASE", 512) if rank == odd else ()))
        for rank in range(world)
    ]
    return [*shuffled(seed, ranks), *table(dict.fromkeys(range(world), -6), (odd + 1) % world)]


def level(world: int, _odd: int, seed: int) -> list[str]:
    """All ranks wait in one collective and end themselves."""
    ranks = [watchdog(rank, 97) for rank in range(world)]
    return [*shuffled(seed, ranks), *table(dict.fromkeys(range(world), -6), seed % world)]


def broken(world: int, odd: int, seed: int) -> list[str]:
    """One rank runs out of memory, the others wait for it."""
    others = [rank for rank in range(world) if rank != odd]
    oom = f"[rank{odd}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    ranks = shuffled(seed, [watchdog(rank, 4711) for rank in others])
    return [oom, *ranks, *table(dict.fromkeys(others, -6) | {odd: 1}, odd)]


def other_model(world: int, odd: int, seed: int) -> list[str]:
    """DDP compares the number of parameters: each rank names the first one that differs from it."""
    ranks = []
    for rank in range(world):
        own, peer, other = (160, odd, 152) if rank != odd else (152, 0 if odd else 1, 160)
        says = f"Rank {rank} has {own} params, while rank {peer} has inconsistent {other} params."
        error = f"RuntimeError: DDP expects same model across all ranks, but {says}"
        ranks.append([f"[rank{rank}]: {error}"])
    return [*shuffled(seed, ranks), *table(dict.fromkeys(range(world), 1), (odd + 1) % world)]


JOBS = {job.__name__: job for job in (missing, lagging, unlike, broken, other_model)}
HEALTHY = {
    "init": [
        "node1:700:700 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.3<0>",
        "node1:701:811 [1] NCCL INFO comm 0x55d0 rank 1 nranks 8 cudaDev 1 - Init COMPLETE",
        "node1:703:812 [3] NCCL INFO Connected all rings",
    ],
    "steps": [f"[rank{rank}] step {90 + rank % 3}/500 loss 1.2" for rank in range(8)],
    "epoch": [f"[rank{rank}]: epoch 1 finished after 500 steps" for rank in range(8)],
    "rank-0": ["[rank0]: Epoch 1 finished, loss 0.4", "[rank0]: Saving model checkpoint to out/1"],
    "words": ["Rank 3 is on node 2, ranks 0-7 each have their own GPU; 先看一下 rank 5 的日志"],
    "table": ["| rank | step |", "| 0 | 120 |", "| 1 | 118 |"],
}


def read(reader: LogReader, lines: list[str]) -> Incident:
    """The incident of these lines."""
    return reader.read_text("\n".join(lines)).incident


def culprits(incident: Incident) -> list[int]:
    """Ranks named."""
    return [culprit.rank for culprit in incident.culprit_ranks]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(("world", "odd", "seed"), [(4, 3, 1), (8, 0, 2), (8, 5, 3), (16, 11, 4)])
def test_exactly_the_odd_rank(reader: LogReader, job: str, world: int, odd: int, seed: int) -> None:
    """Whatever the world, the rank and the order of lines; the watchdog's abort is no death."""
    assert culprits(read(reader, JOBS[job](world, odd, seed))) == [odd]


@pytest.mark.parametrize(("world", "seed"), [(4, 1), (8, 2), (16, 3)])
def test_nobody_where_all_are_alike(reader: LogReader, world: int, seed: int) -> None:
    """Torchrun's first observed failure is who reached its limit first: no reason to name it."""
    incident = read(reader, level(world, 0, seed))
    assert culprits(incident) == []
    assert incident.first_error is None


@pytest.mark.parametrize("job", [*JOBS.values(), level], ids=lambda job: job.__name__)
@pytest.mark.parametrize("text", HEALTHY)
@pytest.mark.parametrize("front", [True, False], ids=["in-front", "behind"])
def test_healthy_text_changes_no_rank(
    reader: LogReader, job: object, text: str, front: bool
) -> None:
    """What is in order, in front of the log or behind it, names nobody else."""
    lines = job(8, 5, 7)
    more = [*HEALTHY[text], *lines] if front else [*lines, *HEALTHY[text]]
    assert culprits(read(reader, more)) == culprits(read(reader, lines))
