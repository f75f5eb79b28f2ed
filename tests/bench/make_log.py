"""Write a large multi-rank training log with a known incident at its end.

Run: ``python tests/bench/make_log.py OUT [MEGABYTES] [mixed|storm]``. The mix is that of a real
job: step lines and bars of many ranks, NCCL INFO at the start and at each restart, warnings, and
in the end a rank that runs out of memory while the others time out.
"""

# ruff: noqa: E501 - log lines stand as software prints them

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

RANKS = 64
CULPRIT = 37
SEQ = 184_220


def clock(second: float) -> str:
    """A time of day for the line prefix."""
    whole = int(second)
    return f"{whole // 3600 % 24:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def start_lines() -> Iterator[str]:
    """What NCCL and the launcher print while the job comes up."""
    for rank in range(RANKS):
        node, device = divmod(rank, 8)
        front = f"node{node}:{4000 + rank}:{5000 + rank} [{device}] NCCL INFO"
        yield f"{front} Bootstrap : Using eth0:10.0.0.{node}<0>"
        yield f"{front} NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.{node}<0>"
        yield f"{front} Using network IB"
        for channel in range(8):
            yield (
                f"{front} Channel {channel:02d}/0 : {rank}[{device}] -> {(rank + 1) % RANKS}"
                f"[{(device + 1) % 8}] [send] via NET/IB/{channel % 2}/GDRDMA"
            )
        yield f"{front} comm 0x{rank:08x} rank {rank} nranks {RANKS} cudaDev {device} nvmlDev {device} busId {device}000 commId 0x47dc53f08cbcda96 - Init COMPLETE"
    yield "NCCL version 2.21.5+cuda12.4"
    yield "PyTorch version: 2.6.0+cu124"


def body_lines(rng: random.Random) -> Iterator[str]:
    """Training output without end."""
    step = 0
    while True:
        step += 1
        second = 40_000 + step * 1.3
        for rank in rng.sample(range(RANKS), 12):
            front = f"[default{rank}]:2025-06-17 {clock(second)},{rng.randrange(1000):03d} INFO trainer.py:412]"
            yield f"{front} rank {rank} step {step} loss {2 + rng.random():.4f} lr 1.0e-05 grad_norm {rng.random():.3f} tokens/s {rng.randrange(9000, 9999)} mem 71.2GiB"
        yield f"[default0]: {step % 100:3d}%|{'█' * (step % 10)}| {step}/200000 [{clock(step)}<{clock(9)}, 1.31s/it]"
        if step % 7 == 0:
            rank = rng.randrange(RANKS)
            yield f"[default{rank}]:/opt/conda/lib/python3.11/site-packages/torch/utils/checkpoint.py:87: FutureWarning: torch.cpu.amp.autocast(args...) is deprecated. Please use torch.amp.autocast('cpu', args...) instead."
        if step % 50 == 0:
            yield f"[default0]:2025-06-17 {clock(second)} INFO data.py:88] shard {step:05d}.tar opened from s3://bucket/train/{step:05d}.tar in {rng.random():.3f}s, {rng.randrange(10**6)} samples"
        if step % 500 == 0:
            yield "[default0]:***** Running Evaluation *****"
            yield f"[default0]:2025-06-17 {clock(second)} INFO saving checkpoint at iteration {step} to /ckpt in torch_dist format"


def end_lines() -> Iterator[str]:
    """The incident: one rank out of memory, the others waiting for it."""
    yield f"[rank{CULPRIT}]: Traceback (most recent call last):"
    yield f'[rank{CULPRIT}]:   File "/workspace/train.py", line 412, in train_step'
    yield f"[rank{CULPRIT}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB. GPU 5 has a total capacity of 79.15 GiB of which 1.02 GiB is free."
    for rank in range(RANKS):
        if rank != CULPRIT:
            yield from timeout_lines(rank, SEQ)


def timeout_lines(rank: int, seq: int) -> Iterator[str]:
    """What one waiting rank prints when the watchdog fires."""
    front = f"[rank{rank}]:[E617 15:17:35.{519_000_000 + rank} ProcessGroupNCCL.cpp"
    work = f"WorkNCCL(SeqNum={seq}, OpType=_ALLGATHER_BASE, NumelIn=65553408, NumelOut=262213632, Timeout(ms)=600000) ran for {600_000 + rank} milliseconds before timing out."
    yield f"{front}:629] [Rank {rank}] Watchdog caught collective operation timeout: {work}"
    yield f"{front}:2168] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {seq + 2}, last completed work: {seq - 1}"
    yield f"{front}:681] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data."


def storm_lines(rng: random.Random) -> Iterator[str]:
    """Nothing but failures, without end."""
    yield from end_lines()
    while True:
        rank = rng.randrange(RANKS)
        if rank != CULPRIT:
            yield from timeout_lines(rank, SEQ)


def write_log(path: Path, size: int, kind: str = "mixed", seed: int = 7) -> None:
    """Write about `size` bytes; blocks of the body repeat, as the scan does not care."""
    rng = random.Random(seed)
    if kind == "storm":
        head, lines = "", storm_lines(rng)
        tail = ""
    else:
        head, lines = "\n".join(start_lines()) + "\n", body_lines(rng)
        tail = "\n".join(end_lines()) + "\n"
    piece: list[str] = []
    length = 0
    while length < min(size, 32 << 20):
        line = next(lines)
        piece.append(line)
        length += len(line.encode()) + 1
    block = ("\n".join(piece) + "\n").encode()
    with path.open("wb") as out:
        written = out.write(head.encode())
        while written < size:
            written += out.write(block)
        out.write(tail.encode())


if __name__ == "__main__":
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    write_log(Path(sys.argv[1]), megabytes << 20, sys.argv[3] if len(sys.argv) > 3 else "mixed")
