"""Errors as RFC 9457 problem JSON in the caller's language, each with the next step."""

from __future__ import annotations

import http
from collections.abc import Mapping

import msgspec
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.api.schemas import Problem
from app.render.errors import error_text
from kb.errors import KBError
from kb.knowledge.labels import Words
from kb.text.language import answer_language
from kb.text.redact import redact

PROBLEM_JSON = "application/problem+json"
TYPE_PREFIX = "urn:timeout-kb:problem:"
MAX_DETAIL = 500  # characters of what was wrong; more is the caller's own body read back

_REASONS = {404: "no_path", 405: "no_method"}  # of what the framework refuses by itself


class HttpError(KBError):
    """A failure of the exchange itself: too large, wrong type, too slow, not allowed."""

    def __init__(
        self,
        status: int,
        code: str,
        reason: str,
        *,
        headers: Mapping[str, str] | None = None,
        **values: str,
    ) -> None:
        """An answer with `status` and the problem type `code`; `reason` names its labels."""
        super().__init__(f"{reason} {values}", reason=reason, values=values)
        self.code = code
        self.http_status = status
        self.headers = dict(headers or {})


def problem_of(request: Request, error: KBError) -> Problem:
    """The problem an expected failure is, in the caller's language."""
    words = words_of(request)
    failure = error_text(error, words)
    status = http.HTTPStatus(error.http_status)
    title = f"title.{status.name.lower()}"
    return Problem(
        type=TYPE_PREFIX + error.code,
        title=words(title) if words.has(title) else status.phrase,
        status=status,
        detail=failure.what[:MAX_DETAIL],
        instance=redact(request.url.path)[0],
        todo=failure.todo,
        request_id=request.scope.get("request_id", ""),
    )


def words_of(request: Request) -> Words:
    """Those of the language asked for, by parameter, header or setting; else English."""
    context = request.app.state.context
    parameter = request.query_params.get("lang")
    language = context.language(request, parameter if parameter in ("zh", "en") else None)
    return Words(context.service.knowledge.labels, answer_language(language))


def respond(request: Request, error: KBError) -> Response:
    """An expected failure as a response."""
    own = error.headers if isinstance(error, HttpError) else {}
    return Response(
        msgspec.json.encode(problem_of(request, error)),
        status_code=error.http_status,
        media_type=PROBLEM_JSON,
        headers={
            "Content-Language": words_of(request).language,
            "Vary": "Accept-Language",
            **own,
        },
    )


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every expected failure of `app` as a problem (the others: `app.api.middleware`)."""

    async def expected(request: Request, error: Exception) -> Response:
        if not isinstance(error, KBError):  # only registered for KBError
            raise error
        if error.http_status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            structlog.get_logger("app.api").error("failure", detail=str(error), exc_info=error)
        return respond(request, error)

    async def protocol(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        status, detail = error.status_code, str(error.detail)
        headers = dict(error.headers or {})
        if status == http.HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = _allowed(app, request) or headers.get("Allow", "")
        code = http.HTTPStatus(status).phrase.lower().replace(" ", "-")
        reason = _REASONS.get(status, "bad_request")
        failure = HttpError(
            status, code, reason, headers=headers, method=request.method, why=detail
        )
        return respond(request, failure)

    async def invalid(request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        why = "; ".join(
            f"{'.'.join(str(place) for place in item['loc'])}: {item['msg']}"
            for item in error.errors()
        )
        return respond(request, HttpError(422, "invalid-parameter", "invalid_parameter", why=why))

    app.add_exception_handler(KBError, expected)
    app.add_exception_handler(HTTPException, protocol)
    app.add_exception_handler(RequestValidationError, invalid)


def _allowed(app: FastAPI, request: Request) -> str:
    """All methods of a path; the framework names only those of the first route it tried."""
    path = getattr(request.scope.get("route"), "path", "")
    methods = app.openapi().get("paths", {}).get(path, {})
    more = ["HEAD"] if "get" in methods else []
    return ", ".join(sorted([*more, *(method.upper() for method in methods)]))
