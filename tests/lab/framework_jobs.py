"""Jobs that print as training frameworks do, each with one fault: ``run.py`` starts them.

The faults are those of ``jobs.py``; the lines around them are other ones, so that the lab does not
judge by its own wording. Names are those of the frameworks: a traceback must not name the fault.
What is printed follows the logs of HF Trainer, Lightning, DeepSpeed,
Megatron-LM, MMEngine, fairseq, timm and Detectron2.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from tests.lab.jobs import LONG_S, run_job, start

HIDDEN = 512  # elements of a gradient
PAUSE_S = 0.06  # of computation in a step


def say(line: str) -> None:
    """Print a line as a launcher's child does."""
    sys.stderr.write(line + "\n")


def clock() -> str:
    """The local time, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S")


def average(size: int = HIDDEN) -> None:
    """Average gradients over all ranks."""
    dist.all_reduce(torch.ones(size))


def pause() -> None:
    """What outlasts the timeout: a read, a write, a computation."""
    time.sleep(LONG_S)


def trainer() -> None:
    """HF Trainer; the input of rank 1 hangs at its sixth step."""
    rank, _ = start()
    for step in range(1, 12):
        if rank == 1 and step == 6:
            pause()
        time.sleep(PAUSE_S)
        average()
        if rank == 0:
            say(
                f"{{'loss': {3 / step:.4f}, 'grad_norm': {1.5 / step:.3f}, "
                f"'learning_rate': {2e-5 * step:.2e}, 'epoch': {step / 50:.2f}}}"
            )


def lightning() -> None:
    """Lightning; rank 2 has nine batches, the others fifteen."""
    rank, _ = start()
    for step in range(9 if rank == 2 else 15):
        time.sleep(PAUSE_S)
        average()
        if rank == 0:
            say(
                f"Epoch 0:  {100 * step // 15}%|###   | {step}/15 "
                f"[00:0{step // 5}<00:01, 9.87it/s, v_num=3]"
            )
    say(f"[rank: {rank}] Epoch 0 finished after {9 if rank == 2 else 15} steps")
    time.sleep(LONG_S)


def deepspeed() -> None:
    """DeepSpeed; rank 0 writes for longer than the timeout while the others stand in a barrier."""
    rank, _ = start()
    for step in range(1, 6):
        time.sleep(PAUSE_S)
        average()
        if rank == 0:
            say(
                f"[{clock()},101] [INFO] [logging.py:128:log_dist] [Rank 0] step={step}, "
                "skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]"
            )
    if rank == 0:
        say(
            f"[{clock()},404] [INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving "
            "ckpt/global_step5/mp_rank_00_model_states.pt..."
        )
        pause()
    dist.barrier()


def megatron() -> None:
    """Megatron-LM; rank 3 takes longer at each iteration."""
    rank, _ = start()
    for step in range(1, 12):
        begun = time.monotonic()
        time.sleep(0.2 * 1.8**step if rank == 3 else PAUSE_S)
        average()
        if rank == 0:
            spent = 1000 * (time.monotonic() - begun)
            say(
                f" [{clock()}] iteration {step:8d}/     500 | consumed samples: {64 * step:12d} | "
                f"elapsed time per iteration (ms): {spent:.1f} | learning rate: 1.500E-04 | "
                "global batch size:    64 | lm loss: 1.081E+01 | loss scale: 1.0 |"
            )


def mmengine() -> None:
    """MMEngine; rank 0 alone tests, the others go on to the next epoch."""
    rank, _ = start()
    for step in range(10, 60, 10):
        time.sleep(PAUSE_S)
        average()
        if rank == 0:
            say(
                f"{clock()} - mmengine - INFO - Epoch(train) [1][{step}/50]  lr: 1.0000e-03  "
                f"eta: 0:01:00  time: 0.0650  data_time: 0.0021  memory: 812  loss: {9 / step:.4f}"
            )
    if rank == 0:
        say(f"{clock()} - mmengine - INFO - Epoch(test) [1/400]    eta: 0:03:20  time: 0.5003")
        pause()
    average()


def datasets_map() -> None:
    """Datasets are mapped by rank 0 behind a barrier."""
    rank, _ = start()
    if rank == 0:
        for done in range(0, 4000, 100):
            say(
                f"Map (num_proc=1):  {done // 40}%|##    | {done}/4000 "
                "[00:00<00:10, 380.21 examples/s]"
            )
            time.sleep(LONG_S / 30)
    dist.barrier()


def fairseq() -> None:
    """Fairseq; a sample of rank 3 has a length that its model refuses."""
    rank, _ = start()
    for step in range(1, 9):
        if rank == 3 and step == 5:
            torch.ones(7).view(2, 4)
        time.sleep(PAUSE_S)
        average()
        if rank == 0:
            say(
                f"{clock()} | INFO | train_inner | epoch 001:     {step} / 120 "
                f"loss={14 / step:.3f}, ppl=9412.1, wps=20113.4, ups=2.31, "
                "wpb=8706.9, bsz=312, num_updates=8"
            )


def detectron() -> None:
    """Detectron2; rank 1 leaves out the average of an image without boxes."""
    rank, _ = start()
    for step in range(0, 120, 20):
        time.sleep(PAUSE_S)
        if rank == 1 and step == 60:
            say(f"[{time.strftime('%m/%d %H:%M:%S')} d2.data.common]: no valid boxes in 000123.jpg")
        else:
            average(64)
        average()
        if rank == 0:
            say(
                f"[{time.strftime('%m/%d %H:%M:%S')} d2.utils.events]:  eta: 0:12:01  "
                f"iter: {step}  total_loss: 2.31  time: 0.0634  "
                "data_time: 0.0102  lr: 1.9981e-05  max_mem: 911M"
            )


def timm() -> None:
    """Timm; rank 2 is killed."""
    rank, _ = start()
    for step in range(0, 500, 50):
        if rank == 2 and step == 250:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(PAUSE_S)
        average()
        if rank == 0:
            say(
                f"Train: 0 [{step:>4d}/500 ({step / 5:>3.0f}%)]  Loss: 6.93 (6.95)  "
                "Time: 0.064s, 4001.25/s  LR: 1.000e-06  Data: 0.002 (0.003)"
            )


def bare_loop() -> None:
    """A hand-written loop; rank 0 alone sums its metric over the group."""
    rank, _ = start()
    for step in range(12):
        time.sleep(PAUSE_S)
        average()
        if rank == 0:
            say(f"it {step:03d} | train loss {4 / (step + 1):.3f} | {81 - step} ms | rank 0 of 4")
            if step == 7:
                dist.all_reduce(torch.ones(3))


JOBS: dict[str, Callable[[], None]] = {
    job.__name__: job
    for job in (
        *(trainer, lightning, deepspeed, megatron),
        *(mmengine, datasets_map, fairseq, detectron),
        *(timm, bare_loop),
    )
}


if __name__ == "__main__":
    run_job(JOBS[sys.argv[1]])
