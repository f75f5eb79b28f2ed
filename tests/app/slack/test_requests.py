"""What is read out of Slack's payloads, texts as they were written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.slack.requests import (
    DiagnosisRef,
    SlackFile,
    conversation_id,
    event_origin,
    message_text,
    of_click,
    of_message,
    unescape,
)
from kb.errors import InputError


def test_a_mention_is_read_without_the_name() -> None:
    """The bot's name goes, other names stay; the thread and the files come along."""
    event = {
        "user": "U1",
        "text": "<@UBOT> rank 3 hangs, <@U2> knows\nWatchdog",
        "ts": "5.6",
        "thread_ts": "1.2",
        "files": [
            {"id": "F1", "name": "a.log", "size": 7, "url_private_download": "https://f/a.log"},
            {"id": "F2", "mode": "tombstone"},
        ],
    }
    request = of_message(event, team="T1", channel="C1", bot_user="UBOT", origin="mention")
    assert request.text == "rank 3 hangs, @U2 knows\nWatchdog"
    assert request.files == (SlackFile(id="F1", name="a.log", size=7, url="https://f/a.log"),)
    assert request.conversation == conversation_id("T1", "C1", "1.2")


PERSON = {"type": "message", "user": "U1", "text": "why?", "ts": "5.6"}


@pytest.mark.parametrize(
    ("event", "origin"),
    [
        ({}, "auto"),
        ({"thread_ts": "5.6"}, "auto"),
        ({"thread_ts": "1.2"}, "thread"),
        ({"thread_ts": "1.2", "text": "<@U2> why?"}, None),
        ({"channel_type": "im"}, "direct"),
        ({"type": "app_mention", "text": "<@UBOT> why?"}, "mention"),
        ({"text": "<@UBOT> why?"}, None),
        ({"subtype": "file_share"}, "auto"),
        ({"subtype": "message_changed"}, None),
        ({"bot_id": "B1"}, None),
        ({"bot_profile": {"id": "B1"}}, None),
        ({"subtype": "bot_message"}, None),
        ({"user": ""}, None),
        ({"user": "USLACKBOT"}, None),
        ({"type": "app_mention", "bot_id": "B1"}, None),
    ],
)
def test_a_message_is_for_the_bot_or_not(event: dict[str, Any], origin: str | None) -> None:
    """People are answered where they mean the bot, once for a mention; programs never."""
    assert event_origin(PERSON | event, "UBOT") == origin


def test_a_button_of_somebody_else_is_refused() -> None:
    """A value that is none of ours gives an error a person understands."""
    with pytest.raises(InputError, match="older message"):
        DiagnosisRef.decode("{}")


def test_a_click_is_placed_under_its_message() -> None:
    """In a channel an answer goes into the message's thread, in direct messages below it."""
    body = {
        "team": {"id": "T1"},
        "user": {"id": "U1"},
        "channel": {"id": "C1"},
        "container": {"message_ts": "5.6", "channel_id": "C1"},
        "message": {"ts": "5.6"},
        "actions": [{"action_id": "fixes", "value": "v", "action_ts": "7.8"}],
    }
    click = of_click(body)
    assert (click.destination.thread, click.value) == ("5.6", "v")
    # Slack shows what is for one person in a thread only where the thread has begun.
    assert (click.private.thread, click.private.only_for) == ("", "U1")
    inside = of_click(body | {"message": {"ts": "5.6", "thread_ts": "1.2"}})
    assert (inside.destination.thread, inside.private.thread) == ("1.2", "1.2")
    assert click.key == of_click(body).key
    again = body | {"actions": [{"action_id": "fixes", "value": "v", "action_ts": "7.9"}]}
    assert of_click(again).key != click.key
    direct = of_click(body | {"channel": {"id": "D1"}})
    assert direct.destination.thread == ""


@given(st.text())
def test_what_people_write_is_read_as_written(text: str) -> None:
    """Slack escapes &, < and >; undone once, the text is the same, entities in it included."""
    sent = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert unescape(sent) == text


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("see <http://train.py|train.py> line 3", "see train.py line 3"),
        ("<https://example.org/a?b=1&amp;c=2>", "https://example.org/a?b=1&c=2"),
        ("<https://example.org/x|the log>", "the log (https://example.org/x)"),
        ("<mailto:a@b.org|a@b.org> <tel:123|123>", "a@b.org 123"),
        ("<@U123ABC> <#C1|ops> <!here> <!subteam^S1|@oncall>", "@U123ABC #ops @here @oncall"),
        ("std::vector<int> and Tensor<float>", "std::vector<int> and Tensor<float>"),
        ("&amp;lt;!channel&amp;gt;", "&lt;!channel&gt;"),
    ],
    ids=["file", "link", "labelled", "mail", "names", "bot", "double"],
)
def test_links_slack_made_are_undone(sent: str, written: str) -> None:
    """A log with file names, addresses and type names is read as it stood."""
    assert unescape(sent) == written


def test_a_bots_blocks_and_attachments_are_read() -> None:
    """What a CI bot posts is found where it put it, fences taken off."""
    message = {
        "bot_id": "B1",
        "text": "",
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "job failed"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "```\nline &lt;1&gt;\n```"}},
            {
                "type": "rich_text",
                "elements": [
                    {
                        "type": "rich_text_preformatted",
                        "elements": [{"type": "text", "text": "line 2"}],
                    }
                ],
            },
        ],
        "attachments": [{"fallback": "unused", "text": "line 3"}],
    }
    read = message_text(message)
    assert [line for line in read.split("\n") if line] == [
        "job failed",
        "line <1>",
        "line 2",
        "line 3",
    ]
