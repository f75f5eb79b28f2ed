"""The bot inside the API server: mounted by setting, guarded by Slack's signature."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from app.api import create_app
from kb.errors import SettingsError
from kb.settings import Settings
from tests.app.fake_chat import FakeChat
from tests.app.fakes import FakeService

SECRET = "0123456789abcdef"  # noqa: S105 - of the test alone
TOKEN = "xoxb-1-2"  # noqa: S105
PATH = "/slack/events"
Serve = Callable[..., AbstractContextManager[str]]


def signed(body: bytes, *, age_s: int = 0, secret: str = SECRET) -> dict[str, str]:
    """Slack's headers for a body."""
    at = str(int(time.time()) - age_s)
    digest = hmac.new(secret.encode(), b"v0:" + at.encode() + b":" + body, hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": at,
        "X-Slack-Signature": f"v0={digest.hexdigest()}",
    }


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    """HTTP mode; nobody answers where the Web API should be."""
    return Settings(
        home=tmp_path / "home",
        port=0,
        slack_mode="http",
        slack_bot_token=TOKEN,
        slack_signing_secret=SECRET,
        slack_api_url="http://127.0.0.1:9/api/",
    )


@pytest.fixture
def address(serve: Serve, service: FakeService, chosen: Settings) -> Iterator[str]:
    """A server with the bot mounted."""
    with serve(service, chosen, chat=FakeChat()) as base:
        yield base


def test_the_bot_is_mounted_by_setting(serve: Serve, service: FakeService, tmp_path: Path) -> None:
    """In Socket Mode the API server knows nothing of Slack."""
    with serve(service, Settings(home=tmp_path / "home", port=0)) as base:
        assert httpx.post(base + PATH, content=b"{}").status_code == 404


def test_a_server_without_the_secret_does_not_start(service: FakeService, tmp_path: Path) -> None:
    """A missing key is told at the start, not with the first event."""
    settings = Settings(home=tmp_path / "home", slack_mode="http", slack_bot_token=TOKEN)
    with pytest.raises(SettingsError, match="TIMEOUT_KB_SLACK_SIGNING_SECRET is not set"):
        create_app(service, settings)  # type: ignore[arg-type]


def test_slack_out_of_reach_is_told_to_slack(address: str) -> None:
    """While Slack cannot say who the bot is, events are refused for now, to be sent again."""
    body = json.dumps({"type": "event_callback", "event": {"type": "message"}}).encode()
    answer = httpx.post(address + PATH, content=body, headers=signed(body))
    assert (answer.status_code, answer.text) == (503, "not ready")


def test_the_rest_of_the_server_does_not_mind(address: str, log: str) -> None:
    """Slack out of reach costs nobody else an answer; the path is no part of the public API."""
    answer = httpx.post(address + "/v1/diagnose", json={"text": log})
    assert answer.json()["status"] == "diagnosed"
    assert PATH not in httpx.get(address + "/openapi.json").json()["paths"]
