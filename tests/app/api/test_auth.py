"""Keys of the API: roles, limits, revocation, and no open door by accident."""

from __future__ import annotations

import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.auth import (
    BURST_S,
    Guard,
    add_key,
    check_exposure,
    keys_path,
    no_keys_notice,
    read_keys,
    remove_key,
)
from app.api.problems import HttpError
from app.cli import main as cli
from app.cli.common import State
from app.server.address import is_loopback
from kb.errors import InputError, NotFoundError, SettingsError
from kb.settings import Settings

Serve = Callable[[object, Settings], AbstractContextManager[str]]


@pytest.fixture
def path(settings: Settings) -> Path:
    """Where the keys are."""
    return keys_path(settings)


def status_of(guard: Guard, text: str, role: str = "read") -> int:
    """The status a request with a key gets; 200 where it may pass."""
    try:
        guard.check(text, role)  # type: ignore[arg-type]
    except HttpError as error:
        return error.http_status
    return 200


def test_without_keys_everyone_passes(path: Path) -> None:
    """No file, no check."""
    assert status_of(Guard(path), "") == 200


@pytest.mark.parametrize("role", ["read", "write", "admin"])
def test_roles_include_those_below(path: Path, role: str) -> None:
    """A key may do what its role and the roles before it may."""
    key = add_key(path, "one", role)  # type: ignore[arg-type]
    guard = Guard(path)
    allowed = [
        wanted for wanted in ("read", "write", "admin") if status_of(guard, key, wanted) == 200
    ]
    assert allowed == ["read", "write", "admin"][: ["read", "write", "admin"].index(role) + 1]
    assert status_of(guard, "") == 401
    assert status_of(guard, key + "x") == 401


def test_the_file_holds_no_key(path: Path) -> None:
    """Only hashes are stored, readable by the owner alone."""
    key = add_key(path, "one", "read")
    assert key not in path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stored.name for stored in read_keys(path)] == ["one"]


def test_a_removed_key_is_refused_at_once(path: Path) -> None:
    """A running server notices; a file that is gone opens nothing."""
    first, second = add_key(path, "one", "read"), add_key(path, "two", "read")
    guard = Guard(path)
    assert status_of(guard, first) == 200
    remove_key(path, "one")
    assert (status_of(guard, first), status_of(guard, second)) == (401, 200)
    path.unlink()
    assert (status_of(guard, ""), status_of(guard, second)) == (401, 200)
    first = add_key(path, "three", "read")
    assert [status_of(guard, key) for key in ("", first, second)] == [401, 200, 401]


def test_the_first_key_locks_nobody_out(path: Path) -> None:
    """It counts at once, with its role; who needed none goes on until the server starts anew."""
    guard = Guard(path)
    key = add_key(path, "one", "read")
    assert [status_of(guard, text) for text in ("", key, key + "x")] == [200, 200, 401]
    assert (status_of(guard, key, "write"), status_of(guard, "", "write")) == (403, 200)
    assert [status_of(Guard(path), text) for text in ("", key)] == [401, 200]


def test_without_the_last_key_it_is_as_the_list_says(path: Path) -> None:
    """`keys list` says this machine gets in, and so it is; other machines never do."""
    key = add_key(path, "one", "read")
    here, elsewhere = Guard(path), Guard(path, shut=True)
    assert status_of(here, "") == status_of(elsewhere, "") == 401
    remove_key(path, "one")
    assert (status_of(here, ""), status_of(here, key)) == (200, 200)
    assert (status_of(elsewhere, ""), status_of(elsewhere, key)) == (401, 401)
    key = add_key(path, "two", "read")
    assert (status_of(here, ""), status_of(here, key), status_of(elsewhere, key)) == (401, 200, 200)


def test_keys_made_at_once_are_all_there(path: Path) -> None:
    """Of many processes that change the file none overwrites what another wrote."""
    names = [f"key-{number}" for number in range(12)]
    with ThreadPoolExecutor(12) as threads:
        texts = list(threads.map(lambda name: add_key(path, name, "read"), names))
    assert sorted(key.name for key in read_keys(path)) == sorted(names)
    guard = Guard(path)
    assert {status_of(guard, text) for text in texts} == {200}
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda name: remove_key(path, name), names[1:]))
    assert [key.name for key in read_keys(path)] == names[:1]


def test_without_keys_other_machines_get_no_answer(path: Path) -> None:
    """A process started again after the last key went does not open what is served to others."""
    assert status_of(Guard(path, shut=True), "") == 401
    add_key(path, "one", "read")
    remove_key(path, "one")
    assert status_of(Guard(path, shut=True), "") == 401
    assert status_of(Guard(path), "") == 200


def test_names_are_unique_and_known(path: Path) -> None:
    """A second key of a name is refused, and so is removing one there is not."""
    add_key(path, "one", "read")
    with pytest.raises(InputError, match="'one'"):
        add_key(path, "one", "read")
    with pytest.raises(NotFoundError, match="'two'"):
        remove_key(path, "two")


@pytest.mark.parametrize("content", ["{", '{"format": 2, "keys": []}', "[]"])
def test_a_damaged_file_is_refused(path: Path, content: str) -> None:
    """A broken or newer file opens no door, and strangers do not learn where it lies."""
    key = add_key(path, "one", "read")
    guard = Guard(path)
    sound = path.read_bytes()
    path.write_text(content, encoding="utf-8")
    for damaged in (guard, Guard(path)):
        for text in ("", key):
            with pytest.raises(HttpError) as raised:
                damaged.check(text, "read")
            assert raised.value.http_status == 503
            assert str(path.parent) not in str(raised.value)
    path.write_bytes(sound)
    assert (status_of(guard, key), status_of(guard, "")) == (200, 401)


