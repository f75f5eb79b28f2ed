"""The addresses beside the Web API: the file host, response URLs, and a host to stay away from."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.app.slack.fake.limits import problems
from tests.app.slack.fake.methods import SlackError, check_message
from tests.app.slack.fake.workspace import Channel, Message, StoredFile, Workspace, new_ts

RESPONSE_USES = 5
RESPONSE_S = 30 * 60
SLOW_LOOK_S = 0.05  # between two looks whether a slow file may go on
LOGIN_PAGE = "<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in</body></html>"
# What a host says instead of a file; a busy one serves it the next time.
REFUSALS = {
    "busy": (429, "too many requests"),
    "gone": (404, "file deleted"),
    "forbidden": (403, "forbidden"),
}
MOST_UPLOAD = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request some host got."""

    path: str
    authorization: str


@dataclass(kw_only=True)
class ResponseUrl:
    """Where an app may answer an interaction: five times within thirty minutes."""

    workspace: Workspace
    channel: Channel
    user: str
    made_s: float = field(default_factory=time.monotonic)
    uses: int = 0


@dataclass(kw_only=True)
class FileHost:
    """Serves files to whoever shows the right token; takes uploads."""

    backend: Any
    seen: list[Seen] = field(default_factory=list)

    async def download(self, request: web.Request) -> web.StreamResponse:
        """Serve one file as its behaviour says."""
        authorization = request.headers.get("Authorization", "")
        self.seen.append(Seen(path=request.path, authorization=authorization))
        file, workspace = self._find(request.match_info["id"])
        if file is None or workspace is None:
            return web.Response(status=404, text="not found")
        allowed = authorization == f"Bearer {workspace.bot_token}"
        if not allowed or "files:read" not in self.backend.manifest.scopes:
            return web.Response(text=LOGIN_PAGE, content_type="text/html")
        if file.behaviour == "login":
            return web.Response(text=LOGIN_PAGE, content_type="text/html")
        if file.behaviour in REFUSALS:
            refusal = REFUSALS[file.behaviour]
            file.behaviour = "ok" if refusal[0] == 429 else file.behaviour
            return web.Response(status=refusal[0], text=refusal[1], headers={"Retry-After": "1"})
        if file.behaviour == "redirect":
            return web.Response(status=302, headers={"Location": file.redirect})
        if file.behaviour == "slow":
            return await self._drip(request, file)
        response = web.StreamResponse(headers={"Content-Type": file.mimetype})
        if file.declared_size is None:
            response.content_length = len(file.body)
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(file.body), 1 << 16):
                await response.write(file.body[start : start + (1 << 16)])
            await response.write_eof()
        return response

    async def _drip(self, request: web.Request, file: StoredFile) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": file.mimetype})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            await response.write(file.body[:1])
            while not file.released:
                await asyncio.sleep(SLOW_LOOK_S)
            await response.write(file.body[1:])
            await response.write_eof()
        return response

    async def upload(self, request: web.Request) -> web.StreamResponse:
        """Take the body of a file announced by `files.getUploadURLExternal`."""
        for workspace in self.backend.workspaces.values():
            file = workspace.files.get(request.match_info["id"])
            if file is not None:
                if request.content_type == "multipart/form-data":
                    form = await request.post()
                    part = next(iter(form.values()))
                    file.body = part.file.read() if isinstance(part, web.FileField) else b""
                else:
                    file.body = await request.read()
                return web.Response(text=f"OK - {len(file.body)}")
        return web.Response(status=404, text="not found")

    def _find(self, name: str) -> tuple[StoredFile | None, Workspace | None]:
        team, _, file_id = name.partition("-")
        workspace = self.backend.workspaces.get(team)
        return (workspace.files.get(file_id) if workspace else None), workspace


@dataclass(kw_only=True)
class Elsewhere:
    """A host of somebody else: whoever asks it is noted."""

    seen: list[Seen] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Note the request."""
        authorization = request.headers.get("Authorization", "")
        self.seen.append(Seen(path=request.path, authorization=authorization))
        return web.Response(text="[rank0]: Watchdog caught collective operation timeout")


@dataclass(kw_only=True)
class ResponseUrls:
    """Takes what apps post to the `response_url` of commands and clicks."""

    backend: Any
    open: dict[str, ResponseUrl] = field(default_factory=dict)
    payloads: list[dict[str, Any]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Post, replace or delete as the app says."""
        address = self.open.get(request.match_info["id"])
        if address is None or time.monotonic() - address.made_s > RESPONSE_S:
            return _refused("expired_url", 404)
        if address.uses >= RESPONSE_USES:
            return _refused("used_url", 404)
        payload = await request.json()
        address.uses += 1
        self.payloads.append(payload)
        try:
            self.take(address, payload, via="response_url")
        except SlackError as error:
            return _refused(error.code, 400)
        return web.Response(text="ok")

    def of(self, address: str) -> ResponseUrl | None:
        """What is kept for an address."""
        return self.open.get(address.rpartition("/")[2])

    def take(self, address: ResponseUrl, payload: dict[str, Any], *, via: str) -> None:
        """Show an app's answer to a command or click to the person alone."""
        self.backend.problems += [f"{via}: {item}" for item in problems(payload)]
        check_message(payload)
        message = Message(
            ts=new_ts(),
            channel=address.channel.id,
            user=address.workspace.bot_user,
            bot_id=address.workspace.bot_id,
            text=str(payload.get("text") or ""),
            blocks=payload.get("blocks") or [],
            ephemeral_for=address.user,
            via=via,
        )
        address.channel.messages.append(message)


def _refused(code: str, status: int) -> web.Response:
    return web.json_response({"ok": False, "error": code}, status=status)
