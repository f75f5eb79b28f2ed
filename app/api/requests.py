"""What a request says: its body, whole or piece by piece, and what answer it wants."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, BinaryIO, TypeVar

import anyio
import anyio.from_thread
import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from app.api.problems import HttpError
from kb.types.vocabulary import Language

IDLE_S = 30.0  # a sender silent for longer is gone
STREAM_S = 900.0  # for all of a body: a gigabyte over ten megabits a second, no archive without end
GRACE_S = 10.0  # waited for a body in all before its rate is looked at: connections start slowly
LEAST_RATE = 16 * 1024  # bytes a second, of the time waited for them: a tenth of a megabit line
PIECE_BYTES = 256 * 1024  # handed to the worker at once; smaller ones cost a thread switch each
MAX_FILES = 2048  # parts of one upload: a large job's logs and dumps, one file a rank

JSON = "application/json"
MARKDOWN = "text/markdown"
TEXT = "text/plain"
SHORT = "text/plain; profile=short"
FORM = "multipart/form-data"
ANSWER_TYPES = (JSON, MARKDOWN, TEXT)
FILE_SCHEMA = {"type": "string", "format": "binary", "minLength": 1}

T = TypeVar("T")


# --- bodies ------------------------------------------------------------------------------------


def media_type(request: Request) -> str:
    """The body's media type without parameters, lower case; empty where none is given."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


LENGTH_DIGITS = 18  # of a body's declared length; a longer number is counted as it comes


