# ruff: noqa: D103 - the name of a kind says what the odd rank does
"""One rank of a job that hangs for good: ``hanging_job.py KIND ODD_RANK READY_FOLDER``.

All ranks train some steps; then one does something else than the others, as KIND says.
"""

from __future__ import annotations

import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

Group = dist.ProcessGroup | None
FOR_GOOD = timedelta(minutes=10)


def other_collective(group: Group) -> None:
    dist.barrier(group)


def same_call_elsewhere(group: Group) -> None:
    dist.all_reduce(torch.ones(8), group=group)


def load_batch(_group: Group) -> None:
    time.sleep(FOR_GOOD.total_seconds())


def wait_for_lock(_group: Group) -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def compute_alone(_group: Group) -> None:
    value = 0
    while True:
        value = (value * 31 + 7) % 1_000_003


def write_checkpoint(_group: Group) -> None:
    threading.Event().wait(FOR_GOOD.total_seconds())


def train_step() -> None:
    """A step of the others: the gradients are averaged."""
    dist.all_reduce(torch.ones(8))


def main(kind: str, odd: int, ready: Path) -> None:
    """Train, say that it is about to hang, and hang."""
    dist.init_process_group("gloo", timeout=FOR_GOOD)
    rank = dist.get_rank()
    other_group = dist.new_group(timeout=FOR_GOOD)
    for step in range(3):
        train_step()
        if rank == 0:
            sys.stdout.write(f"step {step} loss {2.5 / (step + 1):.4f}\n")
            sys.stdout.flush()
    (ready / str(rank)).touch()
    if rank == odd:
        globals()[kind](other_group)
    train_step()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
