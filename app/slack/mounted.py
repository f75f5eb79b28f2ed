"""The bot as a part of the API server: one process, one store, one chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from app.slack.bot import Bot
from app.slack.serve import PATH, endpoint
from app.slack.workspaces import check_settings
from kb.errors import KBError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

    from app.api.chat import Room
    from app.api.parts import Parts

T = TypeVar("T")


class MountedBot:
    """Made with the first request, on the server's event loop."""

    def __init__(self, parts: Parts, room: Room) -> None:
        """Raises SettingsError where a token is missing: the server does not start without."""
        check_settings(parts.settings, mode="http")
        self._parts = parts
        self._room = room
        self._bot: Bot | None = None

    async def take(self, request: Request) -> Response:
        """Take a request of Slack's."""
        bot = self._bot = self._bot or self._made()
        try:
            await bot.workspaces.open()
        except KBError as error:  # Slack sends the event again
            structlog.get_logger().warning("slack is not open", code=error.code, what=error.what)
            return PlainTextResponse("not ready", status_code=503)
        return await endpoint(bot)(request)

    def _made(self) -> Bot:
        parts, room = self._parts, self._room

        async def compute(work: Callable[[], T]) -> T:
            return await anyio.to_thread.run_sync(work, limiter=room.limiter)

        return Bot(
            parts.service,
            room.chat,
            parts.settings,
            compute=compute,
            registry=parts.metrics.registry,
        )

    async def close(self) -> None:
        """Finish running jobs and close the connections."""
        if self._bot is not None:
            await self._bot.close()


def mount(app: FastAPI) -> MountedBot:
    """Let the API server answer Slack, too; what is returned is closed with it.

    Raises:
        SettingsError: a token is missing.
    """
    bot = MountedBot(app.state.parts, app.state.room)
    app.add_route(PATH, bot.take, methods=["POST"], include_in_schema=False)
    return bot
