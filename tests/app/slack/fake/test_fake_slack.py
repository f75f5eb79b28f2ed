"""The fake Slack keeps Slack's contract, seen with Slack's own client library."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web import WebClient
from slack_sdk.web.async_client import AsyncWebClient

from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.hosts import ResponseUrl
from tests.app.slack.fake.manifest import Manifest
from tests.app.slack.fake.workspace import Channel, Workspace, as_typed
from tests.event_loop import run_coroutine

SCOPES = frozenset({"chat:write", "app_mentions:read", "channels:history", "files:read"})
MANIFEST = Manifest(
    scopes=SCOPES,
    events=frozenset({"app_mention", "message.channels"}),
    commands=frozenset({"/timeout"}),
    shortcuts=frozenset({("message", "diagnose")}),
)


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    """A Slack whose unacknowledged envelopes come again after 0.2 s."""
    fake = FakeSlack(MANIFEST, ack_s=0.2)
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def alpha(slack: FakeSlack) -> Workspace:
    """A workspace."""
    return slack.workspace("alpha")


@pytest.fixture
def channel(alpha: Workspace) -> Channel:
    """A channel of it with the bot inside."""
    return alpha.add_channel("train")


@pytest.fixture
def client(slack: FakeSlack, alpha: Workspace) -> WebClient:
    """Slack's client with the workspace's token."""
    return WebClient(token=alpha.bot_token, base_url=slack.api_address)


def refusal(call: Callable[[], object]) -> str:
    """The error code Slack answers a call with."""
    with pytest.raises(SlackApiError) as caught:
        call()
    return str(caught.value.response["error"])


def test_a_token_is_its_workspace(slack: FakeSlack, client: WebClient, alpha: Workspace) -> None:
    """`auth.test` names the team; channels of another team do not exist; other tokens fail."""
    beta = slack.workspace("beta")
    foreign = beta.add_channel("train")
    assert client.auth_test()["team_id"] == alpha.team
    assert refusal(lambda: client.chat_postMessage(channel=foreign.id, text="t")) == (
        "channel_not_found"
    )
    stranger = WebClient(token="xoxb-nobody", base_url=slack.api_address)  # noqa: S106 - made up
    assert refusal(stranger.auth_test) == "invalid_auth"


def test_slack_refuses_what_is_too_long_or_malformed(client: WebClient, channel: Channel) -> None:
    """Blocks are held against the limits, texts against theirs."""

    def post(**arguments: object) -> str:
        return refusal(lambda: client.chat_postMessage(channel=channel.id, **arguments))

    header = {"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}
    section = {"type": "section", "text": {"type": "plain_text", "text": "x" * 3000}}
    assert post(text="t", blocks=[header]) == "invalid_blocks"
    assert post(text="t", blocks=[section] * 4) == "msg_blocks_too_long"
    assert post(text="t" * 40_001) == "msg_too_long"
    assert refusal(lambda: client.api_call("chat.postMessage", json={"channel": channel.id})) == (
        "no_text"
    )
    assert post(text="t", thread_ts="1.000000") == "thread_not_found"
    assert channel.messages == []


def test_only_scopes_of_the_manifest_are_granted(client: WebClient, channel: Channel) -> None:
    """A method whose scope the manifest does not list is refused with `missing_scope`."""
    stamp = str(client.chat_postMessage(channel=channel.id, text="t")["ts"])
    assert (
        refusal(lambda: client.reactions_add(channel=channel.id, timestamp=stamp, name="eyes"))
        == "missing_scope"
    )


def test_a_limited_method_says_when_to_come_back(
    slack: FakeSlack, client: WebClient, channel: Channel
) -> None:
    """429 carries Retry-After; a call before that is noted, one after it passes."""
    slack.limit("chat.postMessage", retry_after_s=30)
    with pytest.raises(SlackApiError) as caught:
        client.chat_postMessage(channel=channel.id, text="t")
    assert (caught.value.response.status_code, caught.value.response.headers["Retry-After"]) == (
        429,
        "30",
    )
    client.chat_postMessage(channel=channel.id, text="t")
    assert [call.method for call in slack.api.too_soon] == ["chat.postMessage"]


def test_a_trigger_opens_one_modal(slack: FakeSlack, client: WebClient, channel: Channel) -> None:
    """A trigger is good once and for its own workspace."""
    block = {"type": "section", "text": {"type": "plain_text", "text": "t"}}
    title = {"type": "plain_text", "text": "Form"}
    view = {"type": "modal", "callback_id": "c", "title": title, "blocks": [block]}
    trigger = str(slack.slash(channel, "").payload["trigger_id"])
    assert client.views_open(trigger_id=trigger, view=view)["view"]["callback_id"] == "c"
    assert refusal(lambda: client.views_open(trigger_id=trigger, view=view)) == "invalid_trigger_id"
    longer = view | {"title": title | {"text": "x" * 25}}
    other = str(slack.slash(channel, "").payload["trigger_id"])
    assert refusal(lambda: client.views_open(trigger_id=other, view=longer)) == "invalid_arguments"


def test_text_arrives_as_slack_sends_it() -> None:
    """Signs are escaped, addresses are made links, plain words stay."""
    assert as_typed("a <!channel> & b") == "a &lt;!channel&gt; &amp; b"
    assert as_typed("see http://evil.example/x now") == "see <http://evil.example/x> now"
    assert as_typed("ping node.cluster.io:29500") == (
        "ping <http://node.cluster.io|node.cluster.io>:29500"
    )
    assert as_typed("torch.distributed.init") == "torch.distributed.init"
    assert len(as_typed("x" * 50_000)) == 40_000


def test_the_file_host_wants_the_token(slack: FakeSlack, alpha: Workspace) -> None:
    """Without the workspace's token there is a login page with status 200, not the file."""
    beta = slack.workspace("beta")
    file = alpha.add_file("run.log", b"hello")
    address = file.as_json(slack.files_host)["url_private_download"]

    def fetch(token: str) -> httpx.Response:
        return httpx.get(address, headers={"Authorization": f"Bearer {token}"})

    assert fetch(alpha.bot_token).content == b"hello"
    for answer in (fetch(beta.bot_token), httpx.get(address)):
        assert (answer.status_code, answer.headers["content-type"][:9]) == (200, "text/html")
    file.behaviour = "gone"
    assert fetch(alpha.bot_token).status_code == 404
    file.behaviour, file.redirect = "redirect", f"http://{slack.elsewhere_host}/x"
    assert fetch(alpha.bot_token).headers["location"] == file.redirect


