"""`timeout-kb up`: both faces start, answer, and end together."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from app.cli import serve, up
from kb.types.vocabulary import DIAGNOSIS_SCHEMA

RUN = "from app.cli.main import main; main()"
NO_STREAMLIT = f"import sys; sys.modules['streamlit'] = None; {RUN}"
DEADLINE_S = 60
LOG = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
)


@pytest.fixture(scope="module")
def home(built_home: Callable[[], Path]) -> Path:
    """The state folder of this module."""
    return built_home()


class Running:
    """A running `up` and what it said until it was ready."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        self.said = ""
        for line in process.stderr:
            self.said += line
            if "| curl " in line:
                break

    def address(self, label: str) -> str:
        """The address after ``label:``."""
        found = re.search(rf"^{label}:\s+(http://\S+)", self.said, re.MULTILINE)
        assert found, self.said
        return found[1]

    def children(self) -> list[int]:
        """Ids of its child processes, in the order they were started."""
        pid = self.process.pid
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


Start = Callable[..., Running]


@pytest.fixture
def start(home: Path, root: Path) -> Iterator[Start]:
    """Starts `up` on free ports; what is left at the end of the test is ended."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str = RUN) -> Running:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "up", "--port", "0", "--web-port", "0"],
            cwd=root,
            env={"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(home)},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return Running(process)

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait(DEADLINE_S)
        assert process.stderr is not None
        process.stderr.close()


def refused(address: str) -> bool:
    """Whether nobody listens there."""
    host, port = address.removeprefix("http://").split(":")
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex((host, int(port))) != 0


def wait_until(met: Callable[[], bool], what: str) -> None:
    """Poll until `met`, for at most `DEADLINE_S`."""
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not met():
        assert time.monotonic() < deadline, what
        pause.wait(0.02)


def test_a_server_has_time_to_end() -> None:
    """Its grace, and twice as long for threads at work after it, before it is killed."""
    assert up.STOP_S >= 3 * serve.GRACE_S


@pytest.mark.slow
def test_both_answer_when_it_says_so_and_end_with_it(start: Start) -> None:
    """The printed addresses answer; a kept diagnosis links to the page; SIGTERM ends all with 0."""
    up = start()
    api, page = up.address("API"), up.address("page")
    assert up.said.count("no keys: only this machine gets in") == 1
    assert httpx.get(f"{page}/_stcore/health", timeout=60).text == "ok"
    kept = httpx.post(
        f"{api}/v1/diagnose", params={"keep": "true"}, content=LOG.encode(), timeout=30
    )
    assert kept.json()["schema"] == DIAGNOSIS_SCHEMA
    assert kept.json()["causes"][0]["id"] == "rank-crash"
    identifier = kept.headers["location"].removeprefix("/v1/diagnoses/")
    assert kept.headers["link"].startswith(f"<{page}/?d={identifier}>;")
    up.process.send_signal(signal.SIGTERM)
    _, said = up.process.communicate(timeout=DEADLINE_S)
    assert up.process.returncode == 0, said
    assert "Traceback" not in said
    assert refused(api)
    assert refused(page)


@pytest.mark.slow
def test_when_one_dies_the_other_is_stopped(start: Start) -> None:
    """A killed page ends the command with 1; it names who died and how, and the API is gone."""
    up = start()
    api = up.address("API")
    os.kill(up.children()[-1], signal.SIGKILL)
    _, said = up.process.communicate(timeout=DEADLINE_S)
    assert up.process.returncode == 1
    assert "the page ended with signal SIGKILL" in said
    assert refused(api)


@pytest.mark.slow
def test_without_streamlit_there_is_the_api_alone_and_it_never_outlives_its_parent(
    start: Start,
) -> None:
    """It says what is missing and serves the API; even SIGKILL of the command leaves nothing."""
    up = start(NO_STREAMLIT)
    assert "pip install 'timeout-kb[web]'" in up.said
    assert "\npage:" not in up.said
    api = up.address("API")
    assert httpx.get(f"{api}/readyz", timeout=30).json()["ready"] is True
    up.process.kill()
    up.process.wait(DEADLINE_S)
    wait_until(lambda: refused(api), "the API outlived its parent")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--port", "{taken}", "--web-port", "0"], "with --port", id="api"),
        pytest.param(["--port", "0", "--web-port", "{taken}"], "with --web-port", id="page"),
        pytest.param(["--port", "{taken}", "--web-port", "{taken}"], "cannot share", id="same"),
    ],
)
def test_a_port_that_cannot_be_had_is_told_at_once(
    home: Path, root: Path, words: list[str], said: str
) -> None:
    """Exit code 2 and the option that chooses another port, before anything is started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-c", RUN, "up", *(word.format(taken=port) for word in words)],
            cwd=root,
            env={"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    assert done.returncode == 2
    assert said in done.stderr


def test_a_part_that_does_not_start_is_told_with_its_own_words(tmp_path: Path, root: Path) -> None:
    """A state folder that cannot be used: code 1, which part it was, and its last lines."""
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-c", RUN, "up", "--port", "0", "--web-port", "0"],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(tmp_path / "file" / "home")},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 1
    assert "error: the API ended with exit code 1" in done.stderr
    assert "set TIMEOUT_KB_HOME to a folder you may write to" in done.stderr
