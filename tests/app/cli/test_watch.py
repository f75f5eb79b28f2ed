"""`timeout-kb watch`: the job is as without it, and whoever looks finds out why it died."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import pytest

from app.capture.dumps import new_dumps
from app.cli import watched_process
from app.cli.watched_process import OutputRecord
from kb.bootstrap import open_service
from kb.evidence.capture import read_capture
from kb.incidents.attempts import Attempt, add_attempt, read_attempts
from kb.settings import Settings
from tests.app.capture.test_ras import behind
from tests.kb.evidence.test_ras import HEAD

Serve = Callable[[object, Settings], AbstractContextManager[str]]

DEADLINE_S = 60
# As from a terminal: what runs in the background inherits that SIGINT or SIGHUP is ignored.
HEAR = (
    "import signal as s; s.signal(s.SIGHUP, s.SIG_DFL); s.signal(s.SIGINT, s.default_int_handler)"
)
HEARING = [sys.executable, "-c", f"{HEAR}; from app.cli.main import main; main()", "watch"]
WATCH = [sys.executable, "-c", "from app.cli.main import main; main()", "watch"]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
WATCHDOG = (
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms"
)
DYING = f"import sys; print({OOM!r}); print({WATCHDOG!r}); sys.exit(7)"


@pytest.fixture(scope="module")
def home(built_home: Callable[[], Path]) -> Path:
    """A state folder that is built."""
    return built_home()


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """What the job is given."""
    return {"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(home), "TIMEOUT_KB_LANG": "en"}


Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def run(root: Path, environment: dict[str, str]) -> Run:
    """Runs a Python job under watch, with options and further variables."""

    def run(
        job: str, *options: str, command: Sequence[str] = WATCH, **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*command, *options, "--", sys.executable, "-c", job],
            cwd=root,
            env={**environment, **variables},
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )

    return run


@pytest.fixture
def start(root: Path, environment: dict[str, str]) -> Start:
    """Starts a Python job under watch; its standard error is read, other streams as told."""

    def start(
        job: str,
        *options: str,
        command: Sequence[str] = WATCH,
        variables: Mapping[str, str] | None = None,
        **streams: Any,
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, *options, "--", sys.executable, "-c", job],
            cwd=root,
            env={**environment, **(variables or {})},
            **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams),
        )

    return start


def until(stream: IO[bytes], wanted: bytes) -> bytes:
    """Read lines until one holds `wanted`; all of them."""
    said = b""
    for line in stream:
        said += line
        if wanted in line:
            return said
    raise AssertionError(f"{wanted!r} never came: {said!r}")


def wait_until(met: Callable[[], bool]) -> None:
    """Poll until `met`, for at most `DEADLINE_S`."""
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not met():
        assert time.monotonic() < deadline
        pause.wait(0.02)


def children(pid: int) -> list[str]:
    """Ids of a process's children."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def blocks(pid: int, number: signal.Signals) -> bool:
    """Whether a process lets that signal wait."""
    (mask,) = re.findall(
        r"^SigBlk:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
    )
    return bool(int(mask, 16) >> (number - 1) & 1)


# --- the job is as without it -------------------------------------------------------------------


def test_bytes_of_both_streams_pass_unchanged(run: Run) -> None:
    """Any bytes, of any amount, without a line end, arrive on the stream they were written to."""
    job = (
        "import sys\n"
        "for n in range(64): sys.stdout.buffer.write(bytes(range(256)) * 4096)\n"
        "sys.stdout.buffer.write(b'\\r 50%')\n"
        "sys.stderr.buffer.write(b'\\xff\\x00\\n' * 100000)\n"
    )
    done = run(job)
    assert done.returncode == 0
    out = bytes(range(256)) * 4096 * 64 + b"\r 50%"
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(out).digest()
    assert done.stderr == b"\xff\x00\n" * 100000


@pytest.mark.parametrize(
    ("job", "code"),
    [
        pytest.param("pass", 0, id="fine"),
        pytest.param("raise SystemExit(7)", 7, id="exit"),
        pytest.param("import os; os.kill(os.getpid(), 9)", 137, id="killed"),
    ],
)
def test_the_exit_code_is_the_jobs(run: Run, job: str, code: int) -> None:
    """Zero says nothing; a signal is 128 and its number, as in a shell."""
    done = run(job)
    assert done.returncode == code
    assert (b"timeout-kb watch" in done.stderr) == (code != 0)


