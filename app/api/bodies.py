"""Reading request bodies: whole and limited, or piece by piece from a worker thread."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import msgspec
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from app.api.problems import SEE, HttpError
from kb.types import Language

IDLE_S = 30.0  # a sender silent for longer is gone
STREAM_S = 900.0  # for all of a body: a gigabyte over ten megabits a second, no archive without end
PIECE_BYTES = 256 * 1024  # handed to the worker at once; smaller ones cost a thread switch each
MAX_FILES = 2048  # parts of one upload: a large job's logs and dumps, one file a rank

T = TypeVar("T")


def media_type(request: Request) -> str:
    """The body's media type without parameters, lower case; empty where none is given."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def declared_length(request: Request) -> int | None:
    """What Content-Length says, or None for a body sent in chunks."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isdigit() else None


def too_large(limit: int, reason: str = "body_too_large") -> HttpError:
    """The error for a body above `limit` bytes; what to do instead stands under its reason."""
    what = f"the body is larger than {limit} bytes"
    return HttpError(413, "too-large", what, reason=reason, values={"limit": f"{limit:,}"})


def _too_slow() -> HttpError:
    return HttpError(
        408,
        "too-slow",
        f"nothing arrived for {IDLE_S:.0f} seconds, or not all of it within {STREAM_S:.0f}",
        todo="send the body without long pauses, compressed where the line is slow",
        reason="too_slow",
        values={"idle": f"{IDLE_S:.0f}", "whole": f"{STREAM_S:.0f}"},
    )


def limited(request: Request, limit: int, reason: str = "body_too_large") -> Request:
    """The same request, whose body raises when it exceeds `limit` bytes or stops coming.

    `reason` is that of the error for a larger one.

    Raises:
        HttpError: 413 at once where Content-Length says so.
    """
    length = declared_length(request)
    if length is not None and length > limit:
        raise too_large(limit, reason)
    received = 0

    async def receive() -> Message:
        nonlocal received
        try:
            with anyio.fail_after(IDLE_S):
                message = await request.receive()
        except TimeoutError:
            raise _too_slow() from None
        received += len(message.get("body", b""))
        if received > limit:
            raise too_large(limit, reason)
        return message

    return Request(request.scope, receive)


async def read_json(
    request: Request, kind: type[T], *, limit: int, too_large: str = "body_too_large"
) -> T:
    """The JSON body as a checked `kind`.

    Raises:
        HttpError: 413 too large, 415 not JSON, 400 broken JSON, 422 not what `kind` asks for.
    """
    media = media_type(request)
    if media != "application/json":
        raise unsupported(media, ("application/json",))
    body = decoded_json(await limited(request, limit, too_large).body(), kind)
    speak(request, getattr(body, "lang", None))
    return body


def speak(request: Request, language: Language | None) -> None:
    """Answer `request`, or what comes next of it, in the language its body asks for, errors too."""
    request.state.lang = language


def decoded_json(data: bytes, kind: type[T]) -> T:
    """JSON as a checked `kind`.

    Raises:
        HttpError: 400 broken JSON, 422 not what `kind` asks for.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise invalid_body(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(
            400,
            "broken-json",
            f"the body is not JSON: {error}",
            todo="send UTF-8 JSON",
            reason="broken_json",
            values={"why": str(error)},
        ) from error


def invalid_body(
    what: str, *, todo: str = SEE, reason: str = "invalid_body", **values: str
) -> HttpError:
    """The error for a body that holds something else than it should."""
    return HttpError(
        422, "invalid-body", what, todo=todo, reason=reason, values={"why": what, **values}
    )


@asynccontextmanager
async def read_form(request: Request, *, limit: int) -> AsyncIterator[FormData]:
    """The fields and files of a multipart body; larger files lie on disk until the end.

    Raises:
        HttpError: 413 or 408; a broken body gives starlette's own 400.
    """
    form: Any = limited(request, limit).form(
        max_files=MAX_FILES, max_fields=MAX_FILES, max_part_size=limit
    )
    async with form as fields:
        yield fields


def unsupported(media: str, offered: tuple[str, ...]) -> HttpError:
    """The error for a body of a type nobody reads here."""
    return HttpError(
        415,
        "unsupported-media-type",
        f"cannot read a body of type {media[:100] or '(none)'!r}",
        todo=f"send one of: {', '.join(offered)}",
        reason="unsupported_type" if media else "no_type",
        values={"media": media[:100], "offered": ", ".join(offered)},
        headers={"Accept": ", ".join(offered)},
    )


def pieces(request: Request) -> Iterator[bytes]:
    """The body piece by piece, for a worker thread: each piece is fetched from the event loop.

    Memory stays at one piece whatever the body's size. Works only in a thread anyio started.

    Raises:
        HttpError: 408, the sender stopped; 400, it went away.
    """
    stream = request.stream()
    end = time.monotonic() + STREAM_S

    async def fetch() -> bytes:
        piece = bytearray()
        try:
            while len(piece) < PIECE_BYTES:
                with anyio.fail_after(min(IDLE_S, end - time.monotonic())):
                    part = await anext(stream, None)
                if part is None:
                    break
                piece += part
        except TimeoutError:
            raise _too_slow() from None
        except ClientDisconnect:
            raise HttpError(
                400, "cut-off", "the sender went away", todo="send again", reason="cut_off"
            ) from None
        return bytes(piece)

    while piece := anyio.from_thread.run(fetch):
        yield piece
