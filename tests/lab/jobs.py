# ruff: noqa: D103 - the name of a job says what goes wrong, scenarios.yaml what is true
"""Training jobs with one injected fault each, run by torchrun: ``torchrun ... jobs.py NAME``.

Every job is an ordinary Gloo program on the CPU; what it prints comes from torch, Python and the
lines training scripts print themselves. The timeout is ``LAB_TIMEOUT_S`` seconds. A job that hangs
leaves a flight-recorder dump and Python stacks of each rank in ``LAB_OUT`` (see `watch`).
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

TIMEOUT_S = float(os.environ.get("LAB_TIMEOUT_S", "4"))
OUT = Path(os.environ.get("LAB_OUT", "."))
RANK = int(os.environ.get("RANK", "0"))
LONG_S = TIMEOUT_S * 2.5  # work that outlasts the timeout on every rank that waits for it

logging.basicConfig(
    level=logging.INFO,
    format="%(asctime)s - %(levelname)s - %(name)s - %(message)s",
    stream=sys.stderr,
)
log = logging.getLogger("train")


def watch() -> None:
    """Dump the flight recorder and the stacks once any rank failed or waited half the timeout.

    PyTorch does the same for NCCL: the first rank that times out asks all others for a dump. The
    recorder's own stacks are left out: resolving them takes longer than these jobs live.
    """
    from torch._C._distributed_c10d import _dump_fr_trace_json

    asked = OUT / "dump_now"
    while not asked.exists():
        time.sleep(0.2)
        report = json.loads(_dump_fr_trace_json(includeCollectives=True, onlyActive=False))
        waiting = [
            entry
            for entry in report.get("entries", [])
            if not entry["retired"] and time.time() - entry["time_created_ns"] / 1e9 > TIMEOUT_S / 2
        ]
        if waiting:
            asked.touch()
    leave_evidence()


def leave_evidence() -> None:
    """Write this rank's flight-recorder dump and Python stacks, once."""
    from torch._C._distributed_c10d import _dump_fr_trace

    dump = OUT / "evidence" / "dumps" / f"nccl_trace_rank_{RANK}"
    if dump.exists():
        return
    dump.write_bytes(
        _dump_fr_trace(includeCollectives=True, includeStackTraces=False, onlyActive=False)
    )
    if threading.current_thread() is not threading.main_thread():
        with (OUT / "evidence" / "stacks" / f"stack_rank_{RANK}.txt").open("w") as file:
            faulthandler.dump_traceback(file=file, all_threads=True)


def start() -> tuple[int, int]:
    """Join the job; rank and world size."""
    (OUT / "pids" / str(RANK)).write_text(str(os.getpid()))
    dist.init_process_group("gloo", timeout=timedelta(seconds=TIMEOUT_S))
    threading.Thread(target=watch, daemon=True, name="watch").start()
    return dist.get_rank(), dist.get_world_size()


def train_step(step: int, size: int = 1024, work_s: float = 0.05) -> None:
    """One step of data-parallel training: compute, then average the gradients."""
    gradients = torch.ones(size)
    time.sleep(work_s)
    dist.all_reduce(gradients)
    if RANK == 0:
        log.info("epoch 0 step %d loss %.4f", step, 2.5 / (step + 1))


def exception() -> None:
    rank, _ = start()
    for step in range(10):
        if rank == 2 and step == 4:
            labels: dict[str, int] = {"cat": 0}
            labels["dog"]
        train_step(step)


def cuda_like_oom() -> None:
    rank, _ = start()
    for step in range(10):
        if rank == 1 and step == 3:
            torch.empty(1 << 50)  # the CPU allocator refuses: not enough memory
        train_step(step)


def _kill_at(number: signal.Signals, victim: int) -> None:
    rank, _ = start()
    for step in range(10):
        if rank == victim and step == 4:
            os.kill(os.getpid(), number)
            time.sleep(LONG_S)
        train_step(step)


def sigkill() -> None:
    _kill_at(signal.SIGKILL, 1)


def oom_kill() -> None:
    _kill_at(signal.SIGKILL, 3)


def sigterm() -> None:
    _kill_at(signal.SIGTERM, 2)


