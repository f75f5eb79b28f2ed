"""Take what one host tells of a hanging job: stacks first, then all that stands beside them."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from app.capture import state
from app.capture.budget import Budget
from app.capture.dumps import new_dumps
from app.capture.processes import PROC, HostProcess, JobProcesses
from app.capture.ras import ras_report
from app.capture.stacks import TakenStack, take_stacks
from kb.errors import InputError
from kb.evidence.capture import CapturedHost, CaptureFile, CaptureFileKind, CaptureGap
from kb.evidence.detect import evidence_kind
from kb.text.redact import redact

MAX_TEXT = 2 * 1024 * 1024  # bytes of a text; of a longer one the end
MAX_LOG = 20 * 1024 * 1024  # bytes of the job's output: a fifth of its beginning, else its end
MAX_DUMPS = 24 * 1024 * 1024  # bytes of all dumps; all of it stays below the server's 64 MiB
KERNEL_S = 3600.0  # how far back kernel lines reach
BUSY_S = 1.0  # over which the share of a core is measured
DUMP_WAIT_S = 4.0  # for dumps that were asked for
PROGRAM_S = 5.0  # for one query
_PIPES = ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_HCCL_DEBUG_INFO_PIPE_FILE")
_TEMP_FILES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_QUERIES = {
    "nvidia-smi": (("nvidia-smi",), ("nvidia-smi", "-q")),
    "npu-smi": (("npu-smi", "info"),),
    "rocm-smi": (("rocm-smi", "--showall"),),
}
_KERNEL_TIME = re.compile(r"^(?:<[0-9]+>)?\[ *([0-9]+)\.[0-9]+\]")
_HOST = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """What to take: a job's processes, its output so far, and where its dumps lie.

    `since_s` is when it began (epoch), by default when its first rank did.
    """

    processes: JobProcesses
    log: Path | None = None
    dumps: tuple[Path, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    since_s: float = 0.0
    native: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCapture:
    """What one host gave: files, each with what it is."""

    host: CapturedHost
    files: tuple[tuple[CaptureFile, bytes], ...]


class _Taking:
    """The files and the gaps of one host so far."""

    def __init__(self, request: CaptureRequest, budget: Budget) -> None:
        self.request, self.budget = request, budget
        self.ranks = request.processes.ranks
        self.everyone = request.processes.everyone
        self.name = host_name()
        self.files: list[tuple[CaptureFile, bytes]] = []
        self.gaps: list[CaptureGap] = []

    def add(self, name: str, content: bytes | str, kind: CaptureFileKind = "context") -> None:
        """Take a file; what is empty is none, of what is too long the end stays."""
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        if data.strip():
            file = CaptureFile(name=f"{self.name}/{name}", kind=kind)
            self.files.append((file, data if kind == "log" else data[-MAX_TEXT:]))

    def add_text(self, name: str, content: bytes | str) -> None:
        """Take a text without its secrets: as evidence where it is of a kind that is read."""
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        if text.strip():
            clean = redact(text)[0].encode("utf-8", "replace")[-MAX_TEXT:]
            self.add(name, clean, "evidence" if _is_evidence(clean) else "context")

    # --- what is taken ---------------------------------------------------------------------

    def stacks(self) -> None:
        """Python stacks of the ranks, and frames of C where that was asked for."""
        taken, gaps = take_stacks(self.ranks, self.budget)
        self.gaps += gaps
        for stack in taken:
            self.add(f"stacks/{_of_rank(stack)}.txt", stack.text, "evidence")
        if self.request.native and taken:
            for stack in take_stacks(self.ranks, self.budget, native=True)[0]:
                self.add(f"native/{_of_rank(stack)}.txt", stack.text)

    def states(self) -> None:
        """Processes, sockets, settings and memory, by /proc."""
        before = state.cpu_seconds(self.everyone)
        began = time.monotonic()
        self.budget.pause(BUSY_S)
        passed = max(time.monotonic() - began, 0.01)
        after = state.cpu_seconds(self.everyone)
        busy = {pid: (after[pid] - before[pid]) / passed for pid in after if pid in before}
        self.add_text("processes.txt", state.process_states(self.everyone, busy))
        self.add_text("sockets.txt", state.open_sockets(self.everyone))
        self.add_text("settings.txt", state.settings_of(self.ranks))
        self.add_text("memory.txt", state.memory_of_host())

    def dumps(self) -> None:
        """Flight-recorder dumps: those there are, after asking for new ones where that is set."""
        asked_s = time.time()
        pipes = [pipe for rank in self.ranks for pipe in _dump_pipes(rank)]
        asked = sum(_ask(pipe) for pipe in pipes)
        wait = Budget(DUMP_WAIT_S)
        while asked and wait.left_s and self.budget.left_s:
            if len([path for path in self._dump_files() if _newer(path, asked_s)]) >= asked:
                break
            self.budget.pause(0.1)
        room, left_out = MAX_DUMPS, 0
        dumps = self._dump_files()
        for path in dumps:
            try:
                data = path.read_bytes() if path.stat().st_size <= room else b""
            except OSError:
                continue
            left_out += not data
            room -= len(data)
            if data:
                name = f"{self.name}/dumps/{path.name}"
                self.files.append((CaptureFile(name=name, kind="evidence"), data))
        if left_out:
            self.gaps.append(CaptureGap("capture.dumps_too_large", {"count": str(left_out)}))
        if not dumps and self.ranks:
            self.gaps.append(CaptureGap("capture.no_dumps"))

    def _dump_files(self) -> tuple[Path, ...]:
        started = [rank.started_s for rank in self.ranks]
        since_s = self.request.since_s or min(started, default=0.0)
        environs = [rank.environ for rank in self.ranks] or [self.request.environ]
        paths = {
            path
            for environ in environs
            for prefix in _dump_prefixes({**self.request.environ, **environ})
            for path in new_dumps((), {_TEMP_FILES[0]: prefix}, since_s=since_s)
        }
        return tuple(sorted({*paths, *new_dumps(self.request.dumps, {}, since_s=since_s)}))

    def ras(self) -> None:
        """The report of NCCL's RAS service."""
        self.add_text("ras.txt", ras_report(self.ranks, self.budget)[0])

    def programs(self) -> None:
        """What the GPU tools of this host say."""
        for program, commands in _QUERIES.items():
            if shutil.which(program) is None:
                continue
            for command in commands:
                done = self.budget.run(command, PROGRAM_S)
                if done.failure:
                    values = {"program": " ".join(command), "why": redact(done.failure)[0][:200]}
                    self.gaps.append(CaptureGap("capture.program_failed", values))
                self.add_text(f"{'-'.join(command).replace('--', '-')}.txt", done.output)

    def kernel(self) -> None:
        """Kernel lines of the last hour."""
        done = self.budget.run(("dmesg",), PROGRAM_S)
        lines = done.output.decode("utf-8", "replace")
        if done.failure:
            since = f"--since=-{KERNEL_S:.0f}s"
            command = ("journalctl", "-k", since, "--no-pager", "-q")
            other = self.budget.run(command, PROGRAM_S)
            if other.failure or not other.output:
                why = redact(done.failure)[0][:200]
                self.gaps.append(CaptureGap("capture.no_kernel", {"why": why}))
            self.add_text("kernel.log", other.output)
            return
        self.add_text("kernel.log", _recent(lines, _uptime_s()))

    def disks(self) -> None:
        """Room on the disks a job writes to."""
        places = {"/tmp", "/dev/shm", str(Path.cwd())}  # noqa: S108 - where programs write
        for process in self.ranks:
            with contextlib.suppress(OSError):
                places.add(str((PROC / str(process.pid) / "cwd").readlink()))
        for option in ("-h", "-i"):
            done = self.budget.run(("df", "-P", option, *sorted(places)), PROGRAM_S)
            self.add_text(f"df{option}.txt", done.output)

    def log(self) -> None:
        """The job's output, of more than `MAX_LOG` its beginning and its end."""
        data = _ends_of(self.request.log) if self.request.log else b""
        text = data.decode("utf-8", "replace")
        lines = text.splitlines(keepends=True)
        self.add("job.log", "".join(redact(line)[0] for line in lines), "log")


