"""The heap of a server: what was freed goes back to the system."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from app.api import context, create_app

if TYPE_CHECKING:
    from kb.settings import Settings
    from tests.app.fakes import FakeService

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import re
from app.server.processes import return_unused_memory, use_one_arena

def resident_mb():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

use_one_arena()
blocks = [bytearray(60_000) for _ in range(1600)]
blocks = blocks[::50] + blocks[-1:]  # the last one keeps the heap from shrinking at its end
before = resident_mb()
return_unused_memory()
print(before - resident_mb())
"""
APART = """
import os, sys
from pathlib import Path
from app.server.processes import run_apart

run_apart(lambda: Path(sys.argv[1]).write_text(str(os.getpid())))
run_apart(lambda: 1 / 0)
print(os.getpid())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")
def test_holes_in_the_heap_are_given_back() -> None:
    """Of 96 MB freed between blocks still in use, at least 60 leave the process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) > 60


def test_what_a_long_request_leaves_is_given_back_by_its_thread(
    service: FakeService, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take long: the thread that answers all others goes on; a short request leaves none."""
    threads: list[int] = []
    monkeypatch.setattr(
        context, "return_unused_memory", lambda: threads.append(threading.get_ident())
    )
    ours: context.ApiContext = create_app(service, settings).state.context  # type: ignore[arg-type]

    async def both() -> tuple[int, int]:
        await ours.run(threading.get_ident)
        return threading.get_ident(), await ours.run(threading.get_ident, long=True)

    with ThreadPoolExecutor() as pool:  # a browser test may have left its loop in this thread
        loop, worker = pool.submit(anyio.run, both).result()
    assert threads == [worker]
    assert worker != loop


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do it in the same process")
def test_work_done_apart_leaves_its_results_alone(tmp_path: Path) -> None:
    """Another process does it; that it fails ends neither process with a message."""
    done = subprocess.run(
        [sys.executable, "-c", APART, str(tmp_path / "result")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int((tmp_path / "result").read_text()) != int(done.stdout)
    assert done.stderr == ""
