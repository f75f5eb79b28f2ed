"""Tokens and calls: what is checked at start, and how long Slack may have a call wait."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from app.slack import workspaces
from app.slack.workspaces import SlackError, Workspaces, check_settings, slack_call
from kb.errors import SettingsError
from kb.settings import Settings
from tests.event_loop import run_coroutine


@pytest.mark.parametrize(
    ("chosen", "mode", "key"),
    [
        ({}, "socket", "TIMEOUT_KB_SLACK_BOT_TOKEN"),
        ({"slack_bot_token": "xoxb-1"}, "socket", "TIMEOUT_KB_SLACK_APP_TOKEN"),
        ({"slack_bot_token": "xoxb-1,wrong-kind"}, "http", "TIMEOUT_KB_SLACK_BOT_TOKEN"),
        (
            {"slack_bot_token": "xoxb-1", "slack_app_token": "xoxb-swapped"},
            "socket",
            "TIMEOUT_KB_SLACK_APP_TOKEN",
        ),
        ({"slack_bot_token": "xoxb-1"}, "http", "TIMEOUT_KB_SLACK_SIGNING_SECRET"),
    ],
    ids=["none", "no app token", "wrong kind", "swapped", "no secret"],
)
def test_a_missing_token_is_named(chosen: dict[str, str], mode: str, key: str) -> None:
    """The error names the setting and where to get it, and shows no value."""
    with pytest.raises(SettingsError, match=key) as caught:
        check_settings(Settings(**chosen), mode=mode)  # type: ignore[arg-type]
    assert "api.slack.com/apps" in caught.value.todo
    assert not any(value in str(caught.value) for value in chosen.values())


def slack_that_says_wait(times: int, retry_after: str) -> tuple[web.Application, list[float]]:
    """A Web API that answers 429 so often, then well; and when it was called (seconds)."""
    called: list[float] = []

    async def answer(_request: web.Request) -> web.Response:
        called.append(asyncio.get_running_loop().time())
        if len(called) <= times:
            body = {"ok": False, "error": "ratelimited"}
            return web.json_response(body, status=429, headers={"Retry-After": retry_after})
        return web.json_response({"ok": True, "team_id": "T1"})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    return application, called


async def opened(application: web.Application) -> Workspaces:
    """The workspaces of a bot whose Slack is `application`."""
    async with TestServer(application) as server:
        settings = Settings(
            slack_bot_token="xoxb-1",  # noqa: S106 - of the test alone
            slack_api_url=str(server.make_url("/api/")),
        )
        spaces = Workspaces(settings)
        try:
            await spaces.open()
        finally:
            await spaces.close()
        return spaces


def test_retry_after_is_waited_for_to_its_end() -> None:
    """The call is made again when the time Slack names is over, and not before."""
    application, called = slack_that_says_wait(2, "1")
    spaces = run_coroutine(opened(application))
    assert [workspace.identity.team_id for workspace in spaces] == ["T1"]
    assert len(called) == 3
    assert called[1] - called[0] >= 1
    assert called[2] - called[1] >= 1


def test_a_call_waits_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Slack that goes on saying wait is given up; the error holds no address and no token."""
    monkeypatch.setattr(workspaces, "MAX_WAIT_S", 0.2)
    application, called = slack_that_says_wait(9, "61")
    with pytest.raises(SlackError, match=r"cannot be reached \(TimeoutError\)"):
        run_coroutine(opened(application))
    assert len(called) == 1


def test_a_connection_that_fails_is_an_error_of_slack() -> None:
    """Whatever the network raises becomes one kind of error, without its text."""

    async def fails() -> None:
        raise OSError("https://slack.com/api/?token=xoxb-1")

    with pytest.raises(SlackError) as caught:
        run_coroutine(slack_call(fails()))
    assert "xoxb" not in str(caught.value)
