"""What is taken of real processes, and what is said where it cannot be."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.capture import stacks as stacks_module
from app.capture import take
from app.capture.archive import archive_of, captures_in, groups_of, new_archive, prune
from app.capture.budget import Budget
from app.capture.processes import HostProcess, JobProcesses, host_processes, with_ranks
from app.capture.stacks import refusal_label, take_stacks
from app.capture.take import CaptureRequest, HostCapture, take_capture
from kb.evidence.capture import CaptureGap, read_capture
from tests.kb.evidence.test_ras import DEAD

DEADLINE_S = 30
TOKEN = "hf_" + "a1B2" * 8
DUMP = json.dumps(
    {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
        "entries": [],
    }
)
# A rank as it looks from outside: it answers for NCCL's RAS, and dumps when its pipe is written to.
RANK = f"""
import os, pathlib, socket, sys, threading
pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + "1.pipe"
os.mkfifo(pipe)
server = socket.create_server(("127.0.0.1", int(os.environ["NCCL_RAS_ADDR"].split(":")[1])))
def dump():
    descriptor = os.open(pipe, os.O_RDONLY)
    os.read(descriptor, 10)
    pathlib.Path(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + "1").write_text({DUMP!r})
def answer():
    peer = server.accept()[0]
    assert peer.recv(100) == b"verbose status\\n"
    peer.sendall({DEAD!r}.encode())
    peer.close()
for work in (dump, answer):
    threading.Thread(target=work, daemon=True).start()
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def rank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    """A process that looks like rank 1 of a job."""
    folder = tmp_path_factory.mktemp("job")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    environ = {
        **os.environ,
        "RANK": "1",
        "SLURM_JOB_ID": "4711",
        "NCCL_RAS_ADDR": f"localhost:{port}",
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": str(folder / "pipe_"),
        "TORCH_FR_DUMP_TEMP_FILE": str(folder / "rank_"),
        "NCCL_NET_TOKEN": TOKEN,
    }
    command = [sys.executable, "-c", RANK]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environ, **streams) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == b"up\n"
        yield with_ranks([host_processes()[process.pid]]).ranks[0]
        process.kill()


@pytest.fixture(scope="module")
def capture(rank: HostProcess, tmp_path_factory: pytest.TempPathFactory) -> HostCapture:
    """What is taken of it, with its output so far."""
    log = tmp_path_factory.mktemp("log") / "job.log"
    log.write_text(f"step 1 loss 2.5\nHF_TOKEN={TOKEN}\n")
    processes = JobProcesses(ranks=(rank,), everyone=(rank,))
    return take_capture(CaptureRequest(processes=processes, log=log), Budget())


def files_of(capture: HostCapture) -> dict[str, str]:
    """Texts by their names below the host's folder."""
    return {file.name.partition("/")[2]: data.decode() for file, data in capture.files}


def test_a_rank_is_told_by_its_state_sockets_and_settings(
    rank: HostProcess, capture: HostCapture
) -> None:
    """State and wait channel by /proc, listening sockets, settings without their secrets."""
    files = files_of(capture)
    assert f"rank 1 pid {rank.pid}" in files["processes.txt"]
    port = rank.environ["NCCL_RAS_ADDR"].partition(":")[2]
    assert f"rank 1 127.0.0.1:{port} -> 0.0.0.0:0 LISTEN" in files["sockets.txt"]
    assert "NCCL_RAS_ADDR=localhost" in files["settings.txt"]
    assert "MemTotal" in files["memory.txt"]
    assert "PATH" not in files["settings.txt"].replace("PATH_", "")
    assert capture.host.ranks == (1,)
    assert capture.host.took_s < 20


def test_torch_is_asked_for_its_dump(capture: HostCapture) -> None:
    """A rank with a pipe writes its dump when asked; none is missing then."""
    assert files_of(capture)["dumps/rank_1"] == DUMP
    assert "capture.no_dumps" not in {gap.label for gap in capture.host.gaps}


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("HOME", "nccl_trace_rank_3"),
        ("HOME", "comm_lib_trace_rank_3"),
        ("XDG_CACHE_HOME", "comm_lib_trace_rank_3"),
    ],
)
def test_a_dump_is_found_where_its_release_of_torch_writes_it(
    tmp_path: Path, variable: str, name: str
) -> None:
    """Where no variable names a place: the cache folder, under the older name and the newer."""
    environ = {"HOME": str(tmp_path / "HOME"), "XDG_CACHE_HOME": str(tmp_path / "XDG_CACHE_HOME")}
    folder = tmp_path / variable / (".cache/torch" if variable == "HOME" else "torch")
    folder.mkdir(parents=True)
    (folder / name).write_text(DUMP)
    taking = take._Taking(
        CaptureRequest(processes=JobProcesses(ranks=()), environ=environ), Budget()
    )
    taking.dumps()
    assert f"dumps/{name}" in {file.name.partition("/")[2] for file, _ in taking.files}


def test_ras_is_asked_where_the_job_listens(capture: HostCapture) -> None:
    """The report is taken as it is, as evidence."""
    assert files_of(capture)["ras.txt"] == DEAD
    assert "evidence" in {file.kind for file, _ in capture.files if file.name.endswith("ras.txt")}


def test_no_secret_is_written(capture: HostCapture) -> None:
    """Neither of the output nor of the environment."""
    assert files_of(capture)["job.log"].startswith("step 1 loss 2.5\nHF_TOKEN=<redacted")
    assert not any(TOKEN.encode() in data for _, data in capture.files)


