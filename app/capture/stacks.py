"""Python stacks of running processes by py-spy, and why there are none."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from app.capture.budget import Budget
from app.capture.processes import PROC, HostProcess
from kb.evidence.capture import CaptureGap
from kb.text.redact import redact

DUMP_S = 6.0  # for one process; py-spy needs a fraction of a second where the process answers
AT_ONCE = 4
MAX_PROCESSES = 64  # of one host
_SYS_PTRACE = 19  # the number of the capability, linux/capability.h
_REFUSALS = ("permission denied", "operation not permitted", "eperm", "os error 1)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenStack:
    """The text of one process's stacks, its head naming the rank; empty with a `failure`."""

    process: HostProcess
    text: str = ""
    failure: str = ""


def pyspy_program() -> str | None:
    """py-spy beside this interpreter, else on the search path."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.is_file() else shutil.which("py-spy")


def take_stacks(
    processes: Sequence[HostProcess], budget: Budget, *, native: bool = False
) -> tuple[list[TakenStack], list[CaptureGap]]:
    """The stacks of `processes`, in their order, and what was missing."""
    program = pyspy_program()
    if program is None:
        return [], [CaptureGap("capture.no_pyspy")] if processes else []
    chosen = processes[:MAX_PROCESSES]
    gaps = []
    if len(chosen) < len(processes):
        values = {"taken": str(len(chosen)), "count": str(len(processes))}
        gaps.append(CaptureGap("capture.stacks_of_some", values))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        taken = list(pool.map(lambda item: _take(program, item, budget, native), chosen))
    failed = [stack for stack in taken if stack.failure]
    if failed:
        gaps.append(_gap(failed))
    return [stack for stack in taken if stack.text], gaps


def _take(program: str, process: HostProcess, budget: Budget, native: bool) -> TakenStack:
    command = [program, "dump", "--pid", str(process.pid), *(["--native"] if native else [])]
    done = budget.run(command, DUMP_S)
    text = done.output.decode("utf-8", "replace")
    _, mark, stacks = text.partition("\nPython v")  # a command line may have several lines
    if done.failure or not mark:
        return TakenStack(process=process, failure=done.failure or "py-spy printed no stack")
    who = "" if process.rank is None else f"rank {process.rank}: "
    head = f"Process {process.pid}: {who}{process.command}"
    return TakenStack(process=process, text=redact(f"{head}\nPython v{stacks}")[0])


def _gap(failed: Sequence[TakenStack]) -> CaptureGap:
    """Why stacks of these are missing, and what to do: the first one's reason stands for all."""
    first = failed[0]
    values = {"count": str(len(failed)), "pid": str(first.process.pid)}
    if not any(word in first.failure.lower() for word in _REFUSALS):
        why = redact(" ".join(first.failure.split())[:200])[0]
        return CaptureGap("capture.no_stack", {**values, "why": why})
    return CaptureGap(refusal_label(first.process.pid), values)


def refusal_label(pid: int, proc: Path = PROC) -> str:
    """Why this user may not look into a process: the label that says it and what to do."""
    scope = _text(proc / "sys/kernel/yama/ptrace_scope").strip()
    if scope in ("2", "3"):
        return "capture.ptrace_admin"
    capable = _capable(_text(proc / "self/status"))
    if scope == "1" and not capable:
        return "capture.ptrace_scope"
    try:
        owner = (proc / str(pid)).stat().st_uid
    except OSError:
        owner = os.geteuid()
    return "capture.ptrace_owner" if owner != os.geteuid() else "capture.ptrace_capability"


def _capable(status: str) -> bool:
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _SYS_PTRACE & 1)
    return False


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
