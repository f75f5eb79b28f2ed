"""Around every request: an id, a log line, numbers, safe headers. Plain ASGI, no body is held."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.auth import ADD
from app.api.problems import HttpError, respond
from app.server.browser_guard import SAFE_METHODS
from app.server.observability import Metrics, audit_log
from kb.text.redact import is_clean

REQUEST_ID = "X-Request-ID"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ENTRIES = "/v1/entries/"
NONE = "(none)"  # a path or a method that nobody serves
_ID = re.compile(r"[\w.-]{1,64}\Z", re.ASCII)


def _unexpected(request: Request, error: Exception) -> Response:
    """The answer to a bug: nothing of the inside but its type."""
    return respond(request, HttpError(500, "unexpected", "unexpected", kind=type(error).__name__))


async def refuse_foreign(
    scope: Scope, receive: Receive, send: Send, reason: str, foreign: str
) -> None:
    """Answer 403 to what a page of another site, or one by another name, sent."""
    error = HttpError(403, reason.replace("_", "-"), reason, foreign=foreign[:100], add=ADD)
    await respond(Request(scope), error)(scope, receive, send)


class Observe:
    """Gives each request an id (the caller's, where it is harmless) and records its answer."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._log = structlog.get_logger("app.api")
        self._changes = audit_log()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and record what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        caller_id = Headers(scope=scope).get(REQUEST_ID, "")
        harmless = _ID.match(caller_id) and is_clean(caller_id)
        scope = {
            **scope,
            "request_id": caller_id if harmless else uuid.uuid4().hex,
            # Answered as GET everywhere; the server sends the head of that answer alone.
            "method": "GET" if method == "HEAD" else method,
        }
        seen: dict[str, int] = {"status": 500, "received": 0, "sent": 0}

        async def counted_receive() -> Message:
            message = await receive()
            seen["received"] += len(message.get("body", b""))
            return message

        async def marked_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                seen["started"] = 1
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = scope["request_id"]
                headers["X-Content-Type-Options"] = "nosniff"
            seen["sent"] += len(message.get("body", b""))
            await send(message)

        started = time.perf_counter()
        self._metrics.running.inc()
        try:
            with structlog.contextvars.bound_contextvars(request_id=scope["request_id"]):
                await self._app(scope, counted_receive, marked_send)
        except Exception as error:
            self._metrics.failures.labels(type(error).__name__).inc()
            self._log.error("unexpected failure", request_id=scope["request_id"], exc_info=error)
            if "started" in seen:
                raise  # half an answer is out: the connection must break
            await _unexpected(Request(scope), error)(scope, receive, marked_send)
        finally:
            self._metrics.running.dec()
            self._record(scope, method, seen, time.perf_counter() - started)

    def _audit(self, scope: Scope, method: str, path: str, status: int) -> None:
        """Write down who changed what, or tried to: at every level of the log."""
        state = scope.get("state", {})
        writes = state.get("role") in ("write", "admin") or method == "DELETE"
        if method in SAFE_METHODS or not writes:
            return
        self._changes.info(
            "change",
            key=state.get("key_name", ""),
            method=method,
            path=path,
            # What is kept opens to whoever knows its id: only those of entries are told.
            entry=scope.get("path_params", {}).get("identifier", "") if ENTRIES in path else "",
            status=status,
            request_id=scope["request_id"],
        )

    def _record(self, scope: Scope, method: str, seen: dict[str, int], seconds: float) -> None:
        route: Any = scope.get("route")
        # The template, not the path: ids in it open what is kept to whoever reads them in a log.
        # Paths nobody serves count as one: callers must not be able to make new time series.
        path = getattr(route, "path", NONE)
        method = method if method in METHODS else NONE
        self._metrics.requests.labels(method, path, str(seen["status"])).inc()
        self._metrics.seconds.labels(path).observe(seconds)
        self._metrics.received.inc(seen["received"])
        self._audit(scope, method, path, seen["status"])
        self._log.info(
            "request",
            request_id=scope["request_id"],
            method=method,
            path=path,
            status=seen["status"],
            received=seen["received"],
            sent=seen["sent"],
            ms=round(seconds * 1000, 1),
        )
