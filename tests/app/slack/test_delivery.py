"""Deliveries that repeat, connections that break, Slack that says wait: one answer each."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.saved import load_diagnosis
from kb.settings import Settings
from tests.app.slack.conftest import tells_oom
from tests.app.slack.fake import samples
from tests.app.slack.fake.delivery import Delivery
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.harmless import links
from tests.app.slack.fake.installation import (
    PUBLIC_URL,
    BotProcess,
    Installation,
    answered,
    finished,
    installed,
)
from tests.app.slack.fake.manifest import Manifest
from tests.app.slack.fake.workspace import Channel, Message

CUTS = 5
RESEND_S = 1.0  # what is not acknowledged comes again after this


@pytest.fixture(scope="module")
def own(
    manifest: Manifest,
    built_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
    known_urls: frozenset[str],
) -> Iterator[Installation]:
    """A Slack and a bot that these tests may cut, stop and start."""
    home = Path(shutil.copytree(built_home, tmp_path_factory.mktemp("own") / "home"))
    with installed(manifest, home, known_urls, ack_s=RESEND_S, public_url=PUBLIC_URL) as own:
        yield own


def events_of(slack: FakeSlack, message: Message) -> list[Delivery]:
    """The first delivery of each event of a message."""
    found: dict[str, Delivery] = {}
    for item in slack.deliveries:
        if item.kind == "events_api" and item.payload["event"].get("ts") == message.ts:
            found.setdefault(item.payload["event_id"], item)
    return list(found.values())


def all_acknowledged(slack: FakeSlack) -> None:
    """Wait until nothing is on its way."""
    slack.until(lambda: all(item.acked for item in slack.deliveries), what="acknowledgements")


def connected_anew(slack: FakeSlack, opened: int) -> None:
    """Wait for a connection beyond the first `opened` ones."""
    slack.until(lambda: slack.sockets.opened > opened, what="new connection")


def repeat(slack: FakeSlack, message: Message) -> None:
    """Slack delivers all events of a message once more, in the same and in new envelopes."""
    for item in events_of(slack, message):
        slack.send("events_api", item.payload)
        slack.deliver_again(item)
    all_acknowledged(slack)


def one_answer(slack: FakeSlack, channel: Channel, asked: Message) -> None:
    """A marker asked later is answered, and `asked` still has one answer."""
    marker = slack.say(channel, "help", mention=True)
    finished(slack, marker)
    assert len(slack.answers(channel, asked)) == 1


@dataclass(frozen=True, kw_only=True)
class Restarted:
    """What was asked before, during and after a stop of the bot, in one channel."""

    channel: Channel
    early: Message  # answered before the stop
    late: tuple[Message, ...]  # acknowledged when the signal to stop came
    down: Message  # written while no bot ran
    code: int  # of the bot's end
    answers_at_stop: dict[str, int]  # by the message's ts


@pytest.fixture(scope="module")
def restarted(own: Installation) -> Restarted:
    """The bot stopped at work and started again."""
    slack, channel = own.slack, own.alpha.add_channel("restart")
    early = slack.say(channel, samples.english_log(), mention=True)
    answered(slack, channel, early)
    late = tuple(slack.say(channel, samples.english_log(), mention=True) for _ in range(5))
    all_acknowledged(slack)
    code = own.bot.stop(number=signal.SIGTERM)
    at_stop = {message.ts: len(slack.answers(channel, message)) for message in (early, *late)}
    down = slack.say(channel, samples.english_log(), mention=True)
    own.bot.start()
    return Restarted(
        channel=channel, early=early, late=late, down=down, code=code, answers_at_stop=at_stop
    )


def test_repeated_deliveries_give_one_answer(own: Installation) -> None:
    """While it is answered and after it, in the same envelope and in new ones: once."""
    slack, channel = own.slack, own.alpha.add_channel("repeats")
    asked = slack.say(channel, samples.english_log(), mention=True)
    repeat(slack, asked)
    answered(slack, channel, asked)
    repeat(slack, asked)
    one_answer(slack, channel, asked)


def test_a_delivery_repeated_after_a_restart_is_not_answered_again(
    own: Installation, restarted: Restarted
) -> None:
    """What an earlier process answered stays answered."""
    repeat(own.slack, restarted.early)
    one_answer(own.slack, restarted.channel, restarted.early)


def test_stopping_finishes_what_was_acknowledged(own: Installation, restarted: Restarted) -> None:
    """A signal to stop lets the answers out that the bot has taken on, and ends with 0."""
    assert restarted.code == 0
    assert set(restarted.answers_at_stop.values()) == {1}
    for message in restarted.late:
        (answer,) = own.slack.answers(restarted.channel, message)
        assert tells_oom(answer.shown)


def test_what_was_asked_while_the_bot_was_down_is_answered(
    own: Installation, restarted: Restarted
) -> None:
    """Events wait for the bot."""
    answer = answered(own.slack, restarted.channel, restarted.down)
    assert tells_oom(answer.shown)


def test_a_thread_goes_on_after_a_restart(own: Installation, restarted: Restarted) -> None:
    """The incident of a thread is kept: a follow-up is answered about it, without a mention."""
    slack, channel, root = own.slack, restarted.channel, restarted.late[0]
    asked = slack.say(channel, "why?", thread=root)
    finished(slack, asked)
    answers = slack.answers(channel, root)
    assert len(answers) == 2
    assert "One rank died first" in answers[1].shown


def test_nothing_is_lost_while_the_connection_breaks(own: Installation) -> None:
    """Messages written while the socket is cut five times are each answered once."""
    slack, channel = own.slack, own.alpha.add_channel("cuts")
    asked = []
    for _ in range(CUTS):
        opened = slack.sockets.opened
        asked += [slack.say(channel, samples.english_log(), mention=True) for _ in range(2)]
        slack.run(slack.sockets.cut())
        asked += [slack.say(channel, "help", mention=True) for _ in range(2)]
        connected_anew(slack, opened)
    for message in asked:
        answered(slack, channel, message)
    all_acknowledged(slack)
    assert len(asked) == 4 * CUTS


def test_a_new_connection_is_tried_until_there_is_one(own: Installation) -> None:
    """Slack refusing a new address at first costs time and no question."""
    slack, channel = own.slack, own.alpha.add_channel("refused")
    slack.api.broken += [("apps.connections.open", 503)] * 2
    opened = slack.sockets.opened
    slack.run(slack.sockets.cut())
    asked = slack.say(channel, samples.english_log(), mention=True)
    connected_anew(slack, opened)
    answered(slack, channel, asked)
    assert slack.api.broken == []


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
def test_slack_may_ask_for_a_new_connection(own: Installation, reason: str) -> None:
    """The bot connects anew when told; messages on both sides of it are answered once."""
    slack, channel = own.slack, own.alpha.add_channel(reason)
    opened = slack.sockets.opened
    before = slack.say(channel, samples.english_log(), mention=True)
    slack.run(slack.sockets.disconnect(reason))  # type: ignore[arg-type]
    after = slack.say(channel, samples.english_log(), mention=True)
    connected_anew(slack, opened)
    answered(slack, channel, before)
    answered(slack, channel, after)


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update", "reactions.add"])
def test_a_rate_limit_is_waited_for(own: Installation, method: str) -> None:
    """After 429 the call is made again when Retry-After is over, and not before."""
    slack, channel = own.slack, own.alpha.add_channel(method)
    slack.limit(method, times=1, retry_after_s=1)
    asked = slack.say(channel, samples.english_log(), mention=True)
    answer = answered(slack, channel, asked)
    assert tells_oom(answer.shown)
    refused = [call for call in slack.calls if call.response.get("error") == "ratelimited"]
    assert refused[-1].method == method
    assert slack.api.too_soon == []


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
def test_a_failure_of_slacks_is_tried_again(own: Installation, method: str) -> None:
    """One 503 of the Web API costs no answer and brings none twice."""
    slack, channel = own.slack, own.alpha.add_channel(f"broken {method}")
    slack.api.broken.append((method, 503))
    asked = slack.say(channel, samples.english_log(), mention=True)
    assert tells_oom(answered(slack, channel, asked).shown)
    assert slack.api.broken == []


def test_the_answer_links_to_the_page_of_its_diagnosis(own: Installation) -> None:
    """Where the page's address is known, the link holds the id the diagnosis is kept under.

    The page tells it all: a long log brings no file then.
    """
    slack, channel = own.slack, own.alpha.add_channel("link")
    asked = slack.say(channel, samples.long_log(10_000), mention=True)
    answer = answered(slack, channel, asked)
    assert slack.attached(channel) == []
    start = f"{PUBLIC_URL}/?d="
    (link,) = [item for item in links({"blocks": answer.blocks}) if item.startswith(start)]
    service = open_service(Settings(home=own.bot.home))
    try:
        assert load_diagnosis(service, link.removeprefix(start)).en.causes[0].id == "rank-crash"
    finally:
        service.close()


WRONG_TOKENS = {
    "bot token": ("slack_bot_token", "xoxb-000000000000-000000000000-notARealOneAtAll"),
    "app token": ("slack_app_token", "xapp-1-A0-000000000000-notARealOneAtAll"),
    "no bot token": ("slack_bot_token", ""),
}


@pytest.mark.parametrize("name", WRONG_TOKENS)
def test_a_wrong_token_is_said_at_start(
    own: Installation, tmp_path: Path, built_home: Path, name: str
) -> None:
    """The start fails with the setting's name and the next step, without the token itself."""
    setting, value = WRONG_TOKENS[name]
    home = shutil.copytree(built_home, tmp_path / "home")
    bot = BotProcess(own.slack, Path(home), **{setting: value})
    with pytest.raises(AssertionError, match=f"TIMEOUT_KB_{setting.upper()}"):
        bot.start()
    assert bot.stop() == 2
    assert "Traceback" not in bot.output
    assert "notARealOneAtAll" not in bot.output
