"""Waiting for Slack: never longer than said, and never behind those who came later."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from app.slack import patience
from app.slack.files import FileAccess, download
from app.slack.patience import Places, lending_place, taking_place
from app.slack.types import SlackFile
from app.slack.workspaces import RateLimited
from kb.errors import InputError

HANGS_S = 20.0  # by then it hangs: every step here follows on the one before at once
LATER = 5  # jobs that come while another waits


async def at_a_wait(wait: Callable[[asyncio.Event], Awaitable[None]]) -> tuple[list[str], int]:
    """A job waits with its place lent, another has it till the first goes on, others queue.

    Returns who went on in which order, and how many of the others ran at once.
    """
    places, taken, back = Places(1), asyncio.Event(), asyncio.Event()
    order: list[str] = []
    running: list[int] = []

    async def waits() -> None:
        async with taking_place(places):
            await wait(taken)
            order.append("waited")
            back.set()

    async def works() -> None:
        async with taking_place(places):
            taken.set()
            await back.wait()

    async def comes_later() -> None:
        async with taking_place(places):
            order.append("later")
            running.append(running[-1] + 1 if running else 1)
            await asyncio.sleep(0)
            running.append(running[-1] - 1)

    async with asyncio.timeout(HANGS_S):
        await asyncio.gather(waits(), works(), *(comes_later() for _ in range(LATER)))
    return order, max(running)


async def until_the_place_is_taken(taken: asyncio.Event) -> None:
    """As Retry-After that is over when somebody else has the place."""
    async with lending_place():
        await taken.wait()


async def until_the_limit(_taken: asyncio.Event) -> None:
    """As a mark on a message, which is not worth the wait Slack asks for."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            await patience.wait(2 * HANGS_S)


@pytest.mark.parametrize("wait", [until_the_place_is_taken, until_the_limit])
def test_who_waited_goes_on_at_once(wait: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Neither the end of a wait nor that of its time limit stands in a queue.

    The place used beyond those there are is paid for: of the rest one runs at a time again.
    """
    order, most = asyncio.run(at_a_wait(wait))
    assert order == ["waited"] + ["later"] * LATER
    assert most == 1


def limited(retry_after_s: int) -> web.Application:
    """A Slack that always says wait."""

    async def answer(_request: web.Request) -> web.Response:
        body = {"ok": False, "error": "ratelimited"}
        return web.json_response(body, status=429, headers={"Retry-After": str(retry_after_s)})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    return application


@pytest.mark.parametrize(("asked_s", "waits"), [(300, 1), (100, 3), (1, 4)])
def test_the_waits_of_a_call_are_five_minutes_in_all(asked_s: int, waits: int) -> None:
    """However often Slack says wait: the call fails before they add up to more."""
    waited: list[int] = []

    async def wait(seconds: float) -> None:
        waited.append(int(seconds))

    async def run() -> None:
        async with TestServer(limited(asked_s)) as server:
            client = AsyncWebClient(
                token="xoxb-1",  # noqa: S106 - of the test alone
                base_url=str(server.make_url("/api/")),
                retry_handlers=[RateLimited(wait=wait)],
            )
            with pytest.raises(SlackApiError, match="ratelimited"):
                await client.auth_test()

    asyncio.run(run())
    assert waited == [asked_s] * waits


@pytest.mark.parametrize(("asked_s", "waits"), [(300, 1), (200, 1), (100, 2)])
def test_the_waits_for_a_file_are_five_minutes_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_s: int, waits: int
) -> None:
    """A file host that goes on saying wait is given up, and the file is named."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    async def run() -> None:
        async with TestServer(limited(asked_s)) as server, aiohttp.ClientSession() as session:
            host = f"{server.host}:{server.port}"
            access = FileAccess(host=host, max_bytes=1, token="xoxb-1")  # noqa: S106
            file = SlackFile(id="F1", name="job.log", url=f"http://{host}/job.log")
            with pytest.raises(InputError, match=r"job\.log .* \(HTTP 429\)"):
                await download(session, file, access, folder=tmp_path, number=0)

    monkeypatch.setattr(patience, "wait", wait)
    asyncio.run(run())
    assert waited == [asked_s] * waits
