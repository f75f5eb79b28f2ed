"""Running the bot on its own: over Socket Mode, or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import structlog
import uvicorn
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncBoltRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.slack.bot import Bot
from app.slack.workspaces import check_settings

if TYPE_CHECKING:
    import socket

    from slack_sdk.socket_mode.aiohttp import SocketModeClient

    from kb.chat.chat import Chat
    from kb.service import Service
    from kb.settings import Settings

PATH = "/slack/events"  # for events, commands, buttons and forms alike
MAX_BODY = 1024 * 1024  # Slack's own requests have kilobytes; nothing larger is read
STARTED_S = 0.01  # between two looks whether the server listens
LOOK_S = 0.25  # between two looks whether the connection broke
PING_S = 10.0  # Socket Mode: a connection silent for four of these is made anew
Notify = Callable[[str], None]


async def serve_socket(service: Service, chat: Chat, settings: Settings, notify: Notify) -> None:
    """Receive over Socket Mode until SIGTERM or Ctrl-C; needs no address of its own.

    Raises:
        SettingsError: a token is missing or refused.
        SlackError: Slack cannot be reached.
    """
    check_settings(settings, mode="socket")
    bot = Bot(service, chat, settings)
    try:
        await bot.open()
        await bot.workspaces.check_app_token()  # the SDK would try a wrong one for ever
        handler = AsyncSocketModeHandler(
            bot.app,
            settings.slack_app_token.strip(),
            logger=bot.app.logger,
            web_client=bot.workspaces.new_client(),
            ping_interval=PING_S,
        )
        try:
            await handler.connect_async()
            watch = asyncio.get_running_loop().create_task(_keep_connected(handler.client))
            with _stop_signals() as stopped:
                notify(_greeting(bot, "Socket Mode"))
                await stopped.wait()
            watch.cancel()
        finally:
            await handler.close_async()
    finally:
        await bot.close()


async def _keep_connected(client: SocketModeClient) -> None:
    """Connect anew as soon as a connection broke; the SDK by itself looks once in `PING_S`.

    Until then Slack's events wait, and commands and clicks fail before people's eyes.
    """
    wait_s = LOOK_S
    while not client.closed:
        await asyncio.sleep(wait_s)
        session = client.current_session
        if session is None or not session.closed or client.closed:
            wait_s = LOOK_S
            continue
        try:
            await client.connect_to_new_endpoint()  # does nothing where the SDK was faster
        except Exception as error:  # noqa: BLE001 - the outermost loop: whatever the SDK raises
            wait_s = min(2 * wait_s, PING_S)
            structlog.get_logger().warning("slack connection lost", error=type(error).__name__)


async def serve_http(
    service: Service,
    chat: Chat,
    settings: Settings,
    notify: Notify,
    *,
    listening: socket.socket,
    address: str,
) -> None:
    """Receive over HTTP on `listening` until SIGTERM or Ctrl-C.

    Raises:
        SettingsError: a token is missing or refused.
        SlackError: Slack cannot be reached.
    """
    check_settings(settings, mode="http")
    bot = Bot(service, chat, settings)
    try:
        await bot.open()
        application = Starlette(
            routes=[
                Route(PATH, endpoint(bot), methods=["POST"]),
                Route("/healthz", _alive, methods=["GET"]),
            ]
        )
        config = uvicorn.Config(
            application, log_config=None, access_log=False, lifespan="off", server_header=False
        )
        server = _server(config)
        serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(STARTED_S)
        with _stop_signals() as stopped:
            serving.add_done_callback(lambda _: stopped.set())
            notify(_greeting(bot, f"{address}{PATH}"))
            await stopped.wait()
        server.should_exit = True
        await serving
    finally:
        await bot.close()


async def _alive(_request: Request) -> Response:
    return PlainTextResponse("ok")


def _greeting(bot: Bot, where: str) -> str:
    names = ", ".join(workspace.name or workspace.team for workspace in bot.workspaces)
    return f"timeout-kb listens to Slack ({names}) on {where}. Try: /timeout help"


def _server(config: uvicorn.Config) -> uvicorn.Server:
    class Server(uvicorn.Server):
        """Leaves signals to us: its own way ends the loop before running jobs are done."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(config)


@contextlib.contextmanager
def _stop_signals() -> Iterator[asyncio.Event]:
    """An event that SIGTERM and Ctrl-C set while the block runs."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def endpoint(bot: Bot) -> Callable[[Request], Awaitable[Response]]:
    """What takes Slack's requests: signature and time are checked by slack-bolt before anything."""

    async def take(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                return PlainTextResponse("too large", status_code=413)
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError:
            return PlainTextResponse("not UTF-8", status_code=400)
        asked = AsyncBoltRequest(
            body=text, query=str(request.url.query), headers=dict(request.headers)
        )
        answer = await bot.app.async_dispatch(asked)
        headers = answer.first_headers_without_set_cookie()
        return Response(answer.body, status_code=answer.status, headers=headers)

    return take
