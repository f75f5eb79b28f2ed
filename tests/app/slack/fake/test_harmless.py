"""The check for mentions and links finds them wherever Slack would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.slack.fake.harmless import links, mentions


def section(kind: str, text: str, **more: Any) -> dict[str, Any]:
    """A message of one section."""
    block = {"type": "section", "text": {"type": kind, "text": text, **more}}
    return {"text": "t", "blocks": [block]}


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    """A message of one rich text."""
    inner = {"type": "rich_text_section", "elements": list(elements)}
    return {"text": "t", "blocks": [{"type": "rich_text", "elements": [inner]}]}


CALLING = {
    "text": {"text": "hey <!channel>"},
    "mrkdwn": section("mrkdwn", "hey <!here|here>"),
    "user": section("mrkdwn", "hey <@U123>"),
    "group": section("mrkdwn", "<!subteam^S1|@team>"),
    "rich broadcast": rich({"type": "broadcast", "range": "channel"}),
    "rich user": rich({"type": "user", "user_id": "U1"}),
    "linked names": {"text": "@channel", "link_names": True},
    "attachment": {"text": "t", "attachments": [{"text": "<!everyone>"}]},
}
LINKING = {
    "text": {"text": "see <http://evil.example|click>"},
    "bare": {"text": "see http://evil.example"},
    "mrkdwn": section("mrkdwn", "see <http://evil.example>"),
    "markdown": {"text": "t", "blocks": [{"type": "markdown", "text": "[x](http://evil.example)"}]},
    "rich link": rich({"type": "link", "url": "http://evil.example"}),
    "image": {"text": "t", "blocks": [{"type": "image", "image_url": "http://evil.example/x.png"}]},
    "button": {
        "text": "t",
        "blocks": [
            {"type": "actions", "elements": [{"type": "button", "url": "http://evil.example"}]}
        ],
    },
}
QUIET = {
    "escaped": {"text": "&lt;!channel&gt; &lt;http://"},
    "plain": section("plain_text", "<!channel> <@U1> <http://evil.example|x>"),
    "rich text": rich({"type": "text", "text": "<!channel> http://evil.example"}),
    "verbatim": section("mrkdwn", "http://evil.example", verbatim=True),
    "names as text": {"text": "@channel @here"},
    "values": {
        "text": "t",
        "blocks": [{"type": "actions", "elements": [{"type": "button", "value": "<!channel>"}]}],
    },
}


@pytest.mark.parametrize("name", CALLING)
def test_a_call_is_found(name: str) -> None:
    """One mention, however it is written."""
    assert len(mentions(CALLING[name])) == 1


@pytest.mark.parametrize("name", LINKING)
def test_a_link_is_found(name: str) -> None:
    """The address, however it is linked."""
    assert {link[:19] for link in links(LINKING[name])} == {"http://evil.example"}


@pytest.mark.parametrize("name", QUIET)
def test_what_slack_does_not_read_is_quiet(name: str) -> None:
    """Plain text and escaped signs call nobody and link nothing."""
    assert (mentions(QUIET[name]), links(QUIET[name])) == ([], [])
