"""The reply to a step, and the conversation after it: the answers, the question due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kb.chat.answers import ANSWERS
from kb.chat.answers.answer import IntentAnswer, Step
from kb.chat.answers.questions import OF_ALL, answer_question
from kb.chat.answers.suggestions import suggest
from kb.chat.assessment import (
    Assessment,
    assess,
    changes,
)
from kb.chat.checks import check_question, find_check, next_question
from kb.chat.endings import CONFIRM, outcome_question
from kb.chat.passages import PassageFinder
from kb.chat.phrases import Phrasebook
from kb.chat.types import (
    Change,
    Conversation,
    Intent,
    Question,
    Reply,
    Statement,
)
from kb.embed import embedded_model
from kb.knowledge.labels import Words
from kb.text.tokenizer import default_tokenizer

if TYPE_CHECKING:
    from kb.service import Service

LINES_OF_ONE = 5  # statements of the answer to a question
LINES_OF_SEVERAL = 3  # where more is answered
# What is said whole: a log, a remark, a list that was asked for, what the person wrote.
WHOLE: frozenset[Intent] = frozenset(
    {"log", "tell", "case", "similar", "search", "recap", "happened", "setting"}
)
REPEATABLE = ("evidence", "check")  # what a reply rests on; said once it is known
REPEAT_TURNS = 2  # the last ones, whose lines are not said again
MAX_SHOWN = 40  # cases remembered as shown


class ReplyWriter:
    """Puts replies together; stores nothing itself."""

    def __init__(self, service: Service, phrases: Phrasebook) -> None:
        """Answer with the knowledge of `service` and the words of `phrases`."""
        self._service = service
        embedder = embedded_model(service.settings.data)
        self._passages = PassageFinder(
            service.knowledge, embedder, default_tokenizer(), phrases.is_filler
        )
        self._phrases = phrases

    def write(self, step: Step) -> tuple[Reply, Conversation]:
        """The reply, and the conversation after it."""
        conversation, first = step.conversation, step.requests[0].intent
        language = conversation.language or "en"
        assessment = assess(self._service, conversation, language)
        before = assess(self._service, step.previous, language) if step.previous else None
        moved: tuple[Change, ...] = ()
        if assessment and before:
            moved = changes(before, assessment, self._service.knowledge)
        words = Words(self._service.knowledge.labels, language)
        base = IntentAnswer(
            service=self._service,
            phrases=self._phrases,
            passages=self._passages,
            words=words,
            step=step,
            request=step.requests[0],
            assessment=assessment,
            before=before,
            changes=moved,
            question=self._question(step, assessment, words),
        )
        if step.shown_changes:
            shown = (replace(item, title=base.title(item.cause)) for item in step.shown_changes)
            base.changes = tuple(shown)
        is_alone = sum(request.intent != "language" for request in step.requests) <= 1
        answers = [
            replace(base, request=request, statements=[], is_alone=is_alone)
            for request in step.requests
        ]
        for answer in answers:
            if not answer_question(answer):
                ANSWERS[answer.request.intent](answer)
        diagnosis = None
        shows = first in ("log", "tell") and step.event != "skip"
        if assessment and shows and (first == "log" or assessment.diagnosis.causes):
            top = self._service.settings.top  # causes, as every face shows them
            diagnosis = replace(assessment.diagnosis, causes=assessment.diagnosis.causes[:top])
        reply = Reply(
            conversation=conversation.id,
            number=conversation.turns[-1].reply.number + 1 if conversation.turns else 1,
            intent=first,
            language=language,
            statements=(
                *_switched(step, assessment, words),
                *_stored_ending(base),
                *self._few_lines(step, answers),
            ),
            question=base.question,
            changes=moved,
            diagnosis=diagnosis,
            suggestions=suggest(base, step.requests[-1].intent),
            outcome=step.outcome,
        )
        return reply, _after(conversation, answers, base.question)

    def _few_lines(self, step: Step, answers: Sequence[IntentAnswer]) -> tuple[Statement, ...]:
        """What is said: of each question a few lines, of a log all; nothing as it was just said.

        The first line of an answer stays: it is what was asked for.
        """
        replies = [turn.reply for turn in step.conversation.turns[-REPEAT_TURNS:]]
        before = {
            item.text
            for reply in replies
            if reply.intent not in ("log", "tell") and not step.shown_changes
            for item in reply.statements
            if item.role in REPEATABLE and not item.command
        }
        hinted = {item.text for reply in replies[-1:] for item in reply.statements}
        said: dict[Statement, None] = {}
        for answer in _uptake_first(answers):
            limit = LINES_OF_ONE if answer.is_alone else LINES_OF_SEVERAL
            hints = [item for item in answer.statements if item.role == "hint"]
            new_hints = [item for item in hints if item.text not in hinted]
            if answer.request.intent in WHOLE:
                whole = (one for one in answer.statements if one not in hints or one in new_hints)
                said |= dict.fromkeys(whole)
                continue
            first, others = answer.statements[:1], answer.statements[1:]
            new = [item for item in others if item.text not in before]
            if others and not new:
                answer.say("note", "chat.nothing_new")
                new = answer.statements[-1:]
            said |= dict.fromkeys((*first, *new[: limit - 1], *new_hints))
        return tuple(said)

    def _question(self, step: Step, assessment: Assessment | None, words: Words) -> Question | None:
        """The question due; none is asked twice, and none while the last one waits for its answer.

        A new one comes where the leading cause has changed since.
        """
        conversation = step.conversation
        is_next = any(
            request.intent == "next" and request.form not in OF_ALL for request in step.requests
        )
        if conversation.is_over and not is_next:
            return None
        if step.event in ("ended", "helped") and conversation.asked_outcome is not None:
            return outcome_question(conversation.asked_outcome, self._service.knowledge, words)
        if not (step.asks or is_next) or assessment is None:
            return None
        if assessment.diagnosis.status == "no_timeout":
            return None
        asked = [one for one in step.requests if one.intent not in ("tell", "log", "language")]
        if step.event in ("", "merged") and not is_next and asked and asked[-1].intent != "outcome":
            return None  # what was asked is answered; a check beside it would be a flood
        if is_next and len(step.requests) > 1 and conversation.open_checks:
            return None  # its command stands in the answer
        if conversation.open_checks and (is_next or step.requests[0].intent == "language"):
            check = find_check(self._service.knowledge, conversation.open_checks[-1])
            return check_question(check, words) if check else None
        waits = bool(conversation.open_checks) and conversation.asked_for == _leading(assessment)
        if waits:
            return None
        return next_question(
            assessment, conversation, self._service.knowledge, self._phrases, words
        )


def _uptake_first(answers: Sequence[IntentAnswer]) -> list[IntentAnswer]:
    """In a line what a remark moved, then the answers to what was asked beside it."""
    return sorted(answers, key=lambda answer: answer.request.intent != "tell")


def _switched(step: Step, assessment: Assessment | None, words: Words) -> Iterator[Statement]:
    """Which incident is answered, where the message turned to another."""
    if step.switched == "other":
        yield Statement(role="note", text=words("chat.other_incident"))
    elif step.switched == "earlier" and assessment is not None:
        title = assessment.diagnosis.headline
        yield Statement(role="note", text=words("chat.earlier_incident", title=title))


def _stored_ending(answer: IntentAnswer) -> Iterator[Statement]:
    """That it was kept how the incident before ended, where the message said so first."""
    outcome = answer.step.outcome
    if outcome is not None and answer.step.event != "settled":
        text = answer.words("chat.kept", title=answer.title(outcome.actual))
        yield Statement(role="verdict", text=text, citations=(answer.cite(outcome.actual),))


def _leading(assessment: Assessment) -> str:
    return assessment.diagnosis.causes[0].id if assessment.diagnosis.causes else ""


def _after(
    conversation: Conversation, answers: list[IntentAnswer], question: Question | None
) -> Conversation:
    """The conversation after the answers: what was spoken of, shown and asked."""
    cases = dict.fromkeys(
        (*conversation.shown_cases, *(case for one in answers for case in one.cases))
    )
    after = replace(
        conversation,
        focus=next((one.focus for one in reversed(answers) if one.focus), conversation.focus),
        shown_cases=tuple(cases)[-MAX_SHOWN:],
        unanswered=next((one.request.text for one in answers if one.request.unanswerable), ""),
    )
    if question is None or question.check == CONFIRM:
        return after
    others = (check for check in conversation.asked_checks if check != question.check)
    return replace(
        after,
        asked_checks=(*others, question.check),
        open_checks=(question.check,),
        asked_for=next(iter(answers[0].ranked), ""),
    )
