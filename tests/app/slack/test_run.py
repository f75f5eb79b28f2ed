"""HTTP, alone and in the API server: Slack's own requests only, each once, within three seconds."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from slack_sdk.signature import SignatureVerifier

from app.api import create_app
from app.slack.run import PATH
from kb.errors import SettingsError
from kb.settings import Settings
from tests.app.fake_chat import FakeChat
from tests.app.fakes import FakeService
from tests.app.slack.fake import payloads, samples
from tests.app.slack.fake.delivery import Attempt, Delivery
from tests.app.slack.fake.http_mode import Forgery, encode
from tests.app.slack.fake.installation import (
    Installation,
    answered,
    finished,
    installed,
)
from tests.app.slack.fake.manifest import Manifest
from tests.app.slack.fake.workspace import Channel, Message, new_ts

SECRET = "0123456789abcdef"  # noqa: S105 - of the test alone
TOKEN = "xoxb-1-2"  # noqa: S105
Serve = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="module")
def http(
    manifest: Manifest,
    built_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
    known_urls: frozenset[str],
) -> Iterator[Installation]:
    """A Slack that posts, and a bot that listens."""
    home = Path(shutil.copytree(built_home, tmp_path_factory.mktemp("http") / "home"))
    with installed(manifest, home, known_urls, mode="http") as http:
        yield http


@pytest.fixture
def channel(http: Installation, request: pytest.FixtureRequest) -> Channel:
    """A channel of the test's own."""
    return http.alpha.add_channel(request.node.name[:60])


def test_a_signed_mention_is_answered(http: Installation, channel: Channel) -> None:
    """The request is acknowledged within three seconds and the answer comes by the Web API."""
    slack = http.slack
    asked = slack.say(channel, samples.chinese_log(), mention=True)
    answer = answered(slack, channel, asked)
    assert "存取检查点太慢或卡死" in answer.shown
    slack.until(lambda: all(item.acked for item in slack.deliveries), what="acknowledgements")
    assert max(item.took_s or 9.0 for item in slack.deliveries) < 3
    assert {len(item.attempts) for item in slack.deliveries} == {1}


def forged(http: Installation, channel: Channel, forgery: Forgery) -> tuple[Attempt, Message]:
    """A mention whose request is forged, and how the bot took it."""
    slack = http.slack
    asked = Message(
        ts=new_ts(),
        channel=channel.id,
        user=http.alpha.add_user("mallory").id,
        text=f"<@{http.alpha.bot_user}> {samples.undecided_log()}",
    )
    channel.messages.append(asked)
    _, body = next(payloads.message_events(http.alpha, channel, asked, slack.files_host))
    delivery = Delivery(kind="events_api", payload=body)
    return slack.run(slack.http.post(delivery, forgery=forgery)), asked


FORGERIES: tuple[Forgery, ...] = ("wrong", "stale", "future", "missing", "unsigned", "other_body")


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_request_is_refused(
    http: Installation, channel: Channel, forgery: Forgery
) -> None:
    """Wrongly signed, older than five minutes, from the future, without headers: 401, no work."""
    attempt, asked = forged(http, channel, forgery)
    assert attempt.status == 401
    honest = http.slack.say(channel, "help", mention=True)
    finished(http.slack, honest)
    assert http.slack.answers(channel, asked) == []
    assert asked.reacted == []


def test_the_same_request_signed_is_taken(http: Installation, channel: Channel) -> None:
    """The forgeries above fail for their signatures alone."""
    attempt, asked = forged(http, channel, "none")
    assert attempt.status == 200
    answered(http.slack, channel, asked)


def test_a_replayed_request_is_answered_once(http: Installation, channel: Channel) -> None:
    """Slack's retries, with their headers, bring no second answer."""
    slack = http.slack
    asked = slack.say(channel, samples.english_log(), mention=True)
    answered(slack, channel, asked)
    mine = [
        item for item in slack.deliveries if item.payload.get("event", {}).get("ts") == asked.ts
    ]
    assert len(mine) == 2
    for number in (1, 2, 3):
        extra = {"x-slack-retry-num": str(number), "x-slack-retry-reason": "http_timeout"}
        for item in mine:
            assert slack.run(slack.http.post(item, extra=extra)).status == 200
    marker = slack.say(channel, "help", mention=True)
    finished(slack, marker)
    assert len(slack.answers(channel, asked)) == 1


def test_a_workspace_nobody_installed_gets_no_post(http: Installation, channel: Channel) -> None:
    """A signed command of another workspace is answered; the address it names is not called."""
    slack = http.slack
    address = f"http://{slack.elsewhere_host}/respond"
    body = {"team_id": "T0NOBODY", "command": "/timeout", "text": "help", "response_url": address}
    delivery = Delivery(kind="slash_commands", payload=body)
    assert slack.run(slack.http.post(delivery)).status == 200
    assert slack.elsewhere.seen == []


def test_the_address_can_be_verified(http: Installation) -> None:
    """Slack's `url_verification` gets its challenge back."""
    body = {"token": payloads.VERIFICATION, "challenge": "3eZbrw1aB", "type": "url_verification"}
    delivery = Delivery(kind="events_api", payload=body)
    attempt = http.slack.run(http.slack.http.post(delivery))
    assert attempt.status == 200
    assert "3eZbrw1aB" in attempt.body


