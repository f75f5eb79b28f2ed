"""The processes of a job on this host, and which of them is which rank: read from /proc alone."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kb.incidents.attempts import JOB_VARIABLES, job_of

PROC = Path("/proc")
MAX_COMMAND = 400  # characters of a command line that are shown
# Launchers set them, the most telling first; the first one that any process of a job has decides.
RANK_VARIABLES = (
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
)
_MEETING_POINT = ("MASTER_ADDR", "MASTER_PORT")  # where the ranks of one job meet
# Servers rename their workers: VLLM::Worker_TP1, sglang::scheduler_TP1, ray::RayTrainWorker
_TITLE = re.compile(r"^(?:VLLM|sglang|ray)::", re.IGNORECASE)
_TITLE_RANK = re.compile(r"^(?:VLLM|sglang)::[A-Za-z]{1,40}_TP([0-9]{1,5})$", re.IGNORECASE)
_INTERPRETER = re.compile(r"^(?:python|pypy)[0-9.]*t?$")
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "compile_worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProcess:
    """One process as /proc shows it; `started_s` is seconds since the epoch."""

    pid: int
    parent: int
    arguments: tuple[str, ...]
    program: str = ""  # the last name of its executable
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    started_s: float = 0.0
    rank: int | None = None

    @property
    def command(self) -> str:
        """Its command line on one line."""
        return " ".join(" ".join(self.arguments).split())[:MAX_COMMAND]

    @property
    def runs_python(self) -> bool:
        """Whether its main thread has a Python stack to take."""
        title = self.arguments[0] if self.arguments else ""
        if any(name in self.command for name in _HELPERS):
            return False
        return bool(_INTERPRETER.match(self.program) or _TITLE.match(title))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProcesses:
    """The processes of one job: those whose stacks tell something, and all of them."""

    ranks: tuple[HostProcess, ...]
    everyone: tuple[HostProcess, ...] = ()


def host_processes(proc: Path = PROC) -> dict[int, HostProcess]:
    """All processes of this host that this user may look at, by id."""
    booted_s = _boot_time_s(proc)
    found: dict[int, HostProcess] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            process = _read_process(entry, booted_s)
            if process is not None:
                found[process.pid] = process
    return dict(sorted(found.items()))


def _boot_time_s(proc: Path) -> float:
    for line in (proc / "stat").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


def _read_process(folder: Path, booted_s: float) -> HostProcess | None:
    """One process; None where it is gone, a kernel thread, or a zombie."""
    try:
        # The name in brackets may hold spaces and brackets of its own.
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        arguments = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    if not arguments or fields[0] in "ZX":
        return None
    try:
        program = (folder / "exe").readlink().name.removesuffix(" (deleted)")
        pairs = (folder / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:  # another user's
        program, pairs = Path(arguments.split("\0")[0]).name, []
    ticks = os.sysconf("SC_CLK_TCK")
    return HostProcess(
        pid=int(folder.name),
        parent=int(fields[1]),
        arguments=tuple(arguments.rstrip("\0 ").split("\0")),
        program=program,
        environ=dict(pair.split("=", 1) for pair in pairs if "=" in pair),
        started_s=booted_s + int(fields[19]) / ticks,
    )


def below(processes: Mapping[int, HostProcess], roots: Iterable[int]) -> list[HostProcess]:
    """The processes `roots` and all they started, by id."""
    children: dict[int, list[int]] = defaultdict(list)
    for process in processes.values():
        children[process.parent].append(process.pid)
    chosen: set[int] = set()
    waiting = [pid for pid in roots if pid in processes]
    while waiting:
        pid = waiting.pop()
        if pid not in chosen:
            chosen.add(pid)
            waiting += children[pid]
    return [processes[pid] for pid in sorted(chosen)]


def of_job(processes: Mapping[int, HostProcess], name: str) -> list[HostProcess]:
    """The processes whose environment names the job, this one and those it runs in left out."""
    own = set(_ancestors(processes, os.getpid()))
    return [
        process
        for process in processes.values()
        if process.pid not in own
        and any(process.environ.get(variable) == name for variable in JOB_VARIABLES)
    ]


def jobs_on_host(processes: Mapping[int, HostProcess]) -> dict[str, list[HostProcess]]:
    """All processes that have a rank or a worker's title, by the job they belong to."""
    own = set(_ancestors(processes, os.getpid()))
    jobs: dict[str, list[HostProcess]] = defaultdict(list)
    for process in processes.values():
        if process.pid not in own and _may_be_rank(process):
            jobs[job_name(process.environ)].append(process)
    return dict(sorted(jobs.items()))


def _may_be_rank(process: HostProcess) -> bool:
    named = any(variable in process.environ for variable in RANK_VARIABLES)
    return process.runs_python and (named or bool(_TITLE.match(process.arguments[0])))


def job_name(environ: Mapping[str, str]) -> str:
    """What tells a job from others on this host; empty where its processes do not say."""
    point = ":".join(filter(None, (environ.get(name, "") for name in _MEETING_POINT)))
    return job_of(environ) or point


def _ancestors(processes: Mapping[int, HostProcess], pid: int) -> Iterator[int]:
    seen: set[int] = set()
    while pid in processes and pid not in seen:
        seen.add(pid)
        yield pid
        pid = processes[pid].parent


def watched_job(processes: Mapping[int, HostProcess], pid: int, job: str) -> JobProcesses:
    """The ranks below a launcher or, where it started none itself, those of the job `job`.

    `srun` and a log that is followed have their ranks elsewhere in the tree of processes.
    """
    started = with_ranks(below(processes, [pid]))
    if started.ranks or not job:
        return started
    return with_ranks(of_job(processes, job))


def with_ranks(processes: Sequence[HostProcess]) -> JobProcesses:
    """Which of a job's processes are its ranks, by rank.

    Of all that inherited a rank the topmost Python process is it: below are the workers of its data
    loaders. Where no process has a rank, as under `torch.multiprocessing.spawn`, all Python
    processes without Python children count.
    """
    python = [process for process in processes if process.runs_python]
    ranked = _ranked(python)
    by_pid = {process.pid: process for process in ranked}
    ranks = [
        process
        for process in ranked
        if not any(by_pid[pid].rank == process.rank for pid in _above(process, by_pid))
    ]
    if not ranks:
        parents = {process.parent for process in python}
        ranks = [process for process in python if process.pid not in parents] or python
    ordered = sorted(ranks, key=lambda process: (_rank_order(process.rank), process.pid))
    named = {process.pid: process for process in ordered}
    everyone = tuple(named.get(process.pid, process) for process in processes)
    return JobProcesses(ranks=tuple(ordered), everyone=everyone)


def _ranked(processes: Sequence[HostProcess]) -> list[HostProcess]:
    titled = [
        replace(process, rank=int(match[1]))
        for process in processes
        if (match := _TITLE_RANK.match(process.arguments[0]))
    ]
    if titled:
        return titled
    variable = _rank_variable(processes)
    return [
        replace(process, rank=int(process.environ[variable]))
        for process in processes
        if process.environ.get(variable, "").isdigit()
    ]


def _rank_variable(processes: Sequence[HostProcess]) -> str:
    for variable in RANK_VARIABLES:
        if any(process.environ.get(variable, "").isdigit() for process in processes):
            return variable
    return ""


def _above(process: HostProcess, by_pid: Mapping[int, HostProcess]) -> Iterator[int]:
    return (pid for pid in _ancestors(by_pid, process.parent) if pid != process.pid)


def _rank_order(rank: int | None) -> int:
    return -1 if rank is None else rank