def test_an_archive_comes_back_as_it_was(capture: HostCapture, tmp_path: Path) -> None:
    """Names, kinds and bytes; another name of the host replaces its own."""
    archive = archive_of([capture], "4711")
    path = new_archive(tmp_path, "4711", archive)
    manifest, contents = read_capture(path.read_bytes())
    assert manifest.job == "4711"
    assert list(zip(manifest.files, contents, strict=True)) == list(capture.files)
    (other,) = captures_in(archive, "node 1")
    assert other.host.name == "node_1"
    assert files_of(other) == files_of(capture)
    assert {file.name.split("/")[0] for file, _ in other.files} == {"node_1"}


def test_old_archives_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest stay; what a killed writer left goes."""
    monkeypatch.setattr("app.capture.archive.KEPT", 2)
    for age in range(4):
        path = tmp_path / f"timeout-kb-job-{age}.tar.zst"
        path.touch()
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "timeout-kb-job-9.tar.zst.4711").touch()
    (tmp_path / "other").touch()
    prune(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"timeout-kb-job-0.tar.zst", "timeout-kb-job-1.tar.zst", "other"}


# --- stacks -------------------------------------------------------------------------------------


@pytest.fixture
def fake_pyspy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A py-spy that answers as its file says; the first argument of `dump` is the id."""
    path = tmp_path / "py-spy"
    monkeypatch.setattr(stacks_module, "pyspy_program", lambda: str(path))
    return path


def script(path: Path, body: str) -> None:
    """Make `path` a shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


PYSPY = """cat <<END
Process $3: python train.py
--token %s
Python v3.11.7 (/usr/bin/python3.11)

Thread $3 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2806)
    train (train.py:40)
    <module> (train.py:60)
END"""


def ranks(count: int) -> list[HostProcess]:
    """Ranks that are only named."""
    return [
        HostProcess(pid=100 + n, parent=1, arguments=("python", "train.py"), rank=n)
        for n in range(count)
    ]


def test_stacks_name_their_rank(fake_pyspy: Path) -> None:
    """The head says which rank it is; the command line's lines do not break it."""
    script(fake_pyspy, PYSPY % TOKEN)
    taken, gaps = take_stacks(ranks(2), Budget())
    assert gaps == []
    assert taken[1].text.startswith("Process 101: rank 1: python train.py\nPython v3.11.7")
    assert TOKEN not in taken[1].text


def test_a_process_that_does_not_answer_is_left(
    fake_pyspy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs its share of the time, and the others' stacks are there."""
    monkeypatch.setattr(stacks_module, "DUMP_S", 0.5)
    script(fake_pyspy, f'[ "$3" = 101 ] && sleep 60\n{PYSPY}')
    started = time.monotonic()
    taken, gaps = take_stacks(ranks(3), Budget())
    assert time.monotonic() - started < 10
    assert [stack.process.rank for stack in taken] == [0, 2]
    values = {"count": "1", "pid": "101", "why": "took too long"}
    assert gaps == [CaptureGap("capture.no_stack", values)]


def test_a_capture_that_is_stopped_ends_at_once(fake_pyspy: Path) -> None:
    """A job that ended is not waited for."""
    script(fake_pyspy, "sleep 60")
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    started = time.monotonic()
    taken, _ = take_stacks(ranks(8), Budget(stop=stop))
    assert taken == []
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("scope", "capabilities", "label"),
    [
        pytest.param("1", 0, "capture.ptrace_scope", id="children only"),
        pytest.param("2", 0, "capture.ptrace_admin", id="administrators only"),
        pytest.param("1", 1 << 19, "capture.ptrace_capability", id="capable yet refused"),
        pytest.param("0", 0, "capture.ptrace_capability", id="container"),
    ],
)
def test_a_refusal_says_what_to_do(
    tmp_path: Path, scope: str, capabilities: int, label: str
) -> None:
    """By the kernel's setting and this process's rights."""
    (tmp_path / "sys/kernel/yama").mkdir(parents=True)
    (tmp_path / "sys/kernel/yama/ptrace_scope").write_text(f"{scope}\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text(f"CapEff:\t{capabilities:016x}\n")
    (tmp_path / "7").mkdir()
    assert refusal_label(7, tmp_path) == label


def test_another_users_process_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tracing is allowed at all, whose process it is decides."""
    (tmp_path / "7").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "7").stat().st_uid + 1)
    assert refusal_label(7, tmp_path) == "capture.ptrace_owner"


def test_without_pyspy_it_is_said_how_to_get_it(
    rank: HostProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is taken all the same."""
    monkeypatch.setattr(stacks_module, "pyspy_program", lambda: None)
    processes = JobProcesses(ranks=(rank,), everyone=(rank,))
    capture = take_capture(CaptureRequest(processes=processes), Budget(1.5))
    assert "capture.no_pyspy" in {gap.label for gap in capture.host.gaps}
    assert "processes.txt" in files_of(capture)
    assert groups_of([capture]) == ()


def test_kernel_lines_of_the_last_hour_stay() -> None:
    """Older ones go, with what continues them."""
    lines = "[  100.000001] old\n  more\n[ 9000.000001] NVRM: Xid\n  more of it\n"
    assert take._recent(lines, 10_000.0) == "[ 9000.000001] NVRM: Xid\n  more of it\n"


def test_a_long_log_keeps_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out of the middle is counted."""
    monkeypatch.setattr(take, "MAX_LOG", 100)
    (tmp_path / "log").write_bytes(b"a" * 50 + b"b" * 100 + b"c" * 50)
    data = take._ends_of(tmp_path / "log")
    assert data.startswith(b"a" * 20 + b"\n(100 bytes of output left out here)\n")
    assert data.endswith(b"b" * 30 + b"c" * 50)
