"""`timeout-kb web`: what it starts, what it refuses, and that it speaks to nobody else."""

from __future__ import annotations

import builtins
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main as cli
from app.cli import web
from app.cli.common import State
from kb.errors import SettingsError
from kb.settings import Settings

ANNOUNCED = re.compile(r"on (http://127\.0\.0\.1:\d+)")


def run(settings: Settings, *words: str) -> int:
    """The exit code of one command line."""
    return cli.run(["web", *words], state=State(settings_source=lambda: settings))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::"])  # noqa: S104 - refused below
def test_other_machines_are_refused(
    host: str, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page has no login, so serving others must be asked for; the message says how."""
    assert run(settings, "--host", host) == 2
    shown = capsys.readouterr().err
    assert host in shown
    assert "--allow-remote" in shown


def test_asking_for_it_allows_other_machines(settings: Settings) -> None:
    """`--allow-remote` lifts the refusal; this machine needs no asking."""
    web.check_exposure(replace(settings, host="0.0.0.0"), allow_remote=True)  # noqa: S104
    web.check_exposure(replace(settings, host="localhost"), allow_remote=False)
    with pytest.raises(SettingsError, match="no login"):
        web.check_exposure(replace(settings, host="example.org"), allow_remote=False)


def test_a_missing_package_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Streamlit the person learns what to install."""
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "streamlit":
            raise ImportError("No module named 'streamlit'", name="streamlit")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert run(settings, "--port", "0") == 2
    assert "pip install 'timeout-kb[web]'" in capsys.readouterr().err


def test_streamlit_runs_closed(settings: Settings) -> None:
    """No statistics, no watching of files, no traceback on the page, bodies bounded."""
    options = web.options(replace(settings, max_body=5 * 1024 * 1024, port=8501))
    assert options["browser_gatherUsageStats"] is False
    assert options["client_showErrorDetails"] == "none"
    assert options["server_fileWatcherType"] == "none"
    assert options["server_address"] == "127.0.0.1"
    assert options["server_maxUploadSize"] == 5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real server on a free port, with the address it told."""
    home = tmp_path_factory.mktemp("web")
    process = subprocess.Popen(
        [sys.executable, "-c", "from app.cli.main import main; main()", "web", "--port", "0"],
        env=os.environ | {"TIMEOUT_KB_HOME": str(home)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told = None
        for line in process.stderr or ():
            if told := ANNOUNCED.search(line):
                break
        assert told is not None, "it ended without saying its address"
        yield process, told[1]
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


def test_it_answers_where_it_says(server: tuple[subprocess.Popen[str], str]) -> None:
    """The address told works at once, and the page names no other machine."""
    _, address = server
    page = httpx.get(address)
    assert page.status_code == 200
    fetched = re.findall(r"(?:src|href)=\"([^\"]+)\"", page.text)
    assert fetched
    assert [url for url in fetched if "//" in url] == []


FOREIGN = (
    ("evil.example", "http://evil.example"),
    ("127.0.0.1", "http://evil.example"),
    ("127.0.0.1", "null"),
    ("evil.example", ""),
)


def test_other_sites_open_neither_page_nor_socket(
    server: tuple[subprocess.Popen[str], str],
) -> None:
    """A foreign name or page gets 403, at the socket before it opens; our own page gets in."""
    _, address = server
    policy = httpx.get(address).headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "'sha256-" in policy
    assert httpx.get(address, headers={"Host": "evil.example"}).status_code == 403
    port = address.rpartition(":")[2]
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    stream = f"{address}/_stcore/stream"
    for host, origin in FOREIGN:
        headers = upgrade | {"Host": f"{host}:{port}"} | ({"Origin": origin} if origin else {})
        assert httpx.get(stream, headers=headers).status_code == 403, (host, origin)
    own = httpx.get(stream, headers=upgrade | {"Origin": address})
    assert own.status_code == 101


def test_a_taken_port_is_told(
    server: tuple[subprocess.Popen[str], str],
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A second server on the same port fails with a message, not silently elsewhere."""
    port = server[1].rpartition(":")[2]
    assert run(settings, "--port", port) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


def test_it_ends_when_told_to(server: tuple[subprocess.Popen[str], str]) -> None:
    """SIGTERM ends it without a traceback, with exit code 0."""
    process, _ = server
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 0
    rest = process.stderr.read() if process.stderr else ""
    assert "Traceback" not in rest


def test_the_script_is_shipped() -> None:
    """What is started and what it reads lie in the package."""
    folder = Path(web.SCRIPT).parent
    needed = {"main.py", "look.css", "icon.svg"}
    assert needed <= {path.name for path in folder.rglob("*.*")}


def test_streamlit_finds_no_pages_of_its_own() -> None:
    """It would run each file of a folder called pages beside its script, in place of the script."""
    assert not (Path(web.SCRIPT).parent / "pages").exists()
