"""What every route works with: the service, the settings, the threads that compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import anyio
import anyio.to_thread
import msgspec
from fastapi import Depends, Query, Request, Response
from fastapi.dependencies.models import Dependant

from app.api.answers import Answers
from app.api.negotiate import JSON, accepted_language
from app.api.problems import HttpError, retry_after
from app.heap import give_back
from app.observe import Metrics
from kb.settings import Settings
from kb.types import Language

if TYPE_CHECKING:
    from kb.service import Service

STREAMS = 4  # long uploads at once; they wait for the network most of the time
MAX_WAITING = 256  # requests waiting for a thread; at 10 ms each that is seconds, enough

T = TypeVar("T")

Lang = Annotated[
    Language | None,
    Query(description="Language of the answer. Default: Accept-Language, else the input's."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of one application, made once in its factory."""

    service: Service
    settings: Settings
    metrics: Metrics
    compute: anyio.CapacityLimiter
    streams: anyio.CapacityLimiter
    answers: Answers

    async def run(self, work: Callable[[], T], *, long: bool = False) -> T:
        """Do `work` in a thread: a `long` one beside the short ones, so that they need not wait.

        Raises:
            HttpError: 503 where too many requests wait already.
        """
        limiter = self.streams if long else self.compute
        if limiter.statistics().tasks_waiting >= MAX_WAITING:
            raise HttpError(
                503,
                "busy",
                f"{MAX_WAITING} requests are waiting already",
                todo="try again in a few seconds",
                reason="busy",
                values={"count": str(MAX_WAITING)},
                headers=retry_after(1),
            )
        job = partial(_tidied, work) if long else work
        return await anyio.to_thread.run_sync(job, limiter=limiter)

    def language(self, request: Request, asked: Language | None) -> Language | None:
        """The language asked for by parameter, body, header or setting; None: the input's own."""
        asked = asked or getattr(request.state, "lang", None)
        if asked is not None:
            return asked
        accepted = accepted_language(request.headers.get("accept-language", ""))
        return accepted or cast("Language | None", self.settings.lang or None)


def _tidied(work: Callable[[], T]) -> T:
    """Do `work`, then give its memory back: in its thread, while others are answered."""
    try:
        return work()
    finally:
        give_back()


def _query_names(dependant: Dependant) -> set[str]:
    """The names a path and what it depends on read from the address."""
    own = {field.alias for field in dependant.query_params}
    return own.union(*map(_query_names, dependant.dependencies))


async def _known_parameters(request: Request) -> None:
    """Refuse parameters the path does not take: a misspelt filter must not pass for none.

    Raises:
        HttpError: 422.
    """
    taken = _query_names(request.scope["route"].dependant)
    unknown = sorted(set(request.query_params) - taken)
    if unknown:
        names, known = ", ".join(unknown), ", ".join(sorted(taken))
        raise HttpError(
            422,
            "invalid-parameter",
            f"unknown parameters: {names}",
            todo=f"this path takes: {known}" if known else "leave them out",
            reason="unknown_parameters" if known else "no_parameters",
            values={"names": names, "known": known},
        )


known_parameters = Depends(_known_parameters)


def next_page(request: Request, offset: int | None) -> dict[str, str]:
    """The header that leads from one page of a list to the next; none on the last one."""
    if offset is None:
        return {}
    url = request.url.include_query_params(offset=offset)
    return {"Link": f'<{url.path}?{url.query}>; rel="next"'}


def parts_of(request: Request) -> Parts:
    """The parts of the application that answers `request`."""
    return cast("Parts", request.app.state.parts)


def json_response(value: object, *, headers: dict[str, str] | None = None) -> Response:
    """`value` as JSON in the order of its fields."""
    return Response(msgspec.json.encode(value), media_type=JSON, headers=headers)


def cached(request: Request, value: Callable[[], object], *, tag: str) -> Response:
    """`value` as JSON with an ETag, or 304 where the caller has this version."""
    etag = f'"{tag[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if has_version(request, etag):
        return Response(status_code=304, headers=headers)
    return json_response(value(), headers=headers)


def has_version(request: Request, etag: str) -> bool:
    """Whether the caller says (If-None-Match) that it has the version of that tag."""
    header = request.headers.get("if-none-match", "")
    known = {part.strip().removeprefix("W/") for part in header.split(",")}
    return etag in known or "*" in known
