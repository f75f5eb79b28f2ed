"""Questions of the field before any incident, told from reports of one's own job.

Both name hangs, timeouts and error codes. Who only asks has no incident; a question tells more of
what it is about than “what now?”, and a note answers it clearly.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import TYPE_CHECKING

from kb.chat.intents import IntentReader
from kb.chat.meaning import Meaning, UserRequest
from kb.chat.sentences import clauses, sentences
from kb.chat.types import Act, Intent
from kb.text.tokenizer import default_tokenizer
from kb.types.incident import LogReading

if TYPE_CHECKING:
    from kb.service import Service

# What is asked about an incident: without one there is nothing to say.
OF_AN_INCIDENT: frozenset[Intent] = frozenset({"fix", "next", "why", "restart", "sure", "cause"})
LOOKUPS: frozenset[Intent] = frozenset({"search", "case", "similar", "setting"})  # in the knowledge
# What is asked of any trouble: alone, it asks nothing of the field.
GENERAL_ASKS: frozenset[Act] = frozenset({"fix", "next", "happened", "help"})
LONG_QUESTION = 8  # words, from which a question tells what it is about
# Scores of a note, set on the first messages of played dialogues, data/golden/reports.jsonl and
# note_questions.jsonl: few reports that ask anything reach them.
CLEAR = 0.62  # of a note that answers a question, whatever trouble it tells of
BESIDE = 0.55  # of one that is shown beside the incident told
NAMED = 0.8  # of one that is about the very thing where nothing is asked
ASKED_WORDS = 3  # of what asks for something; “what now?” asks for the incident's fix


class FieldQuestions:
    """Tells questions of the field from incidents by what they ask and the notes; made once."""

    def __init__(self, service: Service, intents: IntentReader) -> None:
        """Read with `intents`, find the notes of `service`."""
        self._service = service
        self._intents = intents

    def is_question(self, text: str) -> bool:
        """Whether a message with words of an incident only asks, and a note answers it clearly."""
        return self._score(text) >= CLEAR and self._asks_for_something(text)

    def meaning(self, text: str, meaning: Meaning) -> Meaning:
        """What a message before any incident means, that `meaning` was read of.

        Of a question all circumstances are what is asked. What nothing of ours answers is said to
        be that.
        """
        is_lookup = any(item.intent in LOOKUPS for item in meaning.requests)
        if meaning.job or meaning.language or is_lookup:
            return meaning
        whole = self._intents.remark(text)
        question = replace(meaning, remark="", requests=(replace(whole, intent="how_to"),))
        score, asks = self._score(text), self._asks_for_something(text)
        if asks and score >= CLEAR:
            return question
        said = sentences(text)
        stated = " ".join(one for one in said if not self._intents.asks(one))
        if not asks and score >= NAMED and not self._is_hang(text):
            return question
        if self._is_hang(stated or ("" if asks else text)):
            has_note = asks and score >= BESIDE and meaning.remark
            return replace(meaning, requests=question.requests) if has_note else meaning
        asks_why = self._intents.phrases.asks_for_reason(text)
        if meaning.remark and asks_why and not (score or self._is_of_field(text)):
            return self._unnoted(text, whole, meaning)
        if not asks and stated == " ".join(said):
            return meaning
        if meaning.remark and not score and (asks or not stated):
            return self._unnoted(text, whole, meaning)
        if meaning.remark:  # it would be an incident
            is_answered = any(item.intent in ("how_to", "setting") for item in meaning.requests)
            return question if score else replace(meaning, remark="") if is_answered else meaning
        return self._without_source(text, whole, meaning)

    def _unnoted(self, text: str, whole: UserRequest, meaning: Meaning) -> Meaning:
        """The meaning of a question that no note answers: of the field, or of something else.

        One that tells of no hang and no distributed job is none of ours.
        """
        is_of_field = self._is_of_field(text)
        intent: Intent = "how_to" if is_of_field else "unclear"
        asked = replace(whole, intent=intent, unanswerable=not is_of_field)
        return replace(meaning, remark="", requests=(asked,))

    def _without_source(self, text: str, whole: UserRequest, meaning: Meaning) -> Meaning:
        """The meaning, or of a long question about nothing of ours that nothing answers it."""
        is_of_field = whole.causes or whole.settings or whole.platforms or whole.ordinal
        asked = {item.intent for item in meaning.requests} & OF_AN_INCIDENT
        if asked and not is_of_field and len(default_tokenizer().tokens(text)) >= LONG_QUESTION:
            unknown = replace(whole, intent="unclear", unanswerable=True)
            return replace(meaning, requests=(unknown,))
        return meaning

    def _score(self, text: str) -> float:
        """The score of the best note that may answer; 0 where none does."""
        return next((hit.score for hit in self._service.find_notes(text, limit=1)), 0.0)

    def _asks_for_something(self, text: str) -> bool:
        """Whether what asks in the text says what it asks for."""
        phrases = self._intents.phrases
        asking = [
            clause
            for sentence in sentences(text)
            for clause in clauses(sentence)
            if self._intents.asks(clause) or phrases.form_of(clause)
        ]
        tokens = default_tokenizer().tokens
        return any(
            len(tokens(one)) >= ASKED_WORDS
            and (self._intents.tells(one) or self._intents.ask_of(one) not in GENERAL_ASKS)
            for one in asking
        )

    def _is_of_field(self, text: str) -> bool:
        """Whether a text speaks of a hang, a failure or a distributed job."""
        return bool(reported_events(self._service, self._service.read_text(text)))

    def _is_hang(self, text: str) -> bool:
        if not text:
            return False
        return is_hang(reported_events(self._service, self._service.read_text(text)))


def reported_events(service: Service, reading: LogReading) -> set[str]:
    """What a person's words report."""
    return {hit.cue.event for hit in service.engine.report_cues(reading)}


def is_hang(events: Set[str]) -> bool:
    """Whether a hang or failed communication is among the events reported."""
    return "hang" in events or {"distributed", "failure"} <= events
