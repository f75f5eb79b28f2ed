"""Posting from the page: into the channel of the settings, as text that does nothing."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from app.slack.posting import _post
from app.slack.workspaces import SlackError
from kb.settings import Settings
from tests.event_loop import run_coroutine


async def post(text: str, answer: dict[str, object]) -> list[tuple[str, str, dict[str, str]]]:
    """Post to a Slack that gives this answer; what it was asked: path, token, fields."""
    seen: list[tuple[str, str, dict[str, str]]] = []

    async def take(request: web.Request) -> web.Response:
        fields = {name: str(value) for name, value in (await request.post()).items()}
        if request.content_type == "application/json":
            fields = {name: str(value) for name, value in (await request.json()).items()}
        seen.append((request.path, request.headers.get("Authorization", ""), fields))
        return web.json_response(answer)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", take)
    async with TestServer(application) as server:
        settings = Settings(
            slack_bot_token="xoxb-first,xoxb-second",  # noqa: S106 - of the test alone
            slack_channel="C0123",
            slack_api_url=str(server.make_url("/api/")),
        )
        await _post(settings, text)
    return seen


def test_the_text_goes_into_the_channel() -> None:
    """With the first workspace's token, once, escaped, without previews or names."""
    ((path, token, fields),) = run_coroutine(post("<!channel> a & b\nline two", {"ok": True}))
    assert path == "/api/chat.postMessage"
    assert token == "Bearer xoxb-first"  # noqa: S105 - of the test alone
    assert fields["channel"] == "C0123"
    assert "<!channel>" not in fields["text"]
    assert "&amp;" in fields["text"]
    assert fields["text"].endswith("\nline two")
    assert (fields["parse"], fields["mrkdwn"].lower() in ("0", "false")) == ("none", True)


def test_a_refusal_says_what_to_do() -> None:
    """Slack's word for it, and the setting to look at; not the token."""
    with pytest.raises(SlackError, match="not_in_channel") as caught:
        run_coroutine(post("text", {"ok": False, "error": "not_in_channel"}))
    assert "TIMEOUT_KB_SLACK_CHANNEL" in caught.value.todo
    assert "xoxb" not in str(caught.value)
