"""A message read by the team's language model, where one is set, as what it means.

The model's reading takes the place of the fitted one (`kb.chat.intents`). Where there is none in
time, or nothing of it can be believed, the fitted one reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from kb.chat.assessment import verdict_of
from kb.chat.checks import find_check
from kb.chat.corrections import words_that_count
from kb.chat.meaning import Job, Meaning, Situation, UserRequest
from kb.chat.sentence_acts import ENDING, LANGUAGES, SentenceReader
from kb.chat.types import Act, CheckResult, Conversation, QuestionForm, ReadStatement
from kb.second_reader.message_reading import (
    MessageReading,
    MessageState,
    MessageVocabulary,
    QuestionReading,
)
from kb.types.vocabulary import Polarity

if TYPE_CHECKING:
    from kb.service import Service

WAIT_S = 8.0  # a reply waits no longer for the model
PAUSE_S = 30.0  # after a message it did not read in time
CAUSES_SENT = 4  # in play
# Statements of these polarities tell nothing of the incident.
SUPPOSED = (Polarity.ASKED, Polarity.GUESSED)
# Acts that are answered where the message asks nothing else.
ALONE: tuple[Act, ...] = ("impatient", "help", "recap", "courtesy", "off_topic")
JOBS: Mapping[str, Job] = {"new_job": "new", "same_job": "same"}
# What each act is, as the model is told.
MEANINGS: Mapping[Act, str] = {
    "tell": "states a fact of the incident, or what was tried",
    "suspect": "names a cause the person believes in or rules out",
    "fixed": "says that the trouble is over, or what mended it",
    "not_it": "says that the cause or fix shown was wrong",
    "yes": "says yes to the open question",
    "no": "says no to it",
    "unsure": "cannot answer it",
    "retract": "takes back or corrects something said earlier",
    "happened": "asks what happened, which rank, when",
    "why": "asks why, or why (not) some cause",
    "sure": "asks how sure",
    "fix": "asks how to fix it",
    "next": "asks what to run or do next",
    "restart": "asks whether a restart helps",
    "similar": "asks for similar incidents of others",
    "case": "asks to see a case",
    "search": "asks to look something up",
    "cause": "asks what a cause is",
    "setting": "asks what a setting does",
    "how_to": "asks a general question of the field, about no incident of theirs",
    "option": "picks from a list by its place",
    "lang_zh": "wants Chinese",
    "lang_en": "wants English",
    "recap": "asks what was said so far",
    "new_job": "turns to a new incident",
    "same_job": "says that it is the same incident",
    "help": "asks what the assistant can do",
    "courtesy": "greets or thanks, small talk",
    "impatient": "wants the short of it",
    "off_topic": "is about something else",
}


class MessageModel:
    """Has messages read by the service's language model; used from any thread."""

    def __init__(
        self,
        service: Service,
        sentences: SentenceReader,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read with the model of `service`; requests are filled in by `sentences`."""
        self._service = service
        self._sentences = sentences
        self._clock = clock
        self._quiet_until = 0.0
        knowledge = service.knowledge
        self._vocabulary = MessageVocabulary(
            acts={str(act): meaning for act, meaning in MEANINGS.items()},
            forms=[form for form in get_args(QuestionForm) if form],
            topics=[topic.id for topic in knowledge.topics],
            causes=[cause.id for cause in knowledge.causes],
        )

    def read(self, conversation: Conversation, text: str) -> MessageReading | None:
        """What the model reads in a message; None where there is no model, or none in time.

        Blocks for `WAIT_S` at most.
        """
        reader = self._service.second_reader
        is_plain = not text or self._sentences.phrases.choice_in(text)  # “2” needs no model
        if reader is None or is_plain or self._clock() < self._quiet_until:
            return None
        state = self._state(conversation, text)
        result = reader.read_message(state, self._vocabulary, wait_s=WAIT_S)
        if result.why is not None and result.why.reason in ("waiting", "slow", "unreachable"):
            self._quiet_until = self._clock() + PAUSE_S
        return result.answer

    def _state(self, conversation: Conversation, text: str) -> MessageState:
        """What the message is read against: the open check, the causes, what was said."""
        language = conversation.language or "en"
        last = conversation.open_checks[-1:]
        check = find_check(self._service.knowledge, last[0]) if last else None
        outcomes = check.outcomes if check is not None else ()
        verdict = verdict_of(self._service, conversation)
        causes = verdict.ranking.causes[:CAUSES_SENT] if verdict else ()
        return MessageState(
            message=text,
            has_incident=conversation.reading is not None,
            question=check.tells.get(language) if check is not None else "",
            options=tuple(outcome.observation.get(language) for outcome in outcomes),
            causes=tuple(one.cause for one in causes),
            earlier=words_that_count(conversation),
        )

    def meaning(
        self, reading: MessageReading, conversation: Conversation, text: str, situation: Situation
    ) -> Meaning | None:
        """What the message means by that reading; None where it says nothing to act on."""
        told = [one for one in reading.statements if one.polarity not in SUPPOSED]
        remark = " ".join(dict.fromkeys(one.quote for one in told))
        if remark and not situation.has_incident:
            remark = text  # it begins one: a description is read whole
        requests = tuple(self._request(one, situation) for one in reading.questions)
        meaning = Meaning(
            text=text,
            remark=remark,
            requests=requests,
            statements=tuple(
                ReadStatement(quote=one.quote, topic=one.topic, polarity=one.polarity)
                for one in told
                if one.topic and situation.has_incident
            ),
            refusals=reading.refusals if situation.has_incident else (),
            language=next((LANGUAGES[act] for act in LANGUAGES if act in reading.acts), None),
            job=next((JOBS[act] for act in JOBS if act in reading.acts), ""),
        )
        meaning = self._replying(reading, meaning, text, situation)
        earlier = words_that_count(conversation)
        taken = tuple(earlier[at] for at in reading.takes_back if at < len(earlier))
        if taken and situation.has_incident:
            meaning = replace(meaning, retraction=text, retracted=taken)
        if not (requests or remark or meaning.refusals):
            meaning = self._of_acts(reading, meaning, text, situation)
        return meaning if meaning != Meaning(text=text) else None

    def _replying(
        self, reading: MessageReading, meaning: Meaning, text: str, situation: Situation
    ) -> Meaning:
        """The meaning with the answer to what is open."""
        says_more = bool(meaning.remark or meaning.requests)
        if situation.outcome_asked and not says_more:
            if "yes" in reading.acts or "no" in reading.acts:
                return replace(meaning, settled="yes" if "yes" in reading.acts else "no")
        elif reading.option and situation.open_checks:
            check = situation.open_checks[0]
            result = CheckResult(check=check.id, outcome=reading.option, quote=text)
            return replace(meaning, check_result=result)
        elif "unsure" in reading.acts and situation.just_asked and not says_more:
            return replace(meaning, cannot_answer=True)
        return meaning

    def _of_acts(
        self, reading: MessageReading, meaning: Meaning, text: str, situation: Situation
    ) -> Meaning:
        """The meaning of a message that neither states nor asks anything."""
        answers = meaning.settled or meaning.check_result or meaning.cannot_answer
        if answers or meaning.retraction or meaning.job:
            return meaning
        wanted: tuple[Act, ...] = (*ENDING, *LANGUAGES, *ALONE)
        for act in wanted:
            if act in reading.acts and (situation.has_incident or act not in ENDING):
                return replace(
                    meaning, requests=(self._sentences.as_request(act, text, situation),)
                )
        return meaning

    def _request(self, question: QuestionReading, situation: Situation) -> UserRequest:
        """A question as what is to be answered; ids of the model come before words of ours."""
        act: Act = question.act  # type: ignore[assignment]
        request = self._sentences.as_request(act, question.quote, situation)
        form: QuestionForm = question.form  # type: ignore[assignment]
        return replace(
            request,
            form=form or request.form,
            causes=question.causes or request.causes,
        )