@pytest.mark.parametrize(
    ("command", "code"),
    [pytest.param("no-such-command", 127, id="missing"), pytest.param("/", 126, id="folder")],
)
def test_a_command_that_cannot_start_is_told(
    root: Path, environment: dict[str, str], command: str, code: int
) -> None:
    """The code is a shell's, the message names the command."""
    done = subprocess.run(
        [*WATCH, "--", command], cwd=root, env=environment, capture_output=True, check=False
    )
    assert done.returncode == code
    assert command.encode() in done.stderr


def test_signals_reach_the_job_and_its_answer_counts(start: Start) -> None:
    """SIGTERM and SIGUSR1 to the watcher are the job's to handle."""
    job = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'usr1\\n'))\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "os.write(1, b'up\\n')\n"
        "while True: signal.pause()\n"
    )
    with start(job) as process:
        assert process.stdout is not None
        until(process.stdout, b"up")
        process.send_signal(signal.SIGUSR1)
        until(process.stdout, b"usr1")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 5


def test_on_a_terminal_the_job_sees_a_terminal(start: Start) -> None:
    """Both streams are one terminal of our size, and lines end on it as the job ended them."""
    job = (
        "import os, sys\n"
        "print(sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size(1), flush=True)\n"
        "print('to stderr', file=sys.stderr, flush=True)\n"
        "print('to stdout')\n"
    )
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (33, 121))
    with start(job, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:  # the terminal's other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    assert said == (
        b"True True os.terminal_size(columns=121, lines=33)\r\nto stderr\r\nto stdout\r\n"
    )


def test_a_reader_that_goes_away_does_not_end_the_job(start: Start, tmp_path: Path) -> None:
    """A pager that is left or a terminal that is closed costs the job neither life nor code."""
    mark = tmp_path / "done"
    job = (
        f"import sys\nfor n in range(300000): print('y')\n"
        f"open({str(mark)!r}, 'w')\nprint({WATCHDOG!r})\nsys.exit(7)"
    )
    with start(job) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        process.stdout = None
        said = process.communicate(timeout=DEADLINE_S)[1]
    assert process.returncode == 7
    assert mark.exists()
    assert b"ALLREDUCE" in said  # what came after is in the record too


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full"])
def test_streams_that_take_nothing_are_no_matter_of_the_job(
    root: Path, environment: dict[str, str], tmp_path: Path, closed: str
) -> None:
    """It runs to its end and gives its own code; what is still open is passed on."""
    mark = tmp_path / "done"
    job = (
        "import sys; print('out', flush=True); print('err', file=sys.stderr, flush=True); "
        f"open({str(mark)!r}, 'w'); sys.exit(7)"
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *WATCH, "--", sys.executable, "-c", job],
        cwd=root,
        env=environment,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 7
    assert mark.exists()
    assert done.stdout == (b"out\n" if closed == "2>&-" else b"")
    assert (b"err\n" in done.stderr) == ("2>&-" not in closed)


def test_no_room_for_the_record_is_no_matter_of_the_job(run: Run, tmp_path: Path) -> None:
    """Where nothing temporary can be written, only the diagnosis is missing."""
    full = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'none')!r}"
    done = run(DYING, command=[sys.executable, "-c", f"{full}; {WATCH[2]}", "watch"])
    assert done.returncode == 7
    assert OOM.encode() in done.stdout
    assert b"timeout-kb watch: no diagnosis: " in done.stderr


def test_a_process_left_behind_does_not_hold_it_up(run: Run) -> None:
    """The watcher ends soon after the job, though a child of it still holds the pipe."""
    job = (
        "import subprocess\nprint(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)\n"
    )
    done = run(job)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0


def test_a_full_disk_is_full_for_a_while_only(
    root: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """What our stream refuses is lost and told once; what it takes later is there."""
    limit = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (9000, r.RLIM_INFINITY))"
    # More than pipes hold: a part of it was refused when the job, which makes room, goes on.
    job = (
        "import os, resource as r\nprint('a' * 4_000_000, flush=True)\n"
        "r.prlimit(os.getppid(), r.RLIMIT_FSIZE, (r.RLIM_INFINITY, r.RLIM_INFINITY))\nprint('b')"
    )
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                f"{limit}; {WATCH[2]}",
                "watch",
                "--",
                sys.executable,
                "-c",
                job,
            ],
            cwd=root,
            env=environment,
            stdout=out,
            stderr=subprocess.PIPE,
            timeout=DEADLINE_S,
            check=False,
        )
    assert done.returncode == 0
    said = (tmp_path / "out").read_bytes()
    assert said.endswith(b"b\n")  # the line before may have been refused to its end
    assert len(said) < 4_000_000
    assert done.stderr == b"timeout-kb watch: some output is lost: File too large\n"


