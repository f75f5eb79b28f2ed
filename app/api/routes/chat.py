"""``/v1/chat``: talk about an incident; the reply as server-sent events, or as JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from app.api.context import SHORT_BYTES, ApiContext, Lang, Wait, context_of
from app.api.requests import JSON, answer_type, read_json
from app.api.responses import EVENTS, event, event_form, json_response
from app.api.schemas import ChatRequest, Transcript
from kb.chat.store import by_link
from kb.chat.types import Reply
from kb.errors import InputError, NotFoundError
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.chat.chat import Chat

NAMES = ("conversation", "statement", "question", "changes", "diagnosis", "better", "done")

router = APIRouter(tags=["chat"])

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Reply,
        "description": "Events, the last one `done` with the whole reply, before it `better` with "
        "what a language model adds where one is set; for `Accept: application/json` only the "
        "reply.",
        "content": {EVENTS: {"schema": event_form(*NAMES)}},
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
async def talk(request: Request, lang: Lang = None, wait: Wait = 0) -> Response:
    """Paste a log or ask about it: which rank, why, how sure, what to run, what to change.

    Without `conversation` a new one begins; its id comes first. `diagnosis` is the id of a kept
    diagnosis to talk about (``POST /v1/diagnose?keep=true``); with it `message` may be left out.
    The last event, `done`, has the whole reply.
    """
    context = context_of(request)
    form = answer_type(request, (EVENTS, JSON))
    body = await read_json(request, ChatRequest, limit=context.settings.max_body)
    language = body.lang or context.language(request, lang)
    chat = await context.run(lambda: _chat(request))
    reply = await context.run(
        lambda: _answer(context, chat, body, language), long=len(body.message) > SHORT_BYTES
    )
    headers = {"Vary": "Accept, Accept-Language", "Content-Language": reply.language}
    add = partial(chat.follow_up, reply.conversation)
    if form == JSON:
        if wait and context.service.second_reader is not None:
            addition = await context.wait_for_model(add, wait)
            reply = reply.with_addition(addition) if addition else reply
        return json_response(reply, headers=headers)
    headers["Cache-Control"] = "no-store"

    async def events() -> AsyncIterator[bytes]:
        whole = reply
        yield b"".join(_events(reply))
        if context.service.second_reader is not None:
            addition = await context.wait_for_model(add)
            if addition is not None:
                whole = reply.with_addition(addition)
                yield event("better", addition)
        yield event("done", whole)

    return StreamingResponse(events(), media_type=EVENTS, headers=headers)


def _chat(request: Request) -> Chat:
    """The one chat of the application, opened when it is first needed."""
    return cast("Chat", request.app.state.open_chat())


def _answer(context: ApiContext, chat: Chat, body: ChatRequest, language: Language | None) -> Reply:
    """The reply to the message, after that to the diagnosis brought along.

    Raises:
        InputError: there is nothing to answer.
        NotFoundError: the conversation or the diagnosis is not there.
    """
    conversation = by_link(body.conversation)
    has_message = bool(body.message.strip())
    if not (has_message or body.diagnosis):
        raise InputError(
            "the message is empty", todo="write a question or paste a log", reason="no_message"
        )
    if body.diagnosis:
        from kb.saved import load_diagnosis

        saved = load_diagnosis(context.service, body.diagnosis)
        reply = chat.begin(saved.reading, conversation=conversation, language=language)
        if not has_message:
            return reply
        conversation = reply.conversation
    return chat.say(body.message, conversation=conversation, language=language)


def _events(reply: Reply) -> Iterator[bytes]:
    """The reply piece by piece."""
    yield event("conversation", {"id": reply.conversation})
    for statement in reply.statements:
        yield event("statement", statement)
    if reply.question is not None:
        yield event("question", reply.question)
    if reply.changes:
        yield event("changes", reply.changes)
    if reply.diagnosis is not None:
        yield event("diagnosis", reply.diagnosis)


@router.get("/v1/chat/{identifier}", summary="A conversation so far", response_model=Transcript)
async def transcript(request: Request, identifier: str) -> Response:
    """What was asked and answered, oldest first; kept for `TIMEOUT_KB_CHAT_DAYS`."""
    conversation = await context_of(request).run(
        lambda: _chat(request).conversation(by_link(identifier))
    )
    return json_response(
        Transcript(
            id=conversation.id,
            language=conversation.language,
            created_s=conversation.created_s,
            turns=conversation.turns,
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
    if not await context_of(request).run(lambda: _chat(request).forget(by_link(identifier))):
        raise NotFoundError(
            f"there is no conversation {identifier[:100]!r}",
            todo="it may have expired",
            reason="no_conversation",
            values={"id": identifier[:100]},
        )
    return Response(status_code=204)
