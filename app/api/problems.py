"""Errors as RFC 9457 problem JSON, every one with the next step for the caller."""

from __future__ import annotations

import http
import math
from collections.abc import Mapping

import msgspec
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.failure import told
from app.labels import Words
from app.quoting import plain
from app.schemas import Problem
from kb.errors import KBError

PROBLEM_JSON = "application/problem+json"
TYPE_PREFIX = "urn:timeout-kb:problem:"
MAX_DETAIL = 500  # characters of what was wrong; more is the caller's own body read back

_TODO = {
    400: "see /docs for what this path takes",
    404: "see /docs for the paths there are",
    405: "see /docs for the methods this path takes",
}


class HttpError(KBError):
    """A failure of the exchange itself: too large, wrong type, too slow, not allowed."""

    def __init__(
        self,
        status: int,
        code: str,
        what: str,
        *,
        todo: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what, todo=todo)
        self.code = code
        self.http_status = status
        self.headers = dict(headers or {})


def problem(request: Request, *, status: int, code: str, detail: str, todo: str = "") -> Problem:
    """The problem of this request."""
    return Problem(
        type=TYPE_PREFIX + code,
        title=http.HTTPStatus(status).phrase,
        status=status,
        detail=plain(detail)[:MAX_DETAIL],
        instance=request.url.path,
        todo=plain(todo),
        request_id=request.scope.get("request_id", ""),
    )


def problem_of(request: Request, error: KBError) -> Problem:
    """The problem an expected failure is, in the caller's language where there are words for it."""
    parts = request.app.state.parts
    asked = request.query_params.get("lang")
    language = parts.language(request, asked if asked in ("zh", "en") else None)
    failure = told(error, Words(parts.service.knowledge.labels, language or "en"))
    return problem(
        request,
        status=error.http_status,
        code=error.code,
        detail=failure.what,
        todo=failure.todo,
    )


def respond(found: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as a response."""
    return Response(
        msgspec.json.encode(found),
        status_code=found.status,
        media_type=PROBLEM_JSON,
        headers=dict(headers or {}),
    )


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every expected failure of `app` as a problem (the others: `app.api.middleware`)."""

    async def expected(request: Request, error: Exception) -> Response:
        if not isinstance(error, KBError):  # only registered for KBError
            raise error
        headers = error.headers if isinstance(error, HttpError) else None
        found = problem_of(request, error)
        if found.status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            structlog.get_logger("app.api").error("failure", detail=str(error), exc_info=error)
        return respond(found, headers)

    async def protocol(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        status = error.status_code
        code = http.HTTPStatus(status).phrase.lower().replace(" ", "-")
        found = problem(
            request, status=status, code=code, detail=str(error.detail), todo=_TODO.get(status, "")
        )
        headers = dict(error.headers or {})
        if status == http.HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = _allowed(app, request) or headers.get("Allow", "")
        return respond(found, headers)

    async def invalid(request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        parts = [
            f"{'.'.join(str(place) for place in item['loc'])}: {item['msg']}"
            for item in error.errors()
        ]
        found = problem(
            request,
            status=422,
            code="invalid-parameter",
            detail="; ".join(parts),
            todo="see /docs for what this path takes",
        )
        return respond(found)

    app.add_exception_handler(KBError, expected)
    app.add_exception_handler(HTTPException, protocol)
    app.add_exception_handler(RequestValidationError, invalid)


def _allowed(app: FastAPI, request: Request) -> str:
    """All methods of a path; the framework names only those of the first route it tried."""
    path = getattr(request.scope.get("route"), "path", "")
    methods = app.openapi().get("paths", {}).get(path, {})
    more = ["HEAD"] if "get" in methods else []
    return ", ".join(sorted([*more, *(method.upper() for method in methods)]))


def retry_after(seconds: float) -> dict[str, str]:
    """The header that says when to come back."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