def test_a_reader_that_does_not_read_can_be_left(start: Start) -> None:
    """It is waited for after the job's end until somebody says otherwise; the code is the job's."""
    job = f"import sys; print({WATCHDOG!r}); print('a' * 500_000); sys.exit(7)"
    with start(job, command=HEARING) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        until(process.stdout, b"ALLREDUCE")
        wait_until(lambda: not children(process.pid))
        told: list[IO[bytes]] = []
        deadline = time.monotonic() + DEADLINE_S
        while not told:  # one that comes too early is taken for the job's
            assert time.monotonic() < deadline
            process.send_signal(signal.SIGTERM)
            told = select.select([process.stderr], [], [], 2)[0]
        assert b"ended with exit code 7" in process.stderr.readline()
        process.wait(DEADLINE_S)
    assert process.returncode == 7


# --- the record ---------------------------------------------------------------------------------


def test_a_record_keeps_head_and_tail_of_a_flood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ends are there byte for byte, the gap is counted, and no more than asked is kept."""
    monkeypatch.setattr(watched_process, "HEAD_BYTES", 1000)
    monkeypatch.setattr(watched_process, "TAIL_BYTES", 3000)
    monkeypatch.setattr(watched_process, "BLOCK_BYTES", 200)
    record = OutputRecord()
    lines = [b"line %d\n" % number for number in range(10_000)]
    for line in lines:
        record.add(1, line)
    record.save(tmp_path / "out")
    head, _, tail = (tmp_path / "out").read_bytes().partition(b"(")
    count, _, tail = tail.partition(b" bytes of output left out here)\n")
    whole = b"".join(lines)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + int(count) + len(tail) == len(whole)
    assert 1000 <= len(head) <= 1200
    assert 3000 <= len(tail) <= 3400


def test_lines_of_two_streams_are_not_torn(tmp_path: Path) -> None:
    """A line that comes in pieces is recorded whole, whatever the other stream prints meanwhile."""
    with (tmp_path / "whole").open("wb", buffering=0) as whole:
        record = OutputRecord(whole)
        record.add(1, b"a\nhalf of ")
        record.add(2, b"error\n")
        record.add(1, b"a line\nlast")
        record.finish()
        record.save(tmp_path / "out")
    expected = b"a\nerror\nhalf of a line\nlast\n"
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes() == expected


def test_a_line_without_its_end_is_saved_and_goes_on(tmp_path: Path) -> None:
    """What a hanging job printed last is in the record of then, and later only once."""
    record = OutputRecord()
    record.add(1, b"step 1\nwaiting for peers")
    record.save(tmp_path / "hang")
    assert (tmp_path / "hang").read_bytes() == b"step 1\nwaiting for peers\n"
    record.add(1, b" ... done\n")
    record.finish()
    record.save(tmp_path / "end")
    assert (tmp_path / "end").read_bytes() == b"step 1\nwaiting for peers ... done\n"


def test_what_is_new_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that has no end yet comes again; of a flood the end is given, and that it is one."""
    monkeypatch.setattr(watched_process, "RECENT_BYTES", 8)
    record = OutputRecord()
    record.add(1, b"before\n")
    record.keep_recent()
    record.add(1, b"a 1\ra 2")
    record.add(2, b"b\n")
    assert record.recent() == ([b"a 1\ra 2", b"b\n"], True)
    record.add(1, b" c\n")
    assert record.recent() == ([b"a 2 c\n", b""], True)
    record.add(1, b"0123456789\n")
    assert record.recent() == ([b"3456789\n", b""], False)
    assert record.recent() == ([b"", b""], True)