def test_commands_clicks_and_forms_work(http: Installation, channel: Channel) -> None:
    """A command, a button and the form take the same ways as over a socket."""
    slack = http.slack
    slack.slash(channel, "help")
    assert "/timeout search" in slack.answer(channel).shown
    answer = answered(slack, channel, slack.say(channel, samples.english_log(), mention=True))
    assert slack.fill_in(channel, answer, {"cause": "rank-crash", "fix": "less memory"}).text
    interactive = [item for item in slack.deliveries if item.kind != "events_api"]
    slack.until(lambda: all(item.acked for item in interactive), what="acknowledgements")
    assert max(item.took_s or 9.0 for item in interactive) < 3


def test_two_workspaces_share_one_address(http: Installation) -> None:
    """Each team's request is answered with its own token."""
    slack = http.slack
    rooms = [http.alpha.add_channel("one"), http.beta.add_channel("two")]
    asked = [slack.say(room, samples.english_log(), mention=True) for room in rooms]
    for room, message in zip(rooms, asked, strict=True):
        answered(slack, room, message)
    for call in slack.calls:
        if "channel" in call.arguments:
            assert call.arguments["channel"] in slack.workspaces[call.team].channels


def test_what_is_not_slack_gets_no_help(http: Installation) -> None:
    """Other paths and methods, huge and broken bodies are refused without a failure."""
    base = http.bot.address.removesuffix("/slack/events")
    assert httpx.get(http.bot.address).status_code in (404, 405)
    assert httpx.post(f"{base}/somewhere").status_code == 404
    assert httpx.post(http.bot.address, content=b"\xff\xfe").status_code in (400, 401)
    huge = httpx.post(http.bot.address, content=b"x" * (3 * 1024 * 1024))
    assert huge.status_code in (401, 413)
    body, kind = encode(Delivery(kind="events_api", payload={"type": "nothing we know"}))
    headers = http.slack.http.signature(body, forgery="none") | {"Content-Type": kind}
    assert httpx.post(http.bot.address, content=body, headers=headers).status_code in (200, 404)
    assert "Traceback" not in http.bot.output


# --- in the API server ---------------------------------------------------------------------------


def signed(body: bytes) -> dict[str, str]:
    """Slack's headers for a body."""
    at = str(int(time.time()))
    signature = SignatureVerifier(SECRET).generate_signature(timestamp=at, body=body)
    return {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": at,
        "X-Slack-Signature": str(signature),
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


# Sent to the mounted bot, whose Slack is out of reach: what is let through is answered 503.
WRONG_TIMES = (
    "",
    "NaN",
    "inf",
    "1e9",
    "0x10",
    "１７００００００００",
    "-1",
    "1_000",
    "9" * 400,
    "1.5",
)
WRONG_SIGNATURES = (
    "",
    "v0=",
    "v0=" + "é" * 64,
    "v1=" + "0" * 64,
    "v0=" + "0" * 63,
    "v0=" + "0" * 64,
)


def test_odd_heads_are_refused(address: str, logged: list[Any]) -> None:
    """Timestamps and signatures of no known form get 401, and their bodies stand in no log."""
    body = b'{"type": "event_callback", "event": {"text": "s3cret-body-of-a-stranger"}}'
    sound = signed(body)
    for name, values in (
        ("X-Slack-Request-Timestamp", WRONG_TIMES),
        ("X-Slack-Signature", WRONG_SIGNATURES),
    ):
        for value in values:
            headers = {key.encode(): text.encode() for key, text in (sound | {name: value}).items()}
            answer = httpx.post(address + PATH, content=body, headers=list(headers.items()))
            assert answer.status_code == 401, (name, value)
    for missing in ("X-Slack-Request-Timestamp", "X-Slack-Signature"):
        headers = {key: text for key, text in sound.items() if key != missing}
        assert httpx.post(address + PATH, content=body, headers=headers).status_code == 401
    assert httpx.post(address + PATH, content=body, headers=sound).status_code == 503
    assert "s3cret-body" not in repr(logged)


ODD_BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"payload=%7B",
    b"payload=[]",
    b"payload=null",
    b"payload=5",
    b'{"team": 5, "user": [], "channel": null}',
    b'{"event": []}',
    b'{"type": "event_callback", "event": 7}',
    b'{"type": "event_callback", "event": {"type": ["message"]}}',
    b'{"type": "event_callback", "authorizations": [5]}',
    b'{"type": "event_callback", "team_id": {"a": 1}, "event": {"type": "message", "channel": []}}',
    b'{"type": "url_verification"}',
    b'payload={"type": "block_actions", "actions": []}',
    b'payload={"type": "block_actions", "actions": [5], "team": {"id": 3}}',
    b'payload={"type": "view_submission", "view": []}',
    b"command=&text=",
)


def test_odd_bodies_that_are_signed_are_refused(http: Installation) -> None:
    """Whoever has the secret can send anything: no form of it makes the bot fail."""
    for body in ODD_BODIES:
        for kind in ("application/json", "application/x-www-form-urlencoded"):
            headers = http.slack.http.signature(body, forgery="none") | {"Content-Type": kind}
            answer = httpx.post(http.bot.address, content=body, headers=headers)
            assert answer.status_code < 500, (body[:80], kind, answer.status_code)
    assert "Traceback" not in http.bot.output
