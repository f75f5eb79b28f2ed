"""Which processes are a job's ranks: by the variables of every launcher."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.capture.processes import (
    HostProcess,
    below,
    host_processes,
    jobs_on_host,
    of_job,
    watched_job,
    with_ranks,
)


def process(pid: int, parent: int, command: str = "python train.py", **environ: str) -> HostProcess:
    """A process whose program is the first word of its command."""
    words = tuple(command.split())
    return HostProcess(pid=pid, parent=parent, arguments=words, program=words[0], environ=environ)


TORCHRUN = [
    process(10, 1, "python -m torch.distributed.run", SLURM_PROCID="0"),
    process(11, 10, RANK="4", LOCAL_RANK="0", SLURM_PROCID="0"),
    process(12, 10, RANK="5", LOCAL_RANK="1", SLURM_PROCID="0"),
    process(13, 11, RANK="4", LOCAL_RANK="0"),  # a worker of a data loader
]
MPIRUN = [
    process(20, 1, "mpirun -np 2 bash run.sh"),
    process(21, 20, "bash run.sh", OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_LOCAL_RANK="0"),
    process(22, 21, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_LOCAL_RANK="0"),
    process(23, 20, OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_LOCAL_RANK="1"),
]
SRUN = [
    process(30, 1, "slurmstepd"),
    process(31, 30, SLURM_PROCID="9", SLURM_LOCALID="1"),
    process(32, 30, SLURM_PROCID="8", SLURM_LOCALID="0"),
]
VLLM = [
    process(40, 1, "python3.11 -m vllm.entrypoints.openai.api_server"),
    process(41, 40, "VLLM::EngineCore"),
    process(42, 41, "VLLM::Worker_TP1"),
    process(43, 41, "VLLM::Worker_TP0"),
]
SPAWN = [
    process(50, 1),
    process(51, 50, "python -c from multiprocessing.resource_tracker import main"),
    process(52, 50, "python -c from multiprocessing.spawn import spawn_main"),
    process(53, 50, "python -c from multiprocessing.spawn import spawn_main"),
]
RAY = [process(60, 1, "raylet"), process(61, 60, "ray::RayTrainWorker.run")]


@pytest.mark.parametrize(
    ("processes", "ranks"),
    [
        pytest.param(TORCHRUN, [(4, 11), (5, 12)], id="torchrun under Slurm, data loaders"),
        pytest.param(MPIRUN, [(0, 22), (1, 23)], id="mpirun with a shell between"),
        pytest.param(SRUN, [(8, 32), (9, 31)], id="srun"),
        pytest.param(VLLM, [(0, 43), (1, 42)], id="vLLM"),
        pytest.param(SPAWN, [(None, 52), (None, 53)], id="multiprocessing without ranks"),
        pytest.param(RAY, [(None, 61)], id="Ray"),
        pytest.param([process(70, 1, "bash")], [], id="no Python"),
    ],
)
def test_ranks_of_a_job(processes: list[HostProcess], ranks: list[tuple[int | None, int]]) -> None:
    """The topmost Python process with the most telling variable is the rank."""
    job = with_ranks(processes)
    assert [(rank.rank, rank.pid) for rank in job.ranks] == ranks
    assert [item.pid for item in job.everyone] == [item.pid for item in processes]


def test_jobs_are_told_apart_and_found_by_name() -> None:
    """By the scheduler's id, else by where their ranks meet."""
    one = process(11, 1, RANK="0", SLURM_JOB_ID="7", MASTER_ADDR="a", MASTER_PORT="1")
    other = process(12, 1, RANK="0", MASTER_ADDR="a", MASTER_PORT="2")
    table = {item.pid: item for item in (one, other, process(13, 1))}
    assert jobs_on_host(table) == {"7": [one], "a:2": [other]}
    assert of_job(table, "7") == [one]
    assert of_job(table, "8") == []


@pytest.mark.parametrize(
    ("pid", "job", "ranks"),
    [
        pytest.param(10, "7", [12], id="its own come first"),
        pytest.param(20, "7", [12, 31], id="started elsewhere"),
        pytest.param(20, "", [], id="without a name nobody else's"),
        pytest.param(20, "8", [], id="of another job"),
    ],
)
def test_a_launcher_whose_ranks_run_elsewhere(pid: int, job: str, ranks: list[int]) -> None:
    """Slurm's srun starts none itself: the ranks are those whose environment names the job."""
    processes = {
        item.pid: item
        for item in (
            process(10, 1, "torchrun"),
            process(12, 10, RANK="0", SLURM_JOB_ID="7"),
            process(20, 1, "srun"),
            process(31, 30, RANK="1", SLURM_JOB_ID="7"),
        )
    }
    assert [item.pid for item in watched_job(processes, pid, job).ranks] == ranks


def test_this_host_is_read() -> None:
    """This process is there with its environment, below its parent."""
    table = host_processes()
    own = table[os.getpid()]
    assert own.parent == os.getppid()
    assert own.runs_python
    assert own in below(table, [os.getppid()])


def test_the_environment_of_a_process_is_read() -> None:
    """The one it was started with."""
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={"RANK": "3", "PATH": "/bin"}
    ) as child:
        try:
            environ = host_processes()[child.pid].environ
        finally:
            child.kill()
    assert (environ["RANK"], environ["PATH"]) == ("3", "/bin")