def test_a_full_disk_under_the_log_stops_the_log_only(tmp_path: Path) -> None:
    """What cannot be written is told once; the record goes on."""
    with Path("/dev/full").open("wb", buffering=0) as full:
        record = OutputRecord(full)
        record.add(1, b"one\n")
        record.add(1, b"two\n")
    assert "No space left on device" in record.log_error
    record.save(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"one\ntwo\n"


def test_dumps_are_those_of_this_run(tmp_path: Path) -> None:
    """Files of the folder and of both prefixes that are not older than the run."""
    fresh = [tmp_path / "fr" / "rank_0", tmp_path / "fr" / "rank_1", tmp_path / "dumps" / "x.json"]
    others = [tmp_path / "fr" / "other", tmp_path / "dumps" / "old.json"]
    for path in (*fresh, *others):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    os.utime(others[1], (1000, 1000))
    environ = {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "fr" / "rank_")}
    started = fresh[0].stat().st_mtime
    assert new_dumps([tmp_path / "dumps"], environ, since_s=started) == tuple(sorted(fresh))
    older = {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "fr" / "rank_")}
    assert new_dumps([], older, since_s=started) == (fresh[0], fresh[1])
    assert new_dumps([tmp_path / "gone"], {}, since_s=started) == ()


# --- the diagnosis ------------------------------------------------------------------------------


def test_a_job_that_dies_is_diagnosed_on_stderr(run: Run, tmp_path: Path) -> None:
    """On stdout is the job's output alone, on stderr the answer; the log holds what was printed."""
    log = tmp_path / "job.log"
    done = run(DYING, "--log", str(log), "--format", "json")
    assert done.returncode == 7
    assert done.stdout.decode() == f"{OOM}\n{WATCHDOG}\n"
    assert log.read_bytes() == done.stdout
    answer = json.loads(done.stderr[done.stderr.index(b"{") :])
    assert answer["causes"][0]["id"] == "rank-crash"
    assert answer["incident"]["first_error"]["line"] == 1
    assert "timeout-kb-watch" not in json.dumps(answer)


def test_dumps_named_in_the_environment_take_part(run: Run, tmp_path: Path) -> None:
    """What the job's flight recorder wrote before it died is read with its log."""
    dump = {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
        "entries": [],
    }
    job = (
        "import os, pathlib\n"
        "dump = pathlib.Path(os.environ['TORCH_FR_DUMP_TEMP_FILE'] + '3')\n"
        f"dump.write_text({json.dumps(dump)!r})\n{DYING}"
    )
    prefix = str(tmp_path / "rank_")
    done = run(job, "--format", "json", TORCH_FR_DUMP_TEMP_FILE=prefix)
    answer = json.loads(done.stderr[done.stderr.index(b"{") :])
    assert answer["incident"]["world_size"] == 4


SILENT = f"import sys; print({WATCHDOG!r}, flush=True); sys.stdin.read(); print('done')"