def take_capture(request: CaptureRequest, budget: Budget) -> HostCapture:
    """All that this host tells of the job, within the budget."""
    taking = _Taking(request, budget)
    steps: list[tuple[str, Callable[[], None]]] = [
        ("stacks", taking.stacks),
        ("states", taking.states),
        ("dumps", taking.dumps),
        ("ras", taking.ras),
        ("programs", taking.programs),
        ("kernel", taking.kernel),
        ("disks", taking.disks),
        ("log", taking.log),
    ]
    with ThreadPoolExecutor(len(steps)) as pool:
        running: list[tuple[str, Future[None]]] = [(n, pool.submit(step)) for n, step in steps]
        for name, step in running:
            try:
                step.result()
            except KeyboardInterrupt:
                budget.end()
                raise
            except (OSError, ValueError, InputError) as error:  # one source less, the rest stays
                values = {"what": name, "why": redact(str(error))[0][:200]}
                taking.gaps.append(CaptureGap("capture.step_failed", values))
    if not budget.left_s:
        taking.gaps.append(CaptureGap("capture.out_of_time"))
    host = CapturedHost(
        name=taking.name,
        ranks=tuple(rank.rank for rank in taking.ranks if rank.rank is not None),
        processes=len(taking.everyone),
        took_s=round(budget.spent_s, 1),
        gaps=tuple(sorted(taking.gaps, key=_gap_order)),
    )
    return HostCapture(host=host, files=tuple(sorted(taking.files, key=lambda item: item[0].name)))


