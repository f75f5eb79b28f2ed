"""The chat engine: a message in, a reply out; the same for page, API, Slack and command line."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kb.chat import acts, check_answers
from kb.chat.acts import ACTS, PROGRESSES, ActReader, ProgressReader
from kb.chat.assessment import verdict_of
from kb.chat.check_answers import CheckAnswerReader
from kb.chat.checks import open_question
from kb.chat.dialogue import Dialogue
from kb.chat.field_questions import FieldQuestions
from kb.chat.follow_up import follow_up
from kb.chat.intents import IntentReader
from kb.chat.model_reading import MessageModel
from kb.chat.paste import Paste, split, without_orders, without_sentences
from kb.chat.phrases import load_phrases
from kb.chat.replies import ReplyReader
from kb.chat.sentence_acts import SentenceReader
from kb.chat.sentences import message_language
from kb.chat.store import ConversationStore
from kb.chat.types import Conversation, Question, Reply, Turn
from kb.diagnose.linear_model import load_model
from kb.diagnose.text_scorer import TextScorer
from kb.embed import embedded_model
from kb.errors import InputError
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge
from kb.text.language import answer_language
from kb.text.redact import redact
from kb.text.tokenizer import default_tokenizer
from kb.types.incident import LogReading
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.diagnose.verdict import Verdict
    from kb.service import Service

HEAD_CHARS = 400  # of a message, stored in its turn
REDACTED_CHARS = 4000  # read for that head: a secret does not reach across


class Chat:
    """Talks about incidents. Safe for use by several threads."""

    def __init__(self, service: Service, *, clock: Callable[[], float] = time.time) -> None:
        """Talk with the knowledge of `service`.

        Args:
            service: diagnoses, searches, and stores conversations.
            clock: seconds since the epoch.

        Raises:
            DataError: data/chat.yaml or a fitted model is missing, damaged or breaks its schema.
        """
        self._service = service
        self._clock = clock
        self._intents = open_intents(service.settings.data, service.knowledge)
        self._questions = FieldQuestions(service, self._intents)
        self._model = MessageModel(service, self._intents.sentence_reader)
        self._dialogue = Dialogue(service, self._intents, self._questions, self._model)
        self._store = ConversationStore(
            service.store.records,
            lock=service.store.lock,
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
        if not message.strip():
            raise InputError(
                "the message is empty", todo="write a question or paste a log", reason="no_message"
            )
        limit = self._service.settings.max_body
        if len(message) > limit:
            raise InputError(
                f"the message has {len(message)} characters, {limit} is the most",
                todo="upload the log as a file",
                reason="long_message",
                values={"count": f"{len(message):,}", "limit": f"{limit:,}"},
            )
        current = self._open(conversation, create=create)
        reading = self._service.read_text(message)
        is_request = partial(self._is_request, has_incident=current.reading is not None)
        paste = split(message, reading, is_request=is_request)
        text, _ = redact(paste.text)
        if paste.has_output:
            reading = without_orders(reading, paste.text, self._intents.is_order)
            said = reading.words if current.reading is not None else text
            talk = self._intents.observations.talk(said, is_report=current.reading is None)
            reading = without_sentences(reading, talk)
        head, _ = redact(message[:REDACTED_CHARS])
        read = None if paste.has_output else self._model.read(current, text)
        with self._store.turn(current.id):
            seen, current = current.turns, self._fresh(current, conversation)
            current = replace(current, language=self._language(paste, current, language))
            reply, after = self._dialogue.answer(
                current,
                text,
                reading,
                has_output=paste.has_output,
                read=read if current.turns == seen else None,  # else it was read against less
            )
            return self._save(after, reply, head[:HEAD_CHARS])

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
        current = self._open(conversation, create=create)
        with self._store.turn(current.id):
            current = self._fresh(current, conversation)
            written = message_language(reading.words, current.language)
            requested = language or current.language or written
            configured = self._service.settings.lang
            current = replace(current, language=answer_language(requested, configured))
            reply, after = self._dialogue.begin(current, reading)
            return self._save(after, reply, "")

    def follow_up(self, identifier: str, *, wait_s: float | None = None) -> Reply | None:
        """What a language model adds to the last reply; None where none is set or nothing is due.

        Blocks for as long as the model takes, at most `wait_s` seconds; nobody else waits for it.
        What it asks stays open: the next message may answer it.

        Raises:
            NotFoundError: the conversation is unknown or has expired.
        """
        if self._service.second_reader is None:
            return None
        asked = self._store.load(identifier)
        added = follow_up(self._service, asked, wait_s=wait_s)
        if added is None:
            return None
        reply, question = added
        if question is None:
            return reply
        with self._store.turn(identifier):
            current = self._store.load(identifier)
            if current.turns == asked.turns:  # else the person said more: it no longer belongs
                last = current.turns[-1]
                whole = replace(last.reply.with_addition(reply), diagnosis=None)
                turns = (*current.turns[:-1], replace(last, reply=whole))
                self._store.save(
                    replace(current, turns=turns, model_question=question, unanswered="")
                )
        return reply

    def conversation(self, identifier: str) -> Conversation:
        """The conversation of that id.

        Raises:
            NotFoundError: it is unknown or has expired.
        """
        return self._store.load(identifier)

    def open_question(self, identifier: str) -> Question | None:
        """The check that was asked last and is not answered, with its options.

        Raises:
            NotFoundError: there is no such conversation.
        """
        conversation, knowledge = self.conversation(identifier), self._service.knowledge
        return open_question(
            knowledge, conversation, Words(knowledge.labels, conversation.language or "en")
        )

    def verdict(self, identifier: str) -> Verdict | None:
        """What the conversation's incident means by all that was said; None where it has none.

        Raises:
            NotFoundError: the conversation is unknown or has expired.
        """
        return verdict_of(self._service, self._store.load(identifier))

    def forget(self, identifier: str) -> bool:
        """Delete a conversation; whether it was there."""
        return self._store.forget(identifier)

    def _is_request(self, line: str, *, has_incident: bool) -> bool:
        """Whether a line with an error in it asks for something rather than reports it."""
        if self._intents.is_request(line, has_incident=has_incident):
            return True
        return not has_incident and self._questions.is_question(line)

    def _language(self, paste: Paste, current: Conversation, wanted: Language | None) -> Language:
        """What to answer in: asked for in words, wanted by the face, or that of the message.

        An order in a log does not choose: what leads up to a log counts only as a description.
        """
        if current.language_pinned and current.language:
            return current.language
        written = message_language(paste.text, current.language)
        if written is None and not any(map(self._intents.is_order, paste.lead.splitlines())):
            written = message_language(paste.lead, current.language)
        return answer_language(wanted or written or current.language, self._service.settings.lang)

    def _open(self, identifier: str, *, create: bool) -> Conversation:
        return self._store.load(identifier, create=create) if identifier else self._store.new()

    def _fresh(self, current: Conversation, identifier: str) -> Conversation:
        """The conversation as it is now that this turn has it alone; one deleted since stays so.

        Raises:
            NotFoundError: it was deleted since.
        """
        return self._store.load(identifier, create=not current.turns) if identifier else current

    def _save(self, conversation: Conversation, reply: Reply, message: str) -> Reply:
        turn = Turn(asked=message, reply=replace(reply, diagnosis=None), at_s=self._clock())
        self._store.save(replace(conversation, turns=(*conversation.turns, turn)))
        return reply


def open_intents(data: Path, knowledge: Knowledge) -> IntentReader:
    """Reads messages with the phrases and fitted models of `data`.

    Raises:
        DataError: they are missing, damaged or do not belong together.
    """
    embedder, normalise = embedded_model(data), default_tokenizer().normalise

    def scorer(folder: str) -> TextScorer:
        return TextScorer(load_model(data / folder), embedder, normalise, folder)

    phrases = load_phrases(data, knowledge)
    act_reader = ActReader(scorer(acts.FOLDER), ACTS, acts.FOLDER)
    progress = ProgressReader(scorer(acts.PROGRESS_FOLDER), PROGRESSES, acts.PROGRESS_FOLDER)
    read = SentenceReader(phrases, knowledge, act_reader, progress)
    return IntentReader(read, ReplyReader(read, CheckAnswerReader(scorer(check_answers.FOLDER))))
