"""Is the rank that differs named? ``python -m tests.lab.hanging [--runs N] [--seed S]``.

Every run is a real Gloo job of 2 to 8 ranks, under torchrun or started one by one, that hangs
because one rank does something else. It is captured as `timeout-kb collect --pid` does, and who
stands where is compared with what was injected.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.capture.archive import groups_of
from app.capture.budget import Budget
from app.capture.processes import below, host_processes, with_ranks
from app.capture.stacks import pyspy_program
from app.capture.take import CaptureRequest, HostCapture, take_capture
from kb.evidence.stacks import StackGroup

JOB = Path(__file__).with_name("hanging_job.py")
# Functions of hanging_job.py: what the odd rank does instead.
KINDS = (
    "compute_alone",
    "load_batch",
    "other_collective",
    "same_call_elsewhere",
    "wait_for_lock",
    "write_checkpoint",
)
START_S = 120.0  # importing torch in eight processes on two cores
SETTLE_S = 0.7  # from the mark before the last call into it
FLOOR = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """One job: how many ranks, which one differs and how, and what starts them."""

    world: int
    odd: int
    kind: str
    torchrun: bool

    @property
    def waits(self) -> bool:
        """Whether the odd rank waits in a collective as well: of two such nobody is the odd one."""
        return self.kind in ("other_collective", "same_call_elsewhere")


@contextlib.contextmanager
def hanging(hang: Hang) -> Iterator[list[int]]:
    """The job once all its ranks hang: ids of the processes that were started.

    Raises:
        RuntimeError: it ended, or did not come so far.
    """
    with tempfile.TemporaryDirectory(prefix="hang-") as folder, contextlib.ExitStack() as stack:
        ready = Path(folder)
        processes = [_started(command, env) for command, env in _commands(hang, ready)]
        stack.callback(_end, processes)
        deadline = time.monotonic() + START_S
        while len(list(ready.iterdir())) < hang.world:
            if time.monotonic() > deadline or any(p.poll() is not None for p in processes):
                raise RuntimeError(f"{hang} did not come to its hang")
            time.sleep(0.1)
        time.sleep(SETTLE_S)
        yield [process.pid for process in processes]


def _commands(hang: Hang, ready: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    words = [str(JOB), hang.kind, str(hang.odd), str(ready)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        env.pop(name, None)
    if hang.torchrun:
        options = [f"--nproc-per-node={hang.world}", f"--master-port={port}"]
        yield [sys.executable, "-m", "torch.distributed.run", *options, *words], env
        return
    for rank in range(hang.world):
        own = {"RANK": str(rank), "WORLD_SIZE": str(hang.world)}
        yield [sys.executable, *words], env | own


def _started(command: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    running = host_processes()
    for process in below(running, [process.pid for process in processes]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    for process in processes:
        process.wait()


def captured(pids: list[int]) -> HostCapture:
    """What `timeout-kb collect` takes of these processes."""
    processes = with_ranks(below(host_processes(), pids))
    return take_capture(CaptureRequest(processes=processes), Budget())


def names_the_odd_rank(groups: tuple[StackGroup, ...], hang: Hang) -> bool:
    """Whether the odd rank stands apart, alone, and is marked; of two that wait, only apart."""
    odd = [group for group in groups if hang.odd in group.ranks]
    others = sorted(rank for group in groups if hang.odd not in group.ranks for rank in group.ranks)
    apart = len(odd) == 1 and odd[0].ranks == (hang.odd,)
    all_there = others == [rank for rank in range(hang.world) if rank != hang.odd]
    if hang.world == 2 and hang.waits:
        return apart and all_there
    marked = [group.ranks for group in groups if group.odd]
    return apart and all_there and marked == [(hang.odd,)]


def random_hang(chance: random.Random, number: int) -> Hang:
    """The hang of a run: kinds and launchers take turns, the rest is drawn."""
    world = chance.randint(2, 8)
    return Hang(
        world=world,
        odd=chance.randrange(world),
        kind=KINDS[number % len(KINDS)],
        torchrun=number // len(KINDS) % 2 == 0,
    )


def main() -> int:
    """Run the jobs and print how often the rank was named; 0 where that is often enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if pyspy_program() is None:
        parser.error("py-spy is missing: pip install 'timeout-kb[capture]'")
    chance = random.Random(options.seed)
    named = 0
    for number in range(options.runs):
        hang = random_hang(chance, number)
        with hanging(hang) as pids:
            capture = captured(pids)
        right = names_the_odd_rank(groups_of([capture]), hang)
        named += right
        places = [(g.ranks, g.call, g.spot, g.odd) for g in groups_of([capture])]
        launcher = "torchrun" if hang.torchrun else "processes"
        line = f"{hang.kind} {launcher} odd {hang.odd} of {hang.world} {capture.host.took_s} s"
        sys.stdout.write(f"{'ok  ' if right else 'MISS'} {line} {'' if right else places}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{named} of {options.runs} named\n")
    return 0 if named >= FLOOR * options.runs else 1


if __name__ == "__main__":
    raise SystemExit(main())
