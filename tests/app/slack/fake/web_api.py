"""Slack's Web API as the app meets it: methods, scopes, errors, rate limits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.app.slack.fake.methods import METHODS, Call, Context, SlackError

OK = {"ok": True}


@dataclass(kw_only=True)
class RateLimit:
    """Calls of a method that are refused, and until when."""

    method: str
    times: int
    retry_after_s: int
    channel: str = ""


@dataclass(kw_only=True)
class WebApi:
    """Answers ``/api/<method>``."""

    backend: Any
    limits: list[RateLimit] = field(default_factory=list)
    broken: list[tuple[str, int]] = field(default_factory=list)  # (method, HTTP status) to answer
    banned: dict[tuple[str, str], float] = field(default_factory=dict)
    too_soon: list[Call] = field(default_factory=list)  # calls before Retry-After was over

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one call and note it."""
        method = request.match_info["method"]
        arguments = await _arguments(request)
        token = _token(request, arguments)
        call = Call(method=method, token=token, arguments=arguments, at_s=time.monotonic())
        self.backend.calls.append(call)
        refused = self._refuse(call)
        if refused is not None:
            return refused
        try:
            call.response = OK | self._answer(call)
        except SlackError as error:
            call.response = {"ok": False, "error": error.code, **error.more}
        return web.json_response(call.response)

    def _refuse(self, call: Call) -> web.Response | None:
        channel = str(call.arguments.get("channel", ""))
        for key in ((call.method, ""), (call.method, channel)):
            if self.banned.get(key, 0.0) > call.at_s:
                self.too_soon.append(call)
        for limit in self.limits:
            if limit.method == call.method and limit.times and limit.channel in ("", channel):
                limit.times -= 1
                self.banned[limit.method, limit.channel] = call.at_s + limit.retry_after_s
                call.response = {"ok": False, "error": "ratelimited"}
                headers = {"Retry-After": str(limit.retry_after_s)}
                return web.json_response(call.response, status=429, headers=headers)
        for at, (method, status) in enumerate(self.broken):
            if method == call.method:
                del self.broken[at]
                call.response = {"ok": False, "error": "internal_error"}
                page = "<html><body>upstream failure</body></html>"
                return web.Response(status=status, text=page, content_type="text/html")
        return None

    def _answer(self, call: Call) -> dict[str, Any]:
        if call.method == "apps.connections.open":
            if call.token != self.backend.app_token:
                raise SlackError("invalid_auth")
            return {"url": self.backend.socket_address()}
        known = METHODS.get(call.method)
        if known is None:
            raise SlackError("unknown_method", req_method=call.method)
        for workspace in self.backend.workspaces.values():
            if workspace.bot_token == call.token:
                break
        else:
            raise SlackError("invalid_auth" if call.token else "not_authed")
        call.team = workspace.team
        function: Callable[[Context], dict[str, Any]] = known
        return function(Context(workspace=workspace, call=call, backend=self.backend))


async def _arguments(request: web.Request) -> dict[str, Any]:
    """The arguments wherever they stand: address, form or JSON; lists sent as text are read."""
    found: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        found |= json.loads(await request.text() or "{}")
    elif request.can_read_body:
        found |= {name: str(value) for name, value in (await request.post()).items()}
    for name in ("blocks", "attachments", "view", "files"):
        if isinstance(found.get(name), str):
            found[name] = json.loads(found[name])
    return found


def _token(request: web.Request, arguments: dict[str, Any]) -> str:
    header = request.headers.get("Authorization", "")
    return header.removeprefix("Bearer ") or str(arguments.pop("token", ""))
