"""`timeout-kb serve --workers`: one port, several processes, none of which may stay dead."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

COMMAND = [sys.executable, "-c", "from app.cli.main import main; main()", "serve", "--port", "0"]
DEADLINE_S = 90.0
POLL_S = 0.05
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def until(condition: Callable[[], bool]) -> bool:
    """Whether it came true before the deadline."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if condition():
            return True
        threading.Event().wait(POLL_S)
    return False


def children(pid: int) -> list[int]:
    """The processes a process started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def workers(pid: int) -> list[int]:
    """Those of them that serve; another one keeps account of shared resources."""
    return [child for child in children(pid) if listening(child)]


def open_files(pid: int) -> Iterator[str]:
    """What a process has open now; a file it closes meanwhile, or its own end, is no error."""
    with contextlib.suppress(FileNotFoundError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                yield str(link.readlink())


def listening(pid: int) -> bool:
    """Whether a process accepts connections: then it runs its event loop."""
    return any("eventpoll" in target for target in open_files(pid))


@pytest.fixture
def running(
    built_home: Callable[[], Path], root: Path
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of two processes, and its address."""
    environment = {"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(built_home())}
    server = subprocess.Popen(
        [*COMMAND, "--workers", "2"], cwd=root, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    said = ""
    for line in server.stderr:
        said += line
        if "Try:" in line:
            break
    found = re.search(r"answers on (http://\S+) ", said)
    assert found, said
    assert until(lambda: len(workers(server.pid)) == 2)
    yield server, found[1]
    if server.poll() is None:
        for pid in children(server.pid):
            os.kill(pid, signal.SIGKILL)
    server.kill()
    server.wait()
    server.stderr.close()


def ask(address: str) -> int:
    """The status of one request on a connection of its own."""
    return httpx.get(f"{address}/healthz", timeout=DEADLINE_S).status_code


def test_a_killed_process_is_started_again_and_no_request_is_refused(
    running: tuple[subprocess.Popen[str], str],
) -> None:
    """After kill -9 of one of two, every connection is answered, by two processes again."""
    server, address = running
    before = set(workers(server.pid))
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    assert until(lambda: victim not in children(server.pid) and len(workers(server.pid)) == 2)
    assert {ask(address) for _ in range(20)} == {200}
    assert len(set(workers(server.pid)) - before) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_all_of_them(
    running: tuple[subprocess.Popen[str], str], number: signal.Signals
) -> None:
    """Either signal to the first process ends every one, quietly and with exit code 0."""
    server, address = running
    assert ask(address) == 200
    pids = children(server.pid)
    server.send_signal(number)
    _, said = server.communicate(timeout=DEADLINE_S)
    assert server.returncode == 0
    assert "Traceback" not in said
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_workers_that_cannot_start_end_the_command(tmp_path: Path, root: Path) -> None:
    """What is wrong is told, and nobody tries again for ever."""
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*COMMAND, "--workers", "2"],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(tmp_path / "file" / "home")},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 1
    assert "set TIMEOUT_KB_HOME to a folder you may write to" in done.stderr