def sigsegv() -> None:
    rank, _ = start()
    for step in range(10):
        if rank == 3 and step == 2:
            ctypes.string_at(0)
        train_step(step)


class Samples(torch.utils.data.Dataset[torch.Tensor]):
    """Samples, some of which cost time or kill the worker that reads them."""

    def __init__(self, count: int, *, slow_from: int = -1, kill_at: int = -1) -> None:
        self.count, self.slow_from, self.kill_at = count, slow_from, kill_at

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        if 0 <= self.slow_from <= index:
            read_from_shared_storage()
        if index == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((8,), float(index))


def read_from_shared_storage() -> None:
    """A read that hangs."""
    time.sleep(LONG_S)


def _loader(dataset: Samples, workers: int = 0) -> torch.utils.data.DataLoader[torch.Tensor]:
    return torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=workers)


def dataloader_killed() -> None:
    rank, _ = start()
    for step, _batch in enumerate(_loader(Samples(40, kill_at=12 if rank == 1 else -1), workers=1)):
        train_step(step)


def slow_loader() -> None:
    rank, _ = start()
    for step, _batch in enumerate(_loader(Samples(40, slow_from=16 if rank == 2 else -1))):
        train_step(step)


def slow_loader_workers() -> None:
    rank, _ = start()
    dataset = Samples(40, slow_from=16 if rank == 3 else -1)
    for step, _batch in enumerate(_loader(dataset, workers=1)):
        train_step(step)


def uneven_split() -> None:
    rank, _ = start()
    for step, _batch in enumerate(_loader(Samples(24 if rank == 3 else 40))):
        train_step(step)
    log.info("rank %d finished training epoch 0", rank)
    time.sleep(LONG_S)


def uneven_split_barrier() -> None:
    rank, _ = start()
    for step, _batch in enumerate(_loader(Samples(24 if rank == 0 else 40))):
        train_step(step)
    dist.barrier()
    if rank == 0:
        log.info("***** Running Evaluation *****")


def uneven_last_batch() -> None:
    rank, world = start()
    for step, batch in enumerate(_loader(Samples(38 if rank == 1 else 40))):
        train_step(step)
        gathered = [torch.empty_like(batch) for _ in range(world)]
        dist.all_gather(gathered, batch)


def tokenize_dataset() -> None:
    """Serial preprocessing with the progress bar of such scripts."""
    from tqdm import tqdm

    for _ in tqdm(range(int(LONG_S * 4)), desc="Running tokenizer on dataset"):
        time.sleep(0.25)


def rank0_preprocessing() -> None:
    rank, _ = start()
    if rank == 0:
        tokenize_dataset()
    dist.barrier()
    for step in range(3):
        train_step(step)


def evaluate(loader: Iterator[int], *, reduce: bool) -> None:
    """Evaluation; with `reduce` it averages its metric over the group."""
    for _ in loader:
        time.sleep(0.05)
        if reduce:
            dist.all_reduce(torch.zeros(1))


def rank0_eval_collective() -> None:
    rank, _ = start()
    for step in range(4):
        train_step(step)
    if rank == 0:
        log.info("***** Running Evaluation *****")
        evaluate(iter(range(4)), reduce=True)
    for step in range(4, 8):
        train_step(step)


def rank0_eval_long() -> None:
    rank, _ = start()
    for step in range(4):
        train_step(step)
    if rank == 0:
        log.info("***** Running Evaluation *****")
        evaluate(iter(range(int(LONG_S * 20))), reduce=False)
    for step in range(4, 8):
        train_step(step)


def save_checkpoint() -> None:
    """A write to storage that takes longer than the timeout."""
    with Path(os.devnull).open("wb") as file:
        for _ in range(int(LONG_S * 4)):
            torch.save({"weight": torch.ones(1024)}, file)
            time.sleep(0.25)


def slow_checkpoint() -> None:
    rank, _ = start()
    for step in range(4):
        train_step(step)
    if rank == 0:
        log.info("Saving model checkpoint to output/checkpoint-4")
        save_checkpoint()
    dist.barrier()


def disk_full() -> None:
    rank, _ = start()
    for step in range(4):
        train_step(step)
    if rank == 0:
        log.info("Saving model checkpoint to output/checkpoint-4")
        with Path("/dev/full").open("wb") as file:
            file.write(bytes(1 << 20))
    dist.barrier()


