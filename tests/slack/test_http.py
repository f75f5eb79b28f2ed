"""HTTP mode: only requests signed by Slack are taken, each once, within three seconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.slack import payloads, samples
from tests.slack.bot import Bot
from tests.slack.calls import strings
from tests.slack.delivery import Attempt, Delivery
from tests.slack.fake_slack import FakeSlack
from tests.slack.http_mode import Forgery, encode
from tests.slack.manifest import Manifest
from tests.slack.office import Office, answered, check_everything_said, check_secrets, finished
from tests.slack.workspace import Channel, Message, new_ts


@pytest.fixture(scope="module")
def http(
    manifest: Manifest,
    built_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
    known_urls: frozenset[str],
) -> Iterator[Office]:
    """A Slack that posts, and a bot that listens."""
    slack = FakeSlack(manifest, mode="http")
    slack.start()
    alpha, beta = slack.workspace("alpha"), slack.workspace("beta")
    home = shutil.copytree(built_home, tmp_path_factory.mktemp("http") / "home")
    bot = Bot(slack, Path(home), mode="http").start()
    yield Office(slack=slack, bot=bot, alpha=alpha, beta=beta)
    code = bot.stop()
    check_everything_said(slack, known_urls)
    check_secrets(slack, bot)
    slack.stop()
    assert code == 0


@pytest.fixture
def channel(http: Office, request: pytest.FixtureRequest) -> Channel:
    """A channel of the test's own."""
    return http.alpha.add_channel(request.node.name[:60])


def test_a_signed_mention_is_answered(http: Office, channel: Channel) -> None:
    """The request is acknowledged within three seconds and the answer comes by the Web API."""
    slack = http.slack
    asked = slack.say(channel, samples.chinese_log(), mention=True)
    answer = answered(slack, channel, asked)
    assert "checkpoint-io" in "\n".join(strings(answer.blocks))
    slack.until(lambda: all(item.acked for item in slack.deliveries), what="acknowledgements")
    assert max(item.took_s or 9.0 for item in slack.deliveries) < 3
    assert {len(item.attempts) for item in slack.deliveries} == {1}


def forged(http: Office, channel: Channel, forgery: Forgery) -> tuple[Attempt, Message]:
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
def test_a_forged_request_is_refused(http: Office, channel: Channel, forgery: Forgery) -> None:
    """Wrongly signed, older than five minutes, from the future, without headers: 401, no work."""
    attempt, asked = forged(http, channel, forgery)
    assert attempt.status == 401
    honest = http.slack.say(channel, "help", mention=True)
    finished(http.slack, honest)
    assert http.slack.answers(channel, asked) == []
    assert asked.reacted == []


def test_the_same_request_signed_is_taken(http: Office, channel: Channel) -> None:
    """The forgeries above fail for their signatures alone."""
    attempt, asked = forged(http, channel, "none")
    assert attempt.status == 200
    answered(http.slack, channel, asked)


def test_a_replayed_request_is_answered_once(http: Office, channel: Channel) -> None:
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


def test_the_address_can_be_verified(http: Office) -> None:
    """Slack's `url_verification` gets its challenge back."""
    body = {"token": payloads.VERIFICATION, "challenge": "3eZbrw1aB", "type": "url_verification"}
    delivery = Delivery(kind="events_api", payload=body)
    attempt = http.slack.run(http.slack.http.post(delivery))
    assert attempt.status == 200
    assert "3eZbrw1aB" in attempt.body


def test_commands_clicks_and_forms_work(http: Office, channel: Channel) -> None:
    """A command, a button and the form take the same ways as over a socket."""
    slack = http.slack
    slack.slash(channel, "help")
    assert "/timeout search" in "\n".join(strings(slack.answer(channel).blocks))
    answer = answered(slack, channel, slack.say(channel, samples.english_log(), mention=True))
    slack.click(channel, answer, "incident")
    view = slack.view(http.alpha)
    number = len(slack.answers(channel)) + 1
    slack.submit(http.alpha, view, {"cause": "rank-crash", "fix": "less memory"}, user="ann")
    assert slack.answer(channel, number=number).text
    interactive = [item for item in slack.deliveries if item.kind != "events_api"]
    slack.until(lambda: all(item.acked for item in interactive), what="acknowledgements")
    assert max(item.took_s or 9.0 for item in interactive) < 3


def test_two_workspaces_share_one_address(http: Office) -> None:
    """Each team's request is answered with its own token."""
    slack = http.slack
    rooms = [http.alpha.add_channel("one"), http.beta.add_channel("two")]
    asked = [slack.say(room, samples.english_log(), mention=True) for room in rooms]
    for room, message in zip(rooms, asked, strict=True):
        answered(slack, room, message)
    for call in slack.calls:
        if "channel" in call.arguments:
            assert call.arguments["channel"] in slack.workspaces[call.team].channels


def test_what_is_not_slack_gets_no_help(http: Office) -> None:
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
    assert "Traceback" not in http.bot.said