def test_a_silent_job_is_captured_once_and_goes_on(start: Start, tmp_path: Path) -> None:
    """After so many seconds without output it is said in a few lines; the job ends as it wants."""
    options = ("--hang-after", "0.5", "--captures", str(tmp_path))
    with start(SILENT, *options, stdin=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = until(process.stderr, b"All of it: timeout-kb diagnose").decode()
        out, rest = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert out.decode() == f"{WATCHDOG}\ndone\n"
    assert rest == b""  # it ended at once: nobody can say that it was slow
    assert said.startswith("timeout-kb watch: no output for 0.5 seconds; the job still runs\n")
    assert len(said.splitlines()) <= 15
    (archive,) = tmp_path.iterdir()
    assert f"  Archive: {archive}\n" in said
    manifest, contents = read_capture(archive.read_bytes())
    files = {
        file.name.partition("/")[2]: data
        for file, data in zip(manifest.files, contents, strict=True)
    }
    assert files["job.log"].decode().startswith(WATCHDOG)
    assert b"state S (sleeping)" in files["processes.txt"]


PYSPY = """#!/bin/sh
cat <<END
Process $3: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread $3 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2806)
    train (train.py:40)
END
"""


def test_a_job_that_dies_of_its_silence_keeps_its_stacks(start: Start, tmp_path: Path) -> None:
    """Where it stood before it died is in the archive of its end, and in that answer."""
    (tmp_path / "py-spy").write_text(PYSPY)
    (tmp_path / "py-spy").chmod(0o755)
    captures = tmp_path / "captures"
    job = f"import sys; print('step 1', flush=True); sys.stdin.read(); {DYING}"
    options = ("--hang-after", "0.5", "--captures", str(captures))
    # The interpreter of the test may have a py-spy of its own beside it, whose stacks do as well.
    variables = {"RANK": "3", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    with start(job, *options, stdin=subprocess.PIPE, variables=variables) as process:
        assert process.stderr is not None
        assert b"rank 3 in " in until(process.stderr, b"All of it")
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 7
    _, last = sorted(captures.iterdir())
    names = [file.name.partition("/")[2] for file in read_capture(last.read_bytes())[0].files]
    assert "stacks/rank_3.txt" in names


def test_slow_work_is_taken_back(start: Start, tmp_path: Path) -> None:
    """A job that prints again and lives on was slow, and that is said in one line."""
    job = "import sys; print('step 1', flush=True); input(); print('step 2', flush=True); input()"
    options = ("--hang-after", "0.5", "--captures", str(tmp_path))
    with start(job, *options, stdin=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        until(process.stderr, b"All of it")
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert b"the job went on after" in until(process.stderr, b"went on")
        process.communicate(b"\n", timeout=DEADLINE_S)
    assert process.returncode == 0


# Rank 0 answers for NCCL's RAS: rank 1 is behind until a line comes in.
RAS_JOB = f"""
import os, socket, sys, threading
server = socket.create_server(("127.0.0.1", int(os.environ["NCCL_RAS_ADDR"].split(":")[1])))
reports = [{behind(60, 61, rank=1)!r}, {HEAD!r}]
def answer():
    while True:
        peer = server.accept()[0]
        assert peer.recv(100) == b"verbose status\\n"
        peer.sendall(reports[0].encode())
        peer.close()
threading.Thread(target=answer, daemon=True).start()
print("step 1", flush=True)
input()
del reports[0]
input()
"""


def test_a_rank_that_ras_shows_behind_is_told_before_any_watchdog(
    start: Start, tmp_path: Path
) -> None:
    """Which rank, with stacks and the report in the archive; that it moved is told as well."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--ras-after", "0.4", "--captures", str(tmp_path))
    variables = {"RANK": "0", "NCCL_RAS_ADDR": f"localhost:{port}"}
    with start(RAS_JOB, *options, stdin=subprocess.PIPE, variables=variables) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        said = until(process.stderr, b"All of it").decode()
        assert "NCCL's RAS has shown no progress of rank 1 for" in said.splitlines()[0]
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert b"Rank 1 moved again after" in until(process.stderr, b"moved again")
        process.communicate(b"\n", timeout=DEADLINE_S)
    assert process.returncode == 0
    (archive,) = tmp_path.iterdir()
    names = [file.name.partition("/")[2] for file in read_capture(archive.read_bytes())[0].files]
    assert "ras.txt" in names


def test_a_watch_that_is_killed_leaves_no_half_archive(start: Start, tmp_path: Path) -> None:
    """Killed amid the capture, it has written nothing; what lies there is whole."""
    options = ("--hang-after", "0.2", "--captures", str(tmp_path))
    with start(SILENT, *options, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        until(process.stdout, b"ALLREDUCE")
        threading.Event().wait(0.6)  # a capture takes a second
        process.kill()
        process.communicate(timeout=DEADLINE_S)
    for path in tmp_path.iterdir():
        assert path.name.endswith(".tar.zst")
        assert read_capture(path.read_bytes())[0].files


def test_attempts_of_a_job_are_compared(run: Run, tmp_path: Path, home: Path) -> None:
    """The third end of one kind without a step gained is told; ends that are fine are kept too."""
    job = f"llama-{tmp_path.name}"
    for _ in range(2):
        add_attempt(home, job, Attempt(ended_at="2026-01-02", exit_code=7, root="rank-crash"))
    options = ("--job", job, "--captures", str(tmp_path))
    said = run(DYING, *options).stderr.decode()
    assert "3 times in a row, same root (rank-crash), no step gained: a retry will not" in said
    assert run("pass", *options).returncode == 0
    assert [attempt.exit_code for attempt in read_attempts(home, job)] == [7, 7, 7, 0]


@pytest.fixture(scope="module")
def address(home: Path, serve: Serve) -> Iterator[str]:
    """A server of the same state folder."""
    settings = Settings(home=home)
    service = open_service(settings)
    with serve(service, settings) as address:
        yield address
    service.close()


def test_a_server_may_diagnose_and_keep_it(run: Run, address: str) -> None:
    """The answer is the server's, with the address it is kept under."""
    done = run(DYING, "--post", address)
    assert done.returncode == 7
    assert b"rank-crash" in done.stderr
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith(f"timeout-kb watch: kept: {address}/v1/diagnoses/")


def test_without_the_server_it_is_diagnosed_here(run: Run) -> None:
    """A server that does not answer is named, and the answer comes all the same."""
    done = run(DYING, "--post", "http://127.0.0.1:1")
    assert done.returncode == 7
    assert b"http://127.0.0.1:1 does not answer" in done.stderr
    assert b"rank-crash" in done.stderr


def test_a_full_disk_leaves_the_exit_code_alone(run: Run) -> None:
    """A log that cannot be written is told; the job and its diagnosis go on."""
    done = run(DYING, "--log", "/dev/full")
    assert done.returncode == 7
    assert b"the log is not whole: No space left on device" in done.stderr
    assert b"rank-crash" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_during_the_diagnosis_ends_it_cleanly(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    """The exit code is the job's, and the record, which holds the log as it was, is gone."""
    with start(
        DYING, command=HEARING, variables={"TMPDIR": str(tmp_path)}, stdout=subprocess.DEVNULL
    ) as process:
        assert process.stderr is not None
        until(process.stderr, b"ended with exit code 7")
        process.send_signal(number)
        rest = process.communicate(timeout=DEADLINE_S)[1]
    assert process.returncode == 7, rest
    assert b"no diagnosis: stopped" in rest
    assert list(tmp_path.iterdir()) == []


def _drop_and_wait(modules: list[Any]) -> None:
    modules.clear()
    threading.Event().wait(DEADLINE_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_stop_that_python_ignores_comes_again(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """What is raised in a callback of the garbage collector is only reported there."""

    class Module:
        """Something with weak references."""

    reports: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    modules = [Module(), Module()]
    references = [
        weakref.ref(modules[0], lambda _: signal.raise_signal(number)),
        weakref.ref(modules[1], lambda _: signal.strsignal(-1)),
    ]
    with pytest.raises(KeyboardInterrupt), watched_process.stoppable():
        _drop_and_wait(modules)
    assert [reference() for reference in references] == [None, None]
    assert len(reports) == 1, "what else a callback raises is reported as ever"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("code", [0, 7])
def test_a_diagnosis_of_silence_can_be_stopped_after_the_job(
    start: Start, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """A server that never answers is left; the exit code is the job's, and no record stays."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        start(
            f"input(); raise SystemExit({code})",
            *("--hang-after", "0.2", "--post", f"http://127.0.0.1:{server.getsockname()[1]}"),
            command=HEARING,
            variables={"TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        ) as process,
    ):
        server.settimeout(DEADLINE_S)
        with server.accept()[0]:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            wait_until(lambda: not children(process.pid))
            wait_until(lambda: not blocks(process.pid, number))  # the job has been waited for
            process.send_signal(number)
            said = process.communicate(timeout=DEADLINE_S)[1]
    assert process.returncode == code, said
    silent, stopped = said.splitlines()
    assert silent.startswith(b"timeout-kb watch: no output for ")
    assert stopped == b"timeout-kb watch: no diagnosis: stopped"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sink", ["/dev/full", "reader gone"])
def test_a_standard_error_that_fails_leaves_the_exit_code_alone(
    root: Path, environment: dict[str, str], sink: str
) -> None:
    """What is said after the job is said in vain then, and nothing else changes."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing if sink == "reader gone" else sink, "wb") as stream:  # noqa: PTH123 - a descriptor
        done = subprocess.run(
            [*WATCH, "--", sys.executable, "-c", "raise SystemExit(7)"],
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            timeout=DEADLINE_S,
            check=False,
        )
    assert done.returncode == 7


def test_a_diagnosis_that_fails_leaves_the_exit_code_alone(run: Run, tmp_path: Path) -> None:
    """A state folder that cannot be used is told; the code stays the job's."""
    (tmp_path / "file").touch()
    done = run(DYING, TIMEOUT_KB_HOME=str(tmp_path / "file" / "home"))
    assert done.returncode == 7
    assert b"timeout-kb watch: no diagnosis: " in done.stderr
