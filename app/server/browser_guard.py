"""What a browser may do here: pages of other sites neither read nor write, nothing is framed.

Whoever runs a server without keys opens other sites in the same browser. A page of theirs can send
requests to this machine, and by a name that leads here (DNS rebinding) read the answers, too.
https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.address import is_loopback

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({"", "same-origin", "none"})  # of Sec-Fetch-Site; tools send none
HTML = "text/html"
# Of an answer that is no page: it asks for nothing and stands in no frame.
NO_PAGE = "default-src 'none'; frame-ancestors 'none'"
_SCRIPT = re.compile(rb"<script(?![^>]{0,500}\ssrc=)[^>]{0,500}>(.*?)</script>", re.DOTALL)

Refuse = Callable[[Scope, Receive, Send, str, str], Awaitable[None]]


class BrowserGuard:
    """Refuses what pages of other sites send, and tells browsers what ours may do."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        guards: Callable[[], bool],
        refuse: Refuse,
        public_url: str = "",
        policy: str,
        signed_paths: frozenset[str] = frozenset(),
    ) -> None:
        """Stand before `app`.

        Args:
            app: what answers.
            guards: whether who asks is not known by a key or a login; asked at each request.
            refuse: answers 403 for a reason ("foreign_host", "foreign_page") and what was foreign.
            public_url: where a proxy serves it; its host is none of a stranger.
            policy: Content-Security-Policy of pages, to which their own scripts are added.
            signed_paths: those whose requests prove themselves where they come from.
        """
        self._app = app
        self._guards = guards
        self._refuse = refuse
        self._public = urlsplit(public_url).netloc.lower()
        self._policy = policy
        self._signed_paths = signed_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        page = _Page(send, self._policy, encrypted=scope["scheme"] == "https")
        if scope["path"] not in self._signed_paths and self._guards():
            reason, foreign = self._foreign(scope)
            if reason and scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            if reason:
                await self._refuse(scope, receive, page, reason, foreign)
                return
        await self._app(scope, receive, page if scope["type"] == "http" else send)

    def _foreign(self, scope: Scope) -> tuple[str, str]:
        """Why the request is refused, and the host or page; both empty for one of our own."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if not self._is_own(host):
            return "foreign_host", host
        if scope["type"] == "http" and scope["method"] in SAFE_METHODS:
            return "", ""
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() not in {host, self._public} - {
            ""
        }:
            return "foreign_page", origin
        if headers.get("sec-fetch-site", "").lower() not in OWN_SITES:
            return "foreign_page", origin or headers.get("referer", "")
        return "", ""

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:  # brackets that do not close
            return False
        return is_loopback(name) or (bool(self._public) and host == self._public)


class _Page:
    """Sends an answer with the headers that browsers keep to.

    A page is held back until it is whole: its inline scripts are allowed by their digests.
    """

    def __init__(self, send: Send, policy: str, *, encrypted: bool) -> None:
        self._send = send
        self._policy = policy
        self._encrypted = encrypted
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """Send a message on, that of a page's start with the first of its body."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Frame-Options"] = "DENY"
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "no-referrer"
            if self._encrypted:
                headers["Strict-Transport-Security"] = "max-age=31536000"
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
            kind = headers.get("content-type", "")
            if kind.startswith(HTML):
                self._start = message
                return
            if kind:  # a 304 keeps the policy of what it stands for
                headers["Content-Security-Policy"] = NO_PAGE
        if self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        start, self._start = self._start, None
        headers = MutableHeaders(scope=start)
        packed = headers.get("content-encoding") == "gzip"
        scripts = script_digests(gzip.decompress(self._body) if packed else self._body)
        headers["Content-Security-Policy"] = self._policy.replace(
            "script-src 'self'", " ".join(["script-src 'self'", *scripts])
        )
        await self._send(start)
        await self._send({**message, "body": self._body})


def script_digests(page: bytes) -> list[str]:
    """The inline scripts of a page, as a policy names them."""
    digests = (hashlib.sha256(script).digest() for script in _SCRIPT.findall(page))
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
