"""A server process under measurement, and what the system says about it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")
_SERVE = [sys.executable, "-c", "from app.cli.main import main; main()", "serve", "--port", "0"]
_EMPTY = [sys.executable, "-m", "tests.bench.empty_api"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server; `pid` is that of the process started, which may have children."""

    address: str
    pid: int

    def processes(self) -> list[int]:
        """The process and its children."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [self.pid, *map(int, path.read_text().split())]

    def cpu_s(self) -> float:
        """Processor seconds used so far, in user and system mode."""
        total = 0
        for pid in self.processes():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / _TICKS

    def rss_mb(self, name: str = "VmRSS") -> float:
        """Resident memory of the largest process; ``VmHWM`` gives its highest so far."""
        found = []
        for pid in self.processes():
            status = Path(f"/proc/{pid}/status").read_text()
            if match := re.search(rf"{name}:\s+(\d+) kB", status):
                found.append(int(match[1]) / 1024)
        return max(found)


@contextlib.contextmanager
def started(command: Sequence[str], home: Path) -> Iterator[Served]:
    """Run a server until the block ends; it must print where it answers."""
    running = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"TIMEOUT_KB_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = ""
        for line in running.stdout or ():
            said += line
            found = re.search(r"answers on (http://\S+) ", said)
            if found:
                yield Served(address=found[1], pid=running.pid)
                break
        else:
            raise RuntimeError(f"the server did not start: {said}")
    finally:
        running.terminate()
        running.communicate()


@contextlib.contextmanager
def served(*options: str, home: Path | None = None) -> Iterator[Served]:
    """`timeout-kb serve` with a state folder of its own."""
    with contextlib.ExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()), "home")
        yield stack.enter_context(started([*_SERVE, *options], home))


@contextlib.contextmanager
def empty() -> Iterator[Served]:
    """The empty endpoint."""
    with started(_EMPTY, Path("unused")) as server:
        yield server