def gather_full_state() -> None:
    """What saving a sharded model does first: all ranks give their part."""
    shard = torch.ones(256)
    dist.all_gather([torch.empty_like(shard) for _ in range(dist.get_world_size())], shard)


def save_in_main() -> None:
    rank, _ = start()
    for step in range(4):
        train_step(step)
    if rank == 0:
        log.info("Saving model checkpoint to output/checkpoint-4")
        gather_full_state()
    for step in range(4, 8):
        train_step(step)


def straggler() -> None:
    rank, _ = start()
    for step in range(12):
        train_step(step, work_s=0.15 * 1.9**step if rank == 1 else 0.05)


def shape_mismatch() -> None:
    rank, _ = start()
    for step in range(8):
        train_step(step, size=2048 if rank == 2 and step == 4 else 1024)


def op_mismatch() -> None:
    rank, _ = start()
    for step in range(8):
        if rank == 1 and step == 4:
            dist.broadcast(torch.ones(1024), src=1)
        train_step(step)


def modality_absent() -> None:
    rank, _ = start()
    for step in range(8):
        if not (rank == 3 and step == 5):
            dist.all_reduce(torch.ones(64))  # the vision tower's gradients
        train_step(step)


def monitored_barrier() -> None:
    rank, _ = start()
    for step in range(3):
        train_step(step)
    if rank != 3:
        dist.monitored_barrier(timeout=timedelta(seconds=TIMEOUT_S))
    train_step(3)


def two_groups_order() -> None:
    rank, world = start()
    tensor = dist.new_group(list(range(world)), timeout=timedelta(seconds=TIMEOUT_S))
    data = dist.new_group(list(range(world)), timeout=timedelta(seconds=TIMEOUT_S))
    for step in range(6):
        groups = [tensor, data]
        if rank == 2 and step == 4:
            groups.reverse()
        for group in groups:
            dist.all_reduce(torch.ones(128), group=group)
        if rank == 0:
            log.info("step %d done", step)


def hold_gil() -> None:
    """One long call into C that never lets another Python thread run."""
    sum(range(3_000_000_000))


def gil_hold() -> None:
    rank, _ = start()
    for step in range(8):
        if rank == 1 and step == 4:
            hold_gil()
        train_step(step)


def late_join() -> None:
    if RANK == 3:
        time.sleep(LONG_S)
    start()
    train_step(0)


def plain() -> None:
    """No fault of its own: the way it is launched is the fault."""
    start()
    for step in range(3):
        train_step(step)


def port_taken() -> None:
    if RANK == 0:
        import socket

        blocker = socket.create_server(("", int(os.environ["MASTER_PORT"])))
        start()
        blocker.close()
    time.sleep(1)
    start()


def wrong_interface() -> None:
    if RANK == 2:
        os.environ["GLOO_SOCKET_IFNAME"] = "ib_nosuch0"
    start()
    train_step(0)


JOBS: dict[str, Callable[[], None]] = {
    job.__name__: job
    for job in (
        *(exception, cuda_like_oom, sigkill, oom_kill, sigterm, sigsegv, dataloader_killed),
        *(slow_loader, slow_loader_workers, uneven_split, uneven_split_barrier, uneven_last_batch),
        *(rank0_preprocessing, rank0_eval_collective, rank0_eval_long, slow_checkpoint, disk_full),
        *(save_in_main, straggler, shape_mismatch, op_mismatch, modality_absent),
        *(monitored_barrier, two_groups_order, gil_hold, late_join, plain, port_taken),
        wrong_interface,
    )
}


def run_job(job: Callable[[], None]) -> None:
    """Run a job; what it leaves when it fails."""
    try:
        job()
    except Exception:
        if dist.is_initialized():
            (OUT / "dump_now").touch()
            leave_evidence()
        raise
    if dist.is_initialized():
        dist.destroy_process_group()


def main() -> None:
    """Run the job named on the command line."""
    run_job(JOBS[sys.argv[1]])


if __name__ == "__main__":
    if os.environ.get("LAB_RECORD"):  # torchrun then writes an error file for a failed rank
        from torch.distributed.elastic.multiprocessing.errors import record

        main = record(main)
    main()
