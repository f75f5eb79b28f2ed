"""A bot at work in a fake Slack, and what must hold of everything it says."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tests.slack.bot import Bot
from tests.slack.fake_slack import FakeSlack
from tests.slack.harmless import links, mentions
from tests.slack.workspace import Channel, Message, Workspace

PUBLIC_URL = "https://kb.example.org"  # of the page, where a bot is told it
DONE = frozenset({"white_check_mark", "warning", "grey_question"})  # reactions at the end


@dataclass(frozen=True, kw_only=True)
class Office:
    """A Slack with two workspaces and a bot that serves both."""

    slack: FakeSlack
    bot: Bot
    alpha: Workspace
    beta: Workspace


def check_everything_said(slack: FakeSlack, known_urls: Collection[str]) -> None:
    """Within Slack's limits, calling nobody, linking only what the knowledge base knows."""
    problems, slack.problems = slack.problems, []
    assert problems == []
    assert slack.api.too_soon == []
    assert slack.elsewhere.seen == []
    for where, payload in slack.spoken():
        assert mentions(payload) == [], where
        strange = [
            link
            for link in links(payload)
            if link not in known_urls and not link.startswith(f"{PUBLIC_URL}/?d=")
        ]
        assert strange == [], where


def check_secrets(slack: FakeSlack, bot: Bot) -> None:
    """No token of Slack's in what the bot wrote to its log."""
    tokens = [workspace.bot_token for workspace in slack.workspaces.values()]
    for token in (*tokens, slack.app_token, slack.signing_secret):
        assert token not in bot.said


def finished(slack: FakeSlack, asked: Message) -> str:
    """The reaction the bot puts on a message when it is done with it."""

    def done() -> str:
        return next((name for name in asked.reacted if name in DONE), "")

    return slack.until(done, what=f"end of the answer to {asked.text[:60]!r}")


def answered(slack: FakeSlack, channel: Channel, asked: Message) -> Message:
    """The one answer to a message in a channel, complete."""
    finished(slack, asked)
    answers = slack.answers(channel, asked)
    assert len(answers) == 1, [message.text for message in answers]
    return answers[0]
