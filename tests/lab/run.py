"""Run the lab: real multi-process Gloo jobs with a known fault, one folder of evidence each.

``python -m tests.lab.run [NAMES...] --out DIR`` leaves for every scenario

* ``combined.log``: what a person would paste, torchrun's merged output of all ranks,
* ``ranks/``: torchrun's log folder (``attempt_0/<rank>/stderr.log``),
* ``evidence/``: ``dumps/`` of the flight recorder, ``stacks/`` of Python, torchrun's ``errors/``,
* ``truth.json``: cause, other acceptable causes, culprit ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import yaml

HERE = Path(__file__).resolve().parent
WORLD = 4
OWN_STACK_S = 0.8  # seconds a hanging rank has to write its own stacks
RUN_LIMIT_S = 90  # a job that does not end by itself by then is a fault of the lab


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One injected fault and its truth; a row of scenarios.yaml."""

    id: str
    cause: str
    culprits: tuple[int, ...]
    also: tuple[str, ...] = ()
    or_none: bool = False
    job: str = ""
    script: Literal["jobs.py", "framework_jobs.py"] = "jobs.py"
    launch: Literal["torchrun", "processes", "missing_node"] = "torchrun"
    env: dict[str, str] = field(default_factory=dict)
    env_rank: dict[int, dict[str, str]] = field(default_factory=dict)
    kernel_log: bool = False
    timeout_s: float = 4


def load_scenarios() -> dict[str, Scenario]:
    """All scenarios by id, in the order of the file."""
    raw = yaml.safe_load((HERE / "scenarios.yaml").read_text(encoding="utf-8"))
    return {item.id: item for item in msgspec.convert(raw, list[Scenario], strict=False)}


def run_scenario(scenario: Scenario, out: Path) -> Path:
    """Run one scenario; its folder under `out`. An earlier run of it there is replaced."""
    folder = out / scenario.id
    if (folder / "truth.json").is_file():
        shutil.rmtree(folder)
    for name in ("evidence/dumps", "evidence/stacks", "evidence/errors", "pids"):
        (folder / name).mkdir(parents=True)
    env = {
        **os.environ,
        "PYTHONPATH": str(HERE.parents[1]),
        "LAB_OUT": str(folder),
        "LAB_TIMEOUT_S": str(scenario.timeout_s),
        "TORCH_FR_BUFFER_SIZE": "2000",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        **scenario.env,
    }
    with (folder / "combined.log").open("wb") as log:
        if scenario.launch == "torchrun":
            _torchrun(scenario, folder, env, log.fileno())
        elif scenario.launch == "processes":
            _processes(scenario, env, log.fileno())
        else:
            _missing_node(scenario, env, log.fileno())
    if scenario.kernel_log:
        _write_kernel_log(folder)
    (folder / "dump_now").unlink(missing_ok=True)
    shutil.rmtree(folder / "pids")
    truth = asdict(scenario) | {"real": True, "backend": "gloo", "world_size": WORLD}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1), encoding="utf-8")
    return folder


def _script(scenario: Scenario) -> list[str]:
    return [str(HERE / scenario.script), scenario.job or scenario.id]


def _torchrun(scenario: Scenario, folder: Path, env: dict[str, str], log: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={WORLD}"]
    command += [f"--master-port={_free_port()}", "--redirects=3", "--tee=3"]
    command += ["--monitor-interval=5"]  # seconds in which the other ranks leave their dumps
    command += [f"--log-dir={folder / 'ranks'}", *_script(scenario)]
    process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        _spy(folder, process)
        process.wait(timeout=RUN_LIMIT_S)
    finally:
        process.kill()
        process.wait()
    for error in sorted((folder / "ranks").rglob("error.json")):
        kept = folder / "evidence" / "errors" / f"error_rank_{error.parent.name}.json"
        kept.write_bytes(error.read_bytes())


def _spy(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Once the job hangs, take with py-spy the stacks of ranks that could not write their own.

    Nothing without py-spy: only a rank that holds the interpreter's lock needs it.
    """
    tool = shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    while process.poll() is None and not (folder / "dump_now").exists():
        time.sleep(0.2)
    if tool is None or process.poll() is not None:
        return
    time.sleep(OWN_STACK_S)
    for pid in sorted((folder / "pids").iterdir()):
        stack = folder / "evidence" / "stacks" / f"stack_rank_{pid.name}.txt"
        if not stack.exists():
            command = [tool, "dump", "--nonblocking", "--pid", pid.read_text()]
            done = subprocess.run(command, capture_output=True, check=False, timeout=10)
            if done.returncode == 0:
                stack.write_bytes(done.stdout)


def _processes(scenario: Scenario, env: dict[str, str], log: int) -> None:
    port = str(_free_port())
    started = []
    for rank in range(WORLD):
        own = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "WORLD_SIZE": str(WORLD),
            **env,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            **scenario.env_rank.get(rank, {}),
        }
        command = [sys.executable, *_script(scenario)]
        started.append(subprocess.Popen(command, env=own, stdout=log, stderr=log))
    limit = time.monotonic() + RUN_LIMIT_S
    for process in started:
        try:
            process.wait(timeout=max(1, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _missing_node(scenario: Scenario, env: dict[str, str], log: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{_free_port()}"]
    command += ["--rdzv-id=lab", "--rdzv-conf=join_timeout=6,timeout=6", *_script(scenario)]
    subprocess.run(command, env=env, stdout=log, stderr=log, check=False, timeout=RUN_LIMIT_S)


def _write_kernel_log(folder: Path) -> None:
    """What the kernel prints when it kills for memory: replayed, no host is exhausted here."""
    (folder / "evidence" / "dmesg.txt").write_text(
        "[84512.113370] python invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|"
        "__GFP_COMP), order=0, oom_score_adj=0\n"
        "[84512.391845] Out of memory: Killed process 48213 (python) total-vm:118236744kB, "
        "anon-rss:96412308kB, file-rss:8192kB, shmem-rss:4096kB, UID:0 pgtables:190364kB "
        "oom_score_adj:0\n",
        encoding="utf-8",
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def main() -> int:
    """Run the scenarios named on the command line, or all."""
    scenarios = load_scenarios()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; all when left out")
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - scenarios.keys())
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; known: {', '.join(scenarios)}")
    for name in options.names or scenarios:
        begun = time.monotonic()
        folder = run_scenario(scenarios[name], options.out)
        dumps = len(list((folder / "evidence" / "dumps").glob("nccl_trace_rank_*")))
        spent = time.monotonic() - begun
        sys.stdout.write(f"{name}: {spent:.1f} s, {dumps} dumps\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