def test_a_response_url_is_good_five_times(slack: FakeSlack, channel: Channel) -> None:
    """Five answers, then `used_url`; an ephemeral one is for the person who asked."""
    address = str(slack.slash(channel, "help").payload["response_url"])
    answers = [httpx.post(address, json={"text": f"answer {n}"}) for n in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [404]
    assert answers[5].json()["error"] == "used_url"
    ann = slack.add_user(channel, "ann").id
    assert {message.ephemeral_for for message in channel.messages} == {ann}
    old = ResponseUrl(
        workspace=slack.team_of(channel), channel=channel, user=ann, made_s=time.monotonic() - 1801
    )
    slack.responses.open["old"] = old
    late = httpx.post(f"http://{slack.base}/respond/old", json={"text": "late"})
    assert late.json()["error"] == "expired_url"


Listener = Callable[[AsyncBaseSocketModeClient, SocketModeRequest], Awaitable[None]]


@asynccontextmanager
async def connected(slack: FakeSlack, listener: Listener) -> AsyncIterator[SocketModeClient]:
    """Slack's own Socket Mode client, connected to the fake."""
    web = AsyncWebClient(base_url=slack.api_address)
    client = SocketModeClient(app_token=slack.app_token, web_client=web, ping_interval=0.05)
    client.socket_mode_request_listeners.append(listener)
    await client.connect()
    try:
        yield client
    finally:
        await client.close()


async def eventually(done: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(10):
        while not done():
            await asyncio.sleep(0.01)


def test_what_is_not_acknowledged_comes_again(slack: FakeSlack, channel: Channel) -> None:
    """An event comes again with its number and reason, after a silence and after a cut."""
    seen: list[SocketModeRequest] = []

    async def take(client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        seen.append(request)
        if len(seen) == 2:
            await slack_cut()
        if len(seen) == 3:
            await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))

    async def slack_cut() -> None:
        await asyncio.to_thread(slack.run, slack.sockets.cut())

    async def play() -> None:
        async with connected(slack, take):
            await asyncio.to_thread(slack.say, channel, "hello")
            await eventually(lambda: all(item.acked for item in slack.deliveries))

    run_coroutine(play())
    assert [request.retry_attempt for request in seen] == [0, 1, 2]
    assert [request.retry_reason for request in seen[1:]] == ["timeout", "timeout"]
    assert len({request.payload["event_id"] for request in seen}) == 1
    assert slack.sockets.opened >= 2
