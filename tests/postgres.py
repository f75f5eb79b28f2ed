"""A real PostgreSQL server for tests: in a temporary folder, on a socket, on no port."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

BINARIES = "/usr/lib/postgresql/*/bin"  # where Debian keeps the server's programs
_NUMBERS = itertools.count(1)


class PostgresServer:
    """A server whose data lie below `folder`; it can be stopped and started again."""

    def __init__(self, binaries: Path, folder: Path, *, fsync: bool = False) -> None:
        """Make the server's files; it does not run yet. With `fsync` it waits for the disk."""
        self._binaries, self._folder, self._fsync = binaries, folder, fsync
        self._as_user: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            self._as_user = ["runuser", "-u", "postgres", "--"]
            shutil.chown(folder, "postgres")
        options = ["-U", "tkb", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"]
        self._run("initdb", *options)

    def start(self) -> None:
        """Let it answer."""
        # usually loose about power cuts, and no other address than the socket
        fsync = "on" if self._fsync else "off"
        options = f"-c listen_addresses='' -k {self._folder} -c fsync={fsync}"
        options += " -c max_connections=200"
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """End it at once, with every connection."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def kill(self) -> None:
        """Kill all its processes, as a loss of power does; `start` recovers what was committed."""
        first = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(first, signal.SIGSTOP)  # it makes no further process meanwhile
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        processes = (first, *map(int, children))
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while any(map(_runs, processes)):
            time.sleep(0.01)
        # where nobody waits for the dead their numbers stay taken, and `start` would think it runs
        (self._folder / "data" / "postmaster.pid").unlink()
        for lock in self._folder.glob(".s.PGSQL.*.lock"):
            lock.unlink()

    def address(self) -> str:
        """The address of a knowledge base of its own, empty."""
        path = f"-csearch_path=t{os.getpid()}_{next(_NUMBERS)}"
        return f"host={self._folder} user=tkb dbname=postgres options={path}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self._folder / "data"), *arguments]
        with (self._folder / "programs.log").open("a") as said:
            subprocess.run(
                [*self._as_user, *command], check=True, stdout=said, stderr=said, cwd="/"
            )


def _runs(process: int) -> bool:
    """Whether it is there and not dead already."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@contextlib.contextmanager
def postgres_server(*, fsync: bool = False) -> Iterator[PostgresServer]:
    """A server that runs for the block; skipped where PostgreSQL is not installed."""
    binaries = sorted(Path("/").glob(BINARIES.lstrip("/")))
    if not binaries:
        pytest.skip("needs PostgreSQL (Debian: postgresql)")
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    # a socket's path has at most 107 bytes, and pytest's folders may not be entered by others
    folder = Path(tempfile.mkdtemp(prefix="tkb-pg-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        server = PostgresServer(binaries[-1], folder, fsync=fsync)
        server.start()
        try:
            yield server
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):  # a test may have stopped it
                server.stop()
    finally:
        shutil.rmtree(folder)
