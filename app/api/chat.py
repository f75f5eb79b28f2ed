"""``/v1/chat``: talk about an incident; the reply as server-sent events, or as JSON at once."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import structlog
from fastapi import APIRouter, Request, Response

from app.api.bodies import read_json
from app.api.events import EVENTS, EventStream, Gone, collect, event
from app.api.negotiate import JSON, answer_type
from app.api.parts import Lang, Parts, json_response, parts_of
from app.api.problems import problem_of
from app.schemas import ChatRequest, Transcript
from kb.chat.conversations import by_link
from kb.chat.types import Reply, Statement
from kb.errors import InputError, KBError, NotFoundError
from kb.types import Language

if TYPE_CHECKING:
    from kb.chat.chat import Chat

TALKS = 8  # chats that wait for a language model at once; without one they are quick
ID_BYTES = 16  # 128 random bits: nobody guesses another's conversation
WENT_AWAY = 499  # what web servers log for a caller that hung up; nobody reads it

NAMES = ("conversation", "statement", "question", "changes", "diagnosis", "error", "done")

router = APIRouter(tags=["chat"])


@dataclass(slots=True)
class Room:
    """The one chat of an application, opened when it is first needed."""

    open_chat: Callable[[], Chat]
    limiter: anyio.CapacityLimiter
    _chat: Chat | None = None
    _opening: threading.Lock = field(default_factory=threading.Lock)

    @property
    def chat(self) -> Chat:
        """The chat."""
        with self._opening:
            if self._chat is None:
                self._chat = self.open_chat()
            return self._chat


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """A message on its way into a conversation that is there, or will be."""

    chat: Chat
    conversation: str
    new: bool  # it is not there yet
    message: str
    language: Language | None
    begun: Reply | None  # the reply to the diagnosis brought along

    def items(self) -> Iterator[Statement | Reply]:
        """Statements as they come, the reply last."""
        if self.begun is not None and not self.message:
            yield from self.begun.statements
            yield self.begun
            return
        yield from self.chat.stream(
            self.message, conversation=self.conversation, language=self.language, create=self.new
        )


# The schema of one event of the stream; `data` is the JSON of what the event is called.
_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string", "enum": list(NAMES)},
        "data": {"type": "string", "contentMediaType": JSON},
    },
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Reply,
        "description": "Events, the last one `done` with the whole reply (or `error` with a "
        "problem); for `Accept: application/json` only the reply.",
        "content": {EVENTS: {"schema": _EVENT}},
    }
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/ChatRequest"}}},
    }
}


@router.post(
    "/v1/chat",
    summary="Talk about an incident",
    responses=_ANSWERS,
    openapi_extra=_BODY,
    response_class=Response,
)
async def talk(request: Request, lang: Lang = None) -> Response:
    """Paste a log or ask about it: which rank, why, how sure, what to run, what to change.

    Without `conversation` a new one begins; its id comes first. `diagnosis` is the id of a kept
    diagnosis to talk about (``POST /v1/diagnose?keep=true``); with it `message` may be left out.
    Statements come as they are found; what counts is the whole reply in the last event, `done`.
    """
    parts = parts_of(request)
    form = answer_type(request.headers.get("accept", ""), (EVENTS, JSON))
    body = await read_json(request, ChatRequest, limit=parts.settings.max_body)
    language = body.lang or parts.language(request, lang)
    room: Room = request.app.state.room
    turn = await parts.run(lambda: _prepare(parts, room, body, language))
    if form == EVENTS:
        return EventStream(
            lambda: _events(turn), room.limiter, lambda error: _failed(request, error)
        )
    try:
        items = await collect(turn.items, request.receive, room.limiter)
    except Gone:
        return Response(status_code=WENT_AWAY)
    reply = items[-1]
    headers = {"Vary": "Accept, Accept-Language"}
    if isinstance(reply, Reply):
        headers["Content-Language"] = reply.language
    return json_response(reply, headers=headers)


def _prepare(parts: Parts, room: Room, body: ChatRequest, language: Language | None) -> _Turn:
    """Everything that can be wrong with a request, before the first byte of the answer.

    Raises:
        InputError: there is nothing to answer.
        NotFoundError: the conversation or the diagnosis is not there.
    """
    chat, begun = room.chat, None
    identifier = body.conversation
    if not (body.message.strip() or body.diagnosis):
        raise InputError(
            "the message is empty", todo="write a question or paste a log", reason="no_message"
        )
    if identifier:
        chat.conversation(by_link(identifier))
    if body.diagnosis:
        from kb.kept import kept

        found = kept(parts.service, body.diagnosis)
        begun = chat.begin(found.reading, conversation=identifier, language=language)
        identifier = begun.conversation
    return _Turn(
        chat=chat,
        conversation=identifier or secrets.token_urlsafe(ID_BYTES),
        new=not identifier,
        message=body.message if body.message.strip() else "",
        language=language,
        begun=begun,
    )


def _events(turn: _Turn) -> Iterator[bytes]:
    """The turn as events; what fails before the first statement has said nothing yet."""
    items = turn.items()
    try:
        for place, item in enumerate(items):
            if place == 0:
                yield _event("conversation", {"id": turn.conversation})
            if isinstance(item, Statement):
                yield _event("statement", item)
            else:
                yield from _last_events(item)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _failed(request: Request, error: KBError) -> bytes:
    """A failure amid the answer, as an event."""
    structlog.get_logger("app.api").warning("chat failed", detail=str(error))
    return _event("error", problem_of(request, error))


def _last_events(reply: Reply) -> Iterator[bytes]:
    """What belongs to the whole reply, and the reply itself."""
    if reply.question is not None:
        yield _event("question", reply.question)
    if reply.changes:
        yield _event("changes", reply.changes)
    if reply.diagnosis is not None:
        yield _event("diagnosis", reply.diagnosis)
    yield _event("done", reply)


def _event(name: str, value: object) -> bytes:
    return event(name, msgspec.json.encode(value))


@router.get("/v1/chat/{identifier}", summary="A conversation so far", response_model=Transcript)
async def transcript(request: Request, identifier: str) -> Response:
    """What was asked and answered, oldest first; kept for `TIMEOUT_KB_CHAT_DAYS`."""
    parts = parts_of(request)
    room: Room = request.app.state.room
    found = await parts.run(lambda: room.chat.conversation(by_link(identifier)))
    return json_response(
        Transcript(
            id=found.id, language=found.language, created_s=found.created_s, turns=found.turns
        ),
        headers={"Cache-Control": "no-store"},
    )


@router.delete(
    "/v1/chat/{identifier}",
    summary="Forget a conversation",
    status_code=204,
    response_class=Response,
)
async def forget(request: Request, identifier: str) -> Response:
    """Delete all that is kept of a conversation."""
    parts = parts_of(request)
    room: Room = request.app.state.room
    if not await parts.run(lambda: room.chat.forget(by_link(identifier))):
        raise NotFoundError(
            f"there is no conversation {identifier[:100]!r}",
            todo="it may have expired",
            reason="no_conversation",
            values={"id": identifier[:100]},
        )
    return Response(status_code=204)
