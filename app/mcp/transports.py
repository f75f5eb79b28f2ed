"""How clients reach the server: standard input and output, or HTTP with the API's keys."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from app.api.auth import Guard, keys_place
from app.api.problems import respond
from app.mcp.folders import AllowedFolders
from app.mcp.server import create_server
from app.mcp.tools import ToolType
from app.server.address import is_loopback
from kb.errors import KBError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

    from kb.service import Service
    from kb.settings import Settings

PATH = "/mcp"
MAX_SESSIONS = 256  # a client each; idle ones end after half an hour


async def serve_stdio(
    service: Service, settings: Settings, *, folders: AllowedFolders, read_only: bool = False
) -> None:
    """Answer the client that started this process, until it closes standard input."""
    from mcp.server.stdio import stdio_server

    server, _ = create_server(
        service, settings, folders=folders, identify=_user, read_only=read_only
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _user(_request: object, _tool: ToolType) -> str:
    """The system's name of who runs the program; empty where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def create_http_app(
    service: Service, settings: Settings, *, folders: AllowedFolders, read_only: bool = False
) -> Starlette:
    """The application that answers at `PATH`, with keys as the HTTP API has them."""
    store = service.store if settings.shared_store else None
    guard = Guard(keys_place(settings, store), shut=not is_loopback(settings.host))
    guard.follow()

    def identify(request: Any, tool: ToolType) -> str:  # noqa: ANN401 - the SDK's own is untyped
        # That a key may read was checked before, and counted.
        return guard.check(key_in(request), tool.role) if tool.role != "read" else ""

    server, context = create_server(
        service, settings, folders=folders, identify=identify, read_only=read_only
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=settings.host,
        max_request_body_size=settings.max_body,
        max_sessions=MAX_SESSIONS,
    )
    app.state.context = context
    app.add_middleware(KeyCheck, guard=guard)
    return app


def key_in(request: Request) -> str:
    """The key a request came with, as the HTTP API takes it; empty without one."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")


class KeyCheck:
    """Lets only requests with a key that may read pass, and binds a session to its key."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, 403 or 429 as the HTTP API does, or hand the request on."""
        if scope["type"] == "http":
            request = Request(scope, receive)
            try:
                name = self._guard.check(key_in(request), "read")
            except KBError as error:
                await respond(request, error)(scope, receive, send)
                return
            if name:
                scope["user"] = _session_owner(name)
        await self._app(scope, receive, send)


def _session_owner(name: str) -> object:
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