def test_a_damaged_file_ends_the_start_with_one_line(
    settings: Settings, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`serve` says which file is wrong and what to do, and does not answer."""
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")
    state = State(settings_source=lambda: replace(settings, port=0))
    assert cli.run(["serve"], state=state) == 1
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert "keys.json" in said
    assert "timeout-kb keys add" in said


def test_changes_are_written_down(
    service: object, api_settings: Settings, serve: Serve, logged: list[dict[str, Any]]
) -> None:
    """Who changed what, or tried to, by the name of the key; who only reads is not noted."""
    writer = add_key(keys_path(api_settings), "ci", "write")
    reader = add_key(keys_path(api_settings), "ann", "read")
    with serve(service, api_settings) as address, httpx.Client(base_url=address) as client:
        client.get("/v1/causes", headers={"x-api-key": reader})
        client.post("/v1/lint", json={"text": "NCCL_DEBUG=INFO"}, headers={"x-api-key": reader})
        client.delete("/v1/entries/some-id", headers={"x-api-key": writer})
        client.post("/v1/feedback", json={}, headers={"x-api-key": writer})
    changes = [line for line in logged if line["event"] == "change"]
    assert [
        (line["key"], line["method"], line["path"], line["entry"], line["status"])
        for line in changes
    ] == [
        ("ci", "DELETE", "/v1/entries/{identifier}", "some-id", 403),
        ("ci", "POST", "/v1/feedback", "", 422),
    ]


@given(waits=st.lists(st.floats(min_value=0, max_value=30), min_size=1, max_size=60))
def test_no_window_holds_more_than_the_limit(
    tmp_path_factory: pytest.TempPathFactory, waits: list[float]
) -> None:
    """In any span of time a key makes at most its rate times the span plus one burst."""
    per_minute = 60
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    key = add_key(path, "one", "read", per_minute)
    now = 0.0
    guard = Guard(path, clock=lambda: now)
    passed: list[float] = []
    for wait in waits:
        now += wait
        passed += [now for _ in range(15) if status_of(guard, key) == 200]
    burst = per_minute / 60 * BURST_S
    for at, start in enumerate(passed):
        for count, end in enumerate(passed[at:], start=1):
            assert count <= burst + (end - start) * per_minute / 60 + 1e-6


@pytest.mark.parametrize(("workers", "per_minute"), [(1, 60), (2, 60), (4, 600), (8, 12)])
def test_several_processes_let_through_what_one_would(
    path: Path, workers: int, per_minute: int
) -> None:
    """All of them together pass a key's limit over time and a burst each, and not more."""
    key = add_key(path, "one", "read", per_minute)
    now = 0.0
    guards = [Guard(path, workers=workers, clock=lambda: now) for _ in range(workers)]
    passed, seconds = 0, 120
    for step in range(seconds + 1):
        now = float(step)
        for guard in guards:
            while status_of(guard, key) == 200:
                passed += 1
    limit = seconds / 60 * per_minute
    bursts = workers * max(1.0, per_minute / 60 / workers * BURST_S)
    assert limit <= passed <= limit + bursts + 1e-6


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - refused here
        ("::", False),
        ("10.0.0.1", False),
        ("node7", False),
    ],
)
def test_other_machines_need_keys(settings: Settings, host: str, *, local: bool) -> None:
    """Serving beyond this machine without a key is refused with the command that makes one."""
    assert is_loopback(host) == local
    open_settings = replace(settings, host=host)
    if local:
        check_exposure(open_settings)
        return
    with pytest.raises(SettingsError) as raised:
        check_exposure(open_settings)
    assert "timeout-kb keys add" in raised.value.todo
    add_key(keys_path(settings), "one", "read")
    check_exposure(open_settings)


def test_that_there_are_no_keys_is_said(settings: Settings) -> None:
    """Who starts without keys reads that this machine alone gets in, and how others would."""
    said = no_keys_notice(settings)
    assert said.startswith("no keys: ")
    assert "127.0.0.1" in said
    assert "timeout-kb keys add" in said
    add_key(keys_path(settings), "one", "read")
    assert no_keys_notice(settings) == ""


def test_a_server_with_keys_asks_for_one(
    service: object, api_settings: Settings, serve: Serve, log: str
) -> None:
    """401 without, 200 with a key in either header, 429 with Retry-After; health stays open."""
    key = add_key(keys_path(api_settings), "one", "read", per_minute=12)
    with (
        serve(service, api_settings) as address,
        httpx.Client(base_url=address) as client,
    ):
        refused = client.put("/v1/diagnose", content=log)
        bearer = client.put("/v1/diagnose", content=log, headers={"authorization": f"Bearer {key}"})
        header = client.get("/v1/causes", headers={"x-api-key": key})
        limited = client.get("/v1/causes", headers={"x-api-key": key})
        shut = [
            client.request(method, path, params={"unheard": "of"}).status_code
            for method, path in (("POST", "/v1/entries"), ("DELETE", "/v1/entries/a"))
        ]
        health = client.get("/healthz")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert (bearer.status_code, header.status_code, health.status_code) == (200, 200, 200)
    assert shut == [401, 401]
    assert limited.status_code == 429
    assert 1 <= int(limited.headers["retry-after"]) <= 5