def _ends_of(path: Path) -> bytes:
    """A file, of a longer one than `MAX_LOG` its beginning and its end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= MAX_LOG:
            return file.read(MAX_LOG)
        first = file.read(MAX_LOG // 5)
        file.seek(size - (MAX_LOG - MAX_LOG // 5))
        cut = b"\n(%d bytes of output left out here)\n" % (size - MAX_LOG)
        return first + cut + file.read(MAX_LOG)


def host_name() -> str:
    """This host's name as a folder of an archive."""
    return _HOST.sub("_", platform.node()) or "host"


def _gap_order(gap: CaptureGap) -> tuple[bool, str, str]:
    """Missing stacks first, missing dumps last: these only a new start can bring."""
    return (gap.label == "capture.no_dumps", gap.label, str(gap.values))


def _of_rank(stack: TakenStack) -> str:
    process = stack.process
    # A number at the end of a name would be read as a rank.
    return f"{process.pid}-process" if process.rank is None else f"rank_{process.rank}"


def _is_evidence(text: bytes) -> bool:
    try:
        return evidence_kind([text]) is not None
    except InputError:
        return False


# --- flight recorder ---------------------------------------------------------------------------


def _dump_prefixes(environ: Mapping[str, str]) -> Iterator[str]:
    """Where torch writes dumps: as a variable says, else at the defaults of its releases.

    These are ``/tmp`` up to 2.6, the cache folder since 2.7, there under a new name since 2.9.
    """
    named = [environ[name] for name in _TEMP_FILES if environ.get(name)]
    home = f"{environ.get('HOME', '/root')}/.cache/torch"
    cache = f"{environ['XDG_CACHE_HOME']}/torch" if environ.get("XDG_CACHE_HOME") else home
    defaults = (
        "/tmp/nccl_trace_rank_",  # noqa: S108
        f"{home}/nccl_trace_rank_",
        f"{home}/comm_lib_trace_rank_",
        f"{cache}/comm_lib_trace_rank_",
    )
    yield from named or defaults


def _dump_pipes(rank: HostProcess) -> Iterator[Path]:
    """Pipes at which a rank listens for the wish for a dump: ``<prefix><rank>.pipe``."""
    for name in _PIPES:
        stem = rank.environ.get(name, "")
        if stem and rank.rank is not None:
            yield Path(f"{stem}{rank.rank}.pipe")


def _ask(pipe: Path) -> bool:
    """Ask for a dump; False where nobody reads the pipe, or it is none."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return False
        os.write(descriptor, b"1\n")
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _newer(path: Path, since_s: float) -> bool:
    try:
        return path.stat().st_mtime >= since_s
    except OSError:
        return False


# --- the host ----------------------------------------------------------------------------------


def _uptime_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _recent(lines: str, uptime_s: float) -> str:
    """Lines with a time of the last hour, and those that go on from one."""
    kept: list[str] = []
    recent = False
    for line in lines.splitlines(keepends=True):
        match = _KERNEL_TIME.match(line)
        if match:
            recent = float(match[1]) >= uptime_s - KERNEL_S
        if recent:
            kept.append(line)
    return "".join(kept)
