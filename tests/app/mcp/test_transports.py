"""The server as agents start it: a process on standard input and output, and over HTTP."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from app.api.auth import add_key, keys_path
from app.cli import main as cli
from app.cli.common import State
from kb.settings import Settings
from tests.app.mcp.conftest import RANKS

MAIN = ["-c", "from app.cli.main import main; main()", "mcp"]
HEADERS = {"Accept": "application/json, text/event-stream"}
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def environment(home: Path) -> dict[str, str]:
    """What the process sees."""
    return {"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(home)}


@pytest.fixture(scope="module")
def home(built_home: Callable[[], Path]) -> Path:
    """The state folder of this module's servers."""
    return built_home()


def test_an_agent_starts_it_and_talks_over_standard_streams(
    home: Path, run_folder: Path, root: Path
) -> None:
    """Relative paths are those of the folder it was started with; the end of input ends it."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[*MAIN, "--root", str(run_folder.parent)],
        env=environment(home) | {"PYTHONPATH": str(root)},
        cwd=str(root),
    )

    async def main() -> Any:
        async with Client(parameters) as client:
            assert "timeout-kb" in (client.instructions or "")
            return await client.call_tool("diagnose", {"paths": ["run"], "lang": "en"})

    result = anyio.run(main)
    assert not result.is_error
    assert result.structured_content["causes"][0]["id"] == "rank-crash"


@pytest.fixture(scope="module")
def server(home: Path, root: Path) -> Iterator[str]:
    """The address that a server over HTTP printed."""
    with subprocess.Popen(
        [sys.executable, *MAIN, "--http", "--port", "0"],
        cwd=root,
        env=environment(home),
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stderr is not None
            said = ""
            for line in running.stderr:
                said += line
                if found := re.search(r"MCP clients on (http://\S+/mcp)", said):
                    yield found[1]
                    break
            else:
                pytest.fail(said)
        finally:
            running.terminate()
            running.wait(30)


@pytest.fixture(scope="module")
def keys(home: Path) -> dict[str, str]:
    """Keys by role."""
    path = keys_path(Settings(home=home))
    return {role: add_key(path, role, role) for role in ("read", "write")}  # type: ignore[arg-type]


def over_http(url: str, key: str, session: Callable[[Client], Any]) -> Any:
    """A session with a key."""

    async def main() -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await session(client)

    return anyio.run(main)


def test_over_http_the_keys_of_the_api_decide(
    home: Path, root: Path, keys: dict[str, str], server: str
) -> None:
    """Without a key 401 and what to do; a key that reads may not write, one that writes may."""
    refused = httpx.post(server, json=PING, headers=HEADERS | {"Accept-Language": "zh"})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "timeout-kb keys add" in refused.json()["todo"]
    wrong = httpx.post(server, json=PING, headers=HEADERS | {"X-API-Key": "tkb_x"})
    assert wrong.json()["type"].endswith(":wrong-key")

    async def session(client: Client) -> Any:
        text = RANKS["rank1.log"] + RANKS["rank0.log"]
        read = await client.call_tool("diagnose", {"text": text})
        return read, await client.call_tool("add_incident", {"text": text})

    read, added = over_http(server, keys["read"], session)
    assert read.structured_content["causes"][0]["id"] == "rank-crash"
    assert added.is_error
    assert "write" in added.content[0].text
    _, added = over_http(server, keys["write"], session)
    assert not added.is_error, added.content[0].text


def test_a_page_of_another_site_is_not_answered(keys: dict[str, str], server: str) -> None:
    """A browser that was led here by a foreign name (DNS rebinding) is refused."""
    key = {"X-API-Key": keys["read"]}
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = httpx.post(server, json=PING, headers=HEADERS | key | foreign)
        assert answer.status_code in (403, 421)


def test_to_other_machines_it_is_not_served_without_keys(
    settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    """It ends with what to do instead of opening the door."""
    state = State(settings_source=lambda: settings)
    assert cli.run(["mcp", "--http", "--host", "0.0.0.0", "--port", "0"], state=state) == 2  # noqa: S104
    assert "timeout-kb keys add NAME" in capfd.readouterr().err


def test_without_the_package_the_extra_is_named(
    settings: Settings, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the verb asks for it."""
    for name in [name for name in sys.modules if name.startswith("app.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    assert cli.run(["mcp"], state=State(settings_source=lambda: settings)) == 2
    assert "pip install 'timeout-kb[mcp]'" in capfd.readouterr().err


def test_a_client_without_the_right_is_told_by_the_sdk(server: str, keys: dict[str, str]) -> None:
    """A wrong key ends the session at its start."""

    async def session(client: Client) -> Any:
        return await client.list_tools()

    with pytest.raises((MCPError, httpx.HTTPError, ExceptionGroup)):
        over_http(server, "tkb_wrong", session)
