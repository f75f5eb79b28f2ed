"""`timeout-kb serve` as a process: address, signals, taken ports, no open door."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from app.api.auth import add_key, keys_path
from app.cli import main as cli
from app.cli.common import State
from app.cli.serve import EXAMPLE, announce
from kb.bootstrap import open_service
from kb.settings import Settings
from tests.app.conftest import Started

COMMAND = [sys.executable, "-c", "from app.cli.main import main; main()", "serve"]


@pytest.fixture(scope="module")
def home(built_home: Callable[[], Path]) -> Path:
    """The state folder of this module."""
    return built_home()


def environment(home: Path, **settings: str) -> dict[str, str]:
    """What the process sees: its state folder and further settings."""
    return {"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(home), **settings}


@pytest.fixture
def process(home: Path, start: Callable[..., AbstractContextManager[Started]]) -> Iterator[Started]:
    """A running server on a free port, and the address it printed."""
    with start(home, TIMEOUT_KB_LOG_LEVEL="info") as started:
        yield started


def test_the_example_works_as_printed(
    server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Copied into a shell it is answered; where there are keys it shows where one goes."""
    settings = Settings(home=tmp_path)
    announce(settings, server)
    line = next(line for line in capfd.readouterr().err.splitlines() if "curl" in line)
    done = subprocess.run(
        ["sh", "-c", f"{line} -sS --fail"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Rank 3 ran out of GPU memory" in done.stdout.splitlines()[0]
    add_key(keys_path(settings), "one", "read")
    announce(settings, server)
    assert "-H 'Authorization: Bearer KEY' -T" in capfd.readouterr().err


def test_the_example_is_understood(home: Path) -> None:
    """The shipped knowledge names the rank and what it lacked."""
    service = open_service(Settings(home=home))
    answer = service.diagnose_text(EXAMPLE.replace(r"\n", "\n"), language="en")
    service.close()
    assert (answer.status, answer.headline) == ("diagnosed", "Rank 3 ran out of GPU memory")
    assert answer.causes[0].id == "rank-crash"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_quietly(process: Started, number: signal.Signals) -> None:
    """The printed address answers; either signal ends the server with 0 and no traceback."""
    running, address = process
    assert httpx.get(f"{address}/readyz", timeout=60).json()["ready"] is True
    running.send_signal(number)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "Traceback" not in said


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine for itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    words += ["-keyout", str(key), "-out", str(cert)]
    subprocess.run([openssl, *words], check=True, capture_output=True)
    return cert, key


def test_it_serves_https(home: Path, root: Path, certificate: tuple[Path, Path]) -> None:
    """With a certificate the address is https, checked as any other; plain HTTP gets nothing."""
    cert, key = certificate
    with subprocess.Popen(
        [*COMMAND, "--port", "0", "--tls-cert", str(cert), "--tls-key", str(key)],
        cwd=root,
        env=environment(home),
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stderr is not None
            said = next(line for line in running.stderr if "answers on" in line)
            address = re.search(r"(https://\S+) ", said)
            assert address, said
            context = ssl.create_default_context(cafile=str(cert))
            answer = httpx.get(f"{address[1]}/healthz", verify=context)
            assert answer.status_code == 200
            assert "max-age" in answer.headers["strict-transport-security"]
            with pytest.raises(httpx.HTTPError):
                httpx.get(address[1].replace("https", "http") + "/healthz")
        finally:
            running.kill()


@pytest.mark.parametrize("case", ["no key", "key alone", "no certificate"])
def test_a_certificate_that_cannot_be_used_is_told(
    case: str,
    certificate: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything slow begins, in a sentence that names the file."""
    cert, key = map(str, certificate)
    words = {
        "no key": ["--tls-cert", cert],
        "key alone": ["--tls-key", key],
        "no certificate": ["--tls-cert", key, "--tls-key", key],
    }
    state = State(settings_source=lambda: Settings(home=tmp_path, port=0))
    assert cli.run(["serve", *words[case]], state=state) == 2
    assert ".pem" in (said := capsys.readouterr().err) or "--tls-cert" in said
    assert "Traceback" not in said


def test_a_start_says_who_gets_in_and_the_first_entry_is_found_at_once(
    home: Path, root: Path
) -> None:
    """Without keys this machine alone does; what comes first is there for the next request."""
    with subprocess.Popen(
        [*COMMAND, "--port", "0"],
        cwd=root,
        env=environment(home),
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        said = ""
        for line in running.stderr:
            said += line
            if "Try:" in line:
                break
        try:
            found = re.search(r"answers on (http://\S+) ", said)
            assert found, said
            with httpx.Client(base_url=found[1], timeout=60) as client:
                text = "Watchdog caught collective operation timeout on the quokka cluster"
                added = client.post("/v1/entries", json={"text": text, "name": "quokka.log"})
                result = client.get("/v1/search", params={"q": "quokka cluster"})
        finally:
            running.kill()
    assert "no keys: only this machine gets in (127.0.0.1)" in said
    assert added.status_code == 201
    assert result.json()["hits"][0]["entry_id"] == added.json()["ids"][0]


START = """
import asyncio, sys
from app.api import create_app
from kb.bootstrap import open_service
from kb.settings import load_settings

async def main():
    service = open_service(load_settings())
    app = create_app(service, load_settings())
    async with app.router.lifespan_context(app):
        print("ready", "ingest.pipeline" in sys.modules, "bs4" in sys.modules)
    service.close()

asyncio.run(main())
"""


def test_a_server_that_is_ready_has_loaded_what_adds_logs(home: Path, root: Path) -> None:
    """The first log added waits for no import; what reads web pages is left out, it is large."""
    done = subprocess.run(
        [sys.executable, "-c", START],
        cwd=root,
        env=environment(home),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "ready True False\n"


BUILD = """
import os, sys
from pathlib import Path
from app.cli.serve import build_apart
from kb.settings import load_settings

class Opened:
    def close(self):
        pass

def opened(settings, **options):
    with open(settings.home / "by", "a") as file:
        print(os.getpid(), file=file)
    (settings.home / "index").mkdir()
    return Opened()

build_apart(load_settings(), opened)
build_apart(load_settings(), opened)
print(os.getpid())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems build in the same process")
def test_the_knowledge_base_is_built_apart_once(tmp_path: Path, root: Path) -> None:
    """The first start leaves building, and its memory, to another process; the next builds not."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD],
        cwd=root,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    builders = (tmp_path / "by").read_text().split()
    assert len(builders) == 1
    assert builders[0] != done.stdout.strip()


def test_log_lines_are_json_with_the_request_id(
    process: Started,
) -> None:
    """Each request is one JSON line on stderr, found by its id."""
    import json

    running, address = process
    httpx.get(f"{address}/healthz", headers={"x-request-id": "find-me"}, timeout=60)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    mine = [line for line in lines if line.get("request_id") == "find-me"]
    assert [(line["event"], line["path"], line["status"]) for line in mine] == [
        ("request", "/healthz", 200)
    ]


def test_a_taken_port_is_told(home: Path, root: Path) -> None:
    """Exit code 2 and the next step, before anything slow happens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, "--port", str(port)],
            cwd=root,
            env=environment(home),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "choose another with --port" in done.stderr


def test_other_machines_are_not_served_without_keys(home: Path, root: Path) -> None:
    """A public address without keys is refused with the command that makes one."""
    done = subprocess.run(
        [*COMMAND, "--host", "0.0.0.0", "--port", "0"],  # noqa: S104 - refused here
        cwd=root,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "timeout-kb keys add" in done.stderr
