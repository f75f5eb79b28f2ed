"""The chat engine: a message in, a reply out; the same for page, API, Slack and command line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kb.chat.conversations import Conversations
from kb.chat.message import Parts, take_apart, without_orders, without_sentences
from kb.chat.phrases import load_phrases
from kb.chat.turns import Answer, Spoken, Turns
from kb.chat.types import Conversation, Reply, Statement, Turn
from kb.chat.understanding import Understanding, spoken_language
from kb.errors import InputError, NotFoundError
from kb.logs.redact import redact
from kb.types import Language, LogReading

if TYPE_CHECKING:
    from kb.chat.model import LanguageModel
    from kb.service import Service

HEAD_CHARS = 400  # of a message, kept in its turn
REDACTED_CHARS = 4000  # read for that head: a secret does not reach across


class Chat:
    """Talks about incidents. Safe for use by several threads."""

    def __init__(
        self,
        service: Service,
        *,
        model: LanguageModel | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Talk with the knowledge of `service`.

        Args:
            service: diagnoses, searches, and keeps conversations.
            model: words the answers anew; without one the engine's own words stand.
            clock: seconds since the epoch.

        Raises:
            DataError: data/chat.yaml breaks its schema.
        """
        self._service = service
        self._model = model
        self._clock = clock
        phrases = load_phrases(service.settings.data, service.knowledge)
        self._understanding = Understanding(phrases, service.knowledge)
        self._turns = Turns(service, self._understanding)
        self._kept = Conversations(
            service.store.records,
            locks=service.settings.home / "locks",
            days=service.settings.chat_days,
            clock=clock,
        )

    def say(
        self,
        message: str,
        *,
        conversation: str = "",
        language: Language | None = None,
        create: bool = False,
    ) -> Reply:
        """Answer a message.

        Args:
            message: a question, a remark, a log, or a log with a remark.
            conversation: the id of one to go on with; empty begins one.
            language: of the answer; what the person asks for in words comes first.
            create: begin a conversation of that id where there is none.

        Raises:
            InputError: the message is empty, binary or too large.
            NotFoundError: the conversation is unknown or has expired.
        """
        items = self.stream(message, conversation=conversation, language=language, create=create)
        last = None
        for last in items:  # noqa: B007 - the reply is the last item
            pass
        if not isinstance(last, Reply):
            raise InputError("the message got no reply", todo="send it again")
        return last

    def stream(
        self,
        message: str,
        *,
        conversation: str = "",
        language: Language | None = None,
        create: bool = False,
    ) -> Iterator[Statement | Reply]:
        """Answer a message: its statements as they come, the whole reply last.

        The reply counts: where a model breaks off, it is the engine's. The engine's answer is kept
        before the first statement is out, so a reader who goes away loses nothing.

        Raises:
            InputError: the message is empty, binary or too large.
            NotFoundError: the conversation is unknown or has expired.
        """
        reply, asked = self._engine_reply(message, conversation, language, create=create)
        if self._model is None:
            yield from reply.statements
            yield reply
            return
        yield from self._reworded(reply, asked)

    def begin(
        self,
        reading: LogReading,
        *,
        conversation: str = "",
        language: Language | None = None,
        create: bool = False,
    ) -> Reply:
        """Open a conversation with an incident read elsewhere, or give one more evidence.

        Raises:
            NotFoundError: the conversation is unknown or has expired.
        """
        known = self._open(conversation, create=create)
        with self._kept.turn(known.id):
            known = self._fresh(known, conversation)
            told = spoken_language(reading.description, known.language)
            spoken: Language = language or known.language or told or self._service_language()
            answer = self._turns.begin(known, reading, spoken)
            return self._keep(answer, asked="")

    def conversation(self, identifier: str) -> Conversation:
        """The conversation of that id.

        Raises:
            NotFoundError: it is unknown or has expired.
        """
        return self._kept.load(identifier)

    def forget(self, identifier: str) -> bool:
        """Delete a conversation; whether it was there."""
        return self._kept.forget(identifier)

    # --- one turn --------------------------------------------------------------------------

    def _engine_reply(
        self, message: str, identifier: str, language: Language | None, *, create: bool
    ) -> tuple[Reply, str]:
        if not message.strip():
            raise InputError(
                "the message is empty", todo="write a question or paste a log", reason="no_message"
            )
        if len(message) > self._service.settings.max_body:
            raise InputError(
                f"the message has {len(message)} characters, "
                f"{self._service.settings.max_body} is the most",
                todo="upload the log as a file",
                reason="long_message",
                values={
                    "count": f"{len(message):,}",
                    "limit": f"{self._service.settings.max_body:,}",
                },
            )
        known = self._open(identifier, create=create)
        reading = self._service.read_text(message)
        asks = partial(self._understanding.asks, has_incident=known.reading is not None)
        parts = take_apart(message, reading, asks=asks)
        own, _ = redact(parts.own)
        if parts.pasted:
            reading = without_orders(reading, parts.own, self._understanding.is_order)
            reading = without_sentences(reading, self._understanding.suppositions(own))
        with self._kept.turn(known.id):
            known = self._fresh(known, identifier)
            spoken = Spoken(
                own=own,
                reading=reading,
                pasted=parts.pasted,
                language=self._language(parts, known, language),
            )
            answer = self._turns.answer(known, spoken)
            head, _ = redact(message[:REDACTED_CHARS])
            return self._keep(answer, asked=head[:HEAD_CHARS]), own

    def _language(self, parts: Parts, known: Conversation, wanted: Language | None) -> Language:
        """What to answer in: asked for in words, wanted by the face, spoken, or written.

        An order in a log does not choose: what leads up to a log counts only as a description.
        """
        if known.pinned and known.language:
            return known.language
        spoken = spoken_language(parts.own, known.language)
        if spoken is None and not any(map(self._understanding.is_order, parts.lead.splitlines())):
            spoken = spoken_language(parts.lead, known.language)
        return wanted or spoken or known.language or self._service_language()

    def _service_language(self) -> Language:
        return "zh" if self._service.settings.lang == "zh" else "en"

    def _open(self, identifier: str, *, create: bool) -> Conversation:
        return self._kept.load(identifier, create=create) if identifier else self._kept.new()

    def _fresh(self, known: Conversation, identifier: str) -> Conversation:
        """The conversation as it is now that this turn has it alone; one deleted since stays so.

        Raises:
            NotFoundError: it was deleted since.
        """
        return self._kept.load(identifier, create=not known.turns) if identifier else known

    def _keep(self, answer: Answer, *, asked: str) -> Reply:
        turn = Turn(asked=asked, reply=replace(answer.reply, diagnosis=None), at_s=self._clock())
        conversation = answer.conversation
        self._kept.save(replace(conversation, turns=(*conversation.turns, turn)))
        return answer.reply

    # --- a model's words -------------------------------------------------------------------

    def _reworded(self, reply: Reply, asked: str) -> Iterator[Statement | Reply]:
        """The reply in a model's words; in the engine's where it has none."""
        from kb.chat.grounding import reword
        from kb.chat.model import ModelError

        model: LanguageModel | None = self._model
        said: list[Statement] = []
        if model is not None:
            try:
                for statement in reword(model, asked, reply, reply.language):
                    said.append(statement)
                    yield statement
            except ModelError:  # half an answer is none: the reply, which counts, is the engine's
                if said:
                    yield reply
                    return
        if not said:
            yield from reply.statements
            yield reply
            return
        worded = replace(reply, statements=tuple(said), source="model")
        self._replace(worded)
        yield worded

    def _replace(self, reply: Reply) -> None:
        """Keep the model's words of a turn in place of the engine's."""
        with self._kept.turn(reply.conversation):
            try:
                known = self._kept.load(reply.conversation)
            except NotFoundError:  # forgotten while the model was speaking
                return
            turns = tuple(
                replace(turn, reply=replace(reply, diagnosis=None))
                if turn.reply.number == reply.number
                else turn
                for turn in known.turns
            )
            self._kept.save(replace(known, turns=turns))