def declared_length(request: Request) -> int | None:
    """What Content-Length says, or None for a body sent in chunks."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isdecimal() and len(text) <= LENGTH_DIGITS else None


def limited(request: Request, limit: int, reason: str = "body_too_large") -> Request:
    """The same request, whose body raises when it exceeds `limit` bytes or stops coming.

    `reason` is that of the error for a larger one.

    Raises:
        HttpError: 413 at once where Content-Length says so.
    """

    def check(size: int) -> None:
        if size > limit:
            raise HttpError(413, "too-large", reason, limit=f"{limit:,}")

    check(declared_length(request) or 0)
    pace = _Pace()

    async def receive() -> Message:
        try:
            with anyio.fail_after(IDLE_S), pace.waiting():
                message = await request.receive()
        except TimeoutError:
            raise _too_slow() from None
        pace.add(len(message.get("body", b"")))
        check(pace.received)
        return message

    return Request(request.scope, receive)


class _Pace:
    """How fast a body comes, by the time spent waiting for it; our own work does not count."""

    def __init__(self) -> None:
        self.received = 0
        self._waited_s = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._waited_s += time.monotonic() - started

    def add(self, size: int) -> None:
        """Count bytes.

        Raises:
            HttpError: 408, they come so slowly that their place is better given to another.
        """
        self.received += size
        if size and self._waited_s > GRACE_S and self.received < LEAST_RATE * self._waited_s:
            raise _too_slow()


async def read_json(
    request: Request, kind: type[T], *, limit: int, too_large: str = "body_too_large"
) -> T:
    """The JSON body as a checked `kind`.

    Raises:
        HttpError: 413 too large, 415 not JSON, 400 broken JSON, 422 not what `kind` asks for.
    """
    media = media_type(request)
    if media != JSON:
        raise unsupported(media, (JSON,))
    body = decoded_json(await limited(request, limit, too_large).body(), kind)
    set_language(request, getattr(body, "lang", None))
    return body


def decoded_json(data: bytes, kind: type[T]) -> T:
    """JSON as a checked `kind`.

    Raises:
        HttpError: 400 broken JSON, 422 not what `kind` asks for.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise invalid_body(why=str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(400, "broken-json", "broken_json", why=str(error)) from error


def body_of(name: str) -> dict[str, object]:
    """OpenAPI's description of a JSON body that is the schema called `name`."""
    return body_forms({JSON: {"$ref": f"#/components/schemas/{name}"}})


def body_forms(schemas: dict[str, Any]) -> dict[str, object]:
    """OpenAPI's description of a body by media type."""
    content = {media: {"schema": schema} for media, schema in schemas.items()}
    return {"requestBody": {"required": True, "content": content}}


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


def uploaded_files(fields: FormData, name: str) -> tuple[tuple[str, BinaryIO], ...]:
    """The file parts called `name`, as (file name, content).

    Raises:
        HttpError: 422, a part of that name is not a file.
    """
    values = fields.getlist(name)
    files = [value for value in values if isinstance(value, UploadFile)]
    if len(files) < len(values):
        raise invalid_body("no_file", field=name)
    return tuple((file.filename or "", file.file) for file in files)


def pieces(request: Request) -> Iterator[bytes]:
    """The body piece by piece, for a worker thread: each piece is fetched from the event loop.

    Memory stays at one piece whatever the body's size. Works only in a thread anyio started.

    Raises:
        HttpError: 408, the sender stopped; 400, it went away.
    """
    stream = request.stream()
    end = time.monotonic() + STREAM_S
    pace = _Pace()

    async def fetch() -> bytes:
        piece = bytearray()
        try:
            while len(piece) < PIECE_BYTES:
                with anyio.fail_after(min(IDLE_S, end - time.monotonic())), pace.waiting():
                    part = await anext(stream, None)
                if part is None:
                    break
                pace.add(len(part))
                piece += part
        except TimeoutError:
            raise _too_slow() from None
        except ClientDisconnect:
            raise HttpError(400, "cut-off", "cut_off") from None
        return bytes(piece)

    while piece := anyio.from_thread.run(fetch):
        yield piece


def invalid_body(reason: str = "invalid_body", **values: str) -> HttpError:
    """The error for a body that holds something else than it should."""
    return HttpError(422, "invalid-body", reason, headers=None, **values)


def unsupported(media: str, offered: Sequence[str]) -> HttpError:
    """The error for a body of a type nobody reads here."""
    return HttpError(
        415,
        "unsupported-media-type",
        "unsupported_type" if media else "no_type",
        headers={"Accept": ", ".join(offered)},
        media=media[:100],
        offered=", ".join(offered),
    )


def _too_slow() -> HttpError:
    return HttpError(
        408,
        "too-slow",
        "too_slow",
        idle=f"{IDLE_S:.0f}",
        whole=f"{STREAM_S:.0f}",
        rate=f"{LEAST_RATE // 1024}",
    )


# --- the answer wanted (RFC 9110 §12) ----------------------------------------------------------


def set_language(request: Request, language: Language | None) -> None:
    """Answer `request`, or what comes next of it, in the language its body asks for, errors too."""
    request.state.lang = language


def answer_type(request: Request, offered: Sequence[str] = ANSWER_TYPES) -> str:
    """The offered media type the caller likes best; the first one where all are the same to it.

    Raises:
        HttpError: 406, none of them is acceptable.
    """
    accept = request.headers.get("accept", "")
    if not accept.strip():
        return offered[0]
    weighted = _weighted(accept)
    refused = {value for weight, value in weighted if weight <= 0}
    for weight, value in weighted:
        for media in offered:
            kind = media.split("/")[0]
            if weight > 0 and media not in refused and value in (media, f"{kind}/*", "*/*"):
                return media
    raise HttpError(
        406, "not-acceptable", "not_acceptable", accept=accept[:100], offered=", ".join(offered)
    )


def accepted_language(request: Request) -> Language | None:
    """The language of Accept-Language, None where it asks for neither of ours."""
    languages: dict[str, Language] = {"zh": "zh", "en": "en"}
    for weight, value in _weighted(request.headers.get("accept-language", "")):
        primary = value.split("-")[0]
        if weight > 0 and primary in languages:
            return languages[primary]
    return None


def _weighted(header: str) -> list[tuple[float, str]]:
    """The values of a header with their weights, heaviest first, order kept among equals."""
    values = []
    for part in header.split(","):
        value, *parameters = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            name, _, number = parameter.partition("=")
            if name.strip().lower() == "q":
                try:
                    weight = float(number)
                except ValueError:
                    weight = 0.0
        if value:
            values.append((weight, value.lower()))
    return sorted(values, key=lambda pair: -pair[0])
