"""Where Slack's requests come in: over Socket Mode, over HTTP alone, or at the API server."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import structlog
import uvicorn
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import to_starlette_response
from slack_bolt.async_app import AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.slack.bot import Bot
from app.slack.workspaces import check_settings
from kb.errors import KBError

if TYPE_CHECKING:
    import socket

    from fastapi import FastAPI

    from kb.chat.chat import Chat
    from kb.service import Service
    from kb.settings import Settings

PATH = "/slack/events"  # for events, commands, buttons and forms alike
MAX_BODY = 1024 * 1024  # Slack's own requests have kilobytes; nothing larger is read
# Socket Mode: the SDK connects anew within this time after a break, and after four of it without
# a sign of Slack; until then events wait, and commands and clicks fail before people's eyes.
PING_S = 1.5
_TIMESTAMP = re.compile("[0-9]{1,12}")  # int() takes digits of every script, and more
_SIGNATURE = re.compile("v0=[0-9a-f]{64}")
Notify = Callable[[str], None]


Fields = dict[str, Any]


class DeliveredEvent(msgspec.Struct):
    """What slack-bolt looks at of an event."""

    type: str
    subtype: str | None = None


class Delivery(msgspec.Struct):
    """What slack-bolt looks at to find who is concerned: it trips over any other form."""

    type: str = ""
    command: str = ""
    team_id: str | None = None
    enterprise_id: str | None = None
    event: DeliveredEvent | None = None
    authorizations: list[Fields] | None = None
    actions: Annotated[list[Fields], msgspec.Meta(min_length=1)] | None = None
    enterprise: Fields | str | None = None
    team: Fields | None = None
    user: Fields | None = None
    channel: Fields | None = None
    view: Fields | None = None
    message: Fields | None = None
    container: Fields | None = None


async def serve_socket(service: Service, chat: Chat, settings: Settings, notify: Notify) -> None:
    """Receive over Socket Mode until SIGTERM or Ctrl-C; needs no address of its own.

    Raises:
        SettingsError: Slack refuses a token.
        SlackError: Slack cannot be reached.
    """
    async with aclosing(Bot(service, chat, settings)) as bot:
        await bot.workspaces.check_app_token()  # the SDK would try a wrong one for ever
        await bot.open()
        handler = AsyncSocketModeHandler(
            bot.app,
            settings.slack_app_token.strip(),
            logger=bot.app.logger,
            web_client=bot.workspaces.new_client(),
            ping_interval=PING_S,
        )
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        try:
            for number in signals:
                loop.add_signal_handler(number, stopped.set)
            await handler.connect_async()
            notify(_greeting(bot, "Socket Mode"))
            await stopped.wait()
        finally:
            for number in signals:  # a second Ctrl-C waits for nothing
                loop.remove_signal_handler(number)
            await handler.close_async()


async def serve_http(
    service: Service,
    chat: Chat,
    settings: Settings,
    notify: Notify,
    *,
    listening: socket.socket,
    address: str,
) -> None:
    """Receive over HTTP on `listening` until SIGTERM or Ctrl-C, which uvicorn raises again.

    Raises:
        SettingsError: Slack refuses a token.
        SlackError: Slack cannot be reached.
    """

    async def receive(request: Request) -> Response:
        text = await _verified_body(settings, request)
        return text if isinstance(text, Response) else await _dispatch(bot, request, text)

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async with aclosing(Bot(service, chat, settings)) as bot:
        await bot.open()
        routes = [Route(PATH, receive, methods=["POST"]), Route("/healthz", healthz)]
        config = uvicorn.Config(
            Starlette(routes=routes),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
        )
        notify(_greeting(bot, f"{address}{PATH}"))
        await uvicorn.Server(config).serve(sockets=[listening])


def _greeting(bot: Bot, where: str) -> str:
    identities = [workspace.identity for workspace in bot.workspaces]
    names = ", ".join(str(identity.team or identity.team_id) for identity in identities)
    return f"timeout-kb listens to Slack ({names}) on {where}. Try: /timeout help"


class MountedBot:
    """The bot as a part of the API server; made with the first request, on its event loop."""

    def __init__(self, app: FastAPI) -> None:
        """Let the API server answer Slack, too.

        Raises:
            SettingsError: a token is missing: the server does not start without.
        """
        check_settings(app.state.context.settings, mode="http")
        self._state = app.state
        self._bot: Bot | None = None
        app.add_route(PATH, self.receive, methods=["POST"], include_in_schema=False)

    async def receive(self, request: Request) -> Response:
        """Take a request of Slack's; whoever else sends one makes nothing open."""
        text = await _verified_body(self._state.context.settings, request)
        if isinstance(text, Response):
            return text
        if self._bot is None:
            context, chat = self._state.context, self._state.open_chat()
            self._bot = Bot(context.service, chat, context.settings, limiter=context.compute)
        try:
            await self._bot.workspaces.open()
        except KBError as error:  # Slack sends the event again
            structlog.get_logger().warning("slack is not open", code=error.code, what=error.what)
            return PlainTextResponse("not ready", status_code=503)
        return await _dispatch(self._bot, request, text)

    async def close(self) -> None:
        """Finish running jobs and close the connections."""
        if self._bot is not None:
            await self._bot.aclose()


async def _verified_body(settings: Settings, request: Request) -> str | Response:
    """The body of a request that Slack signed, else the refusal of it.

    Looked at before slack-bolt, which trips over timestamps that are no number, reads a body before
    it checks who sent it, and logs what it rejects.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return PlainTextResponse("too large", status_code=413)
    timestamp = request.headers.get("x-slack-request-timestamp", "")
    signature = request.headers.get("x-slack-signature", "")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return PlainTextResponse("not UTF-8", status_code=400)
    verifier = SignatureVerifier(settings.slack_signing_secret)
    form = _TIMESTAMP.fullmatch(timestamp) and _SIGNATURE.fullmatch(signature)
    if not (form and verifier.is_valid(text, timestamp, signature)):
        structlog.get_logger().info("slack request refused", bytes=len(body))
        return PlainTextResponse("invalid request", status_code=401)
    return text


async def _dispatch(bot: Bot, request: Request, text: str) -> Response:
    """What slack-bolt answers to a signed request; 400 to one that is no delivery of Slack's."""
    try:
        received = AsyncBoltRequest(
            body=text, query=str(request.url.query), headers=dict(request.headers)
        )
        msgspec.convert(received.body, Delivery)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        structlog.get_logger().warning("no delivery of Slack's", error=type(error).__name__)
        return PlainTextResponse("no delivery of Slack's", status_code=400)
    # To workspaces it does not know bolt posts there by itself, wherever that leads.
    received.context.pop("response_url", None)
    response: Response = to_starlette_response(await bot.app.async_dispatch(received))
    return response
