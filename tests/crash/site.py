"""Three servers on one PostgreSQL database behind haproxy, each of which can be killed.

They share a folder of built indexes, so one that lost its own fetches it, or builds and publishes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path

import httpx

from app.api.auth import add_key, keys_place
from kb.settings import Settings, shipped_data
from kb.store import Store
from tests.fuzz.targets import small_data
from tests.postgres import PostgresServer, postgres_server

REPLICAS = 3
ROOT = Path(__file__).resolve().parents[2]
MAIN = "from app.cli.main import main; main()"
START_S = 600.0  # within which a server that starts has to be ready; a machine may be busy
STEP_S = 0.05
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
_SERVERS = re.compile(r"^(backend api\n(?:    (?!server).*\n)*)(?:    server .*\n)+", re.MULTILINE)
_PAGE = re.compile(r"^(?:frontend|backend) page\n(?:    .*\n)+", re.MULTILINE)


def balancer_config(example: str, port: int, replicas: list[int]) -> str:
    """The example of deploy/ for these ports of this machine, without the page."""
    servers = "".join(f"    server r{at} 127.0.0.1:{at} check\n" for at in replicas)
    text, count = _SERVERS.subn(rf"\g<1>{servers}", _PAGE.sub("", example))
    if count != 1:
        raise ValueError("the example has no backend api with servers")
    return text.replace("bind :8000", f"bind 127.0.0.1:{port}")


def free_port() -> int:
    """A port of this machine that nobody has."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Program:
    """A process that is killed and started again with the same command."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        """It does not run yet; it will in `folder`."""
        self._command, self._log, self.environment = command, log, environment
        self.folder = ROOT
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Let it run unless it does; its output goes to the end of its log."""
        if self._process is not None and self._process.poll() is None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                env=os.environ | self.environment,
                cwd=self.folder,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it as if its machine had lost power."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """End it as a service manager does, and wait for it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


class Site:
    """Everything that runs, with the addresses where it answers."""

    def __init__(
        self,
        folder: Path,
        server: PostgresServer,
        example: Path,
        release: tuple[Path, Path],
        replicas: int,
    ) -> None:
        """Make the state folders and one key; nothing but the database runs yet."""
        self.server = server
        code, data = release
        self.store = server.address()
        ports = [free_port() for _ in range(replicas + 1)]
        self.balancer = f"http://127.0.0.1:{ports[0]}"
        self.addresses = [f"http://127.0.0.1:{port}" for port in ports[1:]]
        store = Store.open(self.store)
        place = keys_place(Settings(store=self.store), store)
        self.key = add_key(place, "campaign", "admin", 1_000_000)
        store.close()
        self.generations = folder / "generations"
        self.generations.mkdir()
        self.homes = [folder / f"r{number}" for number in range(replicas)]
        config = folder / "haproxy.cfg"
        config.write_text(balancer_config(example.read_text(), ports[0], ports[1:]))
        self.haproxy = Program([str(HAPROXY), "-db", "-f", str(config)], folder / "haproxy.log", {})
        self.replicas = []
        for number, port in enumerate(ports[1:]):
            environment = {
                "TIMEOUT_KB_HOME": str(self.homes[number]),
                "TIMEOUT_KB_GENERATIONS": str(self.generations),
                "TIMEOUT_KB_STORE": self.store,
                "TIMEOUT_KB_DATA": str(data),
                "PYTHONPATH": str(code),
            }
            command = [sys.executable, "-c", MAIN, "serve", "--port", str(port)]
            self.replicas.append(Program(command, folder / f"r{number}.log", environment))
            self.replicas[-1].folder = code

    def start(self) -> None:
        """Start the servers and the balancer; returns once all of them answer."""
        for program in (*self.replicas, self.haproxy):
            program.start()
        self.wait_until_ready()

    def kill(self) -> None:
        """End the servers and the balancer."""
        for program in (*self.replicas, self.haproxy):
            program.kill()

    def kill_builder(self, number: int, *, shared: bool) -> None:
        """Kill a server, let it start without an index, and kill it as it fetches or builds one.

        With `shared` the shared indexes are gone as well, so it is to build, and then to publish.
        """
        program, index = self.replicas[number], self.homes[number] / "index"
        program.kill()
        shutil.rmtree(index, ignore_errors=True)
        for path in self.generations.iterdir() if shared else ():
            shutil.rmtree(path, ignore_errors=True)  # another may publish into it
        program.start()
        unfinished = (index, self.generations) if shared else (index,)
        until(
            lambda: (
                any(list(folder.glob("*/gen-*.building")) for folder in unfinished)
                or any(index.glob("*/CURRENT"))
            ),
            "the server makes an index",
        )
        program.kill()

    def last_output(self) -> str:
        """The ends of what the servers printed."""
        logs = sorted(self.homes[0].parent.glob("r*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in logs)

    def client(self, address: str) -> httpx.Client:
        """A client with the key."""
        return httpx.Client(base_url=address, headers={"X-API-Key": self.key}, timeout=60.0)

    def wait_until_ready(self) -> None:
        """Until every server has its database and its index again, and the balancer finds them."""
        for address in (*self.addresses, self.balancer):
            until(lambda address=address: is_ready(address), f"{address} is ready")


def is_ready(address: str) -> bool:
    """Whether the server answers with its database and an index that follows it."""
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=10.0) as answer:  # noqa: S310 - http
            report = json.load(answer)
    except (OSError, ValueError, HTTPException):
        return False
    return not report["store_failure"] and not report["index_behind"]


def until(holds: Callable[[], bool], what: str, limit_s: float = START_S) -> float:
    """Seconds until something holds.

    Raises:
        TimeoutError: it did not in time.
    """
    started = time.monotonic()
    while not holds():
        if time.monotonic() - started > limit_s:
            raise TimeoutError(f"not after {limit_s:.0f} s: {what}")
        time.sleep(STEP_S)
    return time.monotonic() - started


@contextlib.contextmanager
def running_site(
    folder: Path,
    example: Path,
    release: tuple[Path, Path] | None = None,
    replicas: int = REPLICAS,
) -> Iterator[Site]:
    """A site that runs for the block, on a database that waits for its disk.

    Args:
        folder: for state and output.
        example: the balancer's settings.
        release: folders of the code and of the knowledge; without it this release, few cases.
        replicas: how many servers.
    """
    if release is None:
        release = (ROOT, folder / "data")
        small_data(release[1], shipped_data())
    with postgres_server(fsync=True) as server:
        site = Site(folder, server, example, release, replicas)
        try:
            site.start()
            yield site
        except TimeoutError as error:
            error.add_note(site.last_output())
            raise
        finally:
            site.kill()
