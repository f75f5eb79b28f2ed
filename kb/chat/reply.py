"""The reply to a step, and the conversation after it: the answers, the question due."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
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
from kb.chat.repeats import ShownTexts, is_lead, start_of
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
# What is said again where it is asked for again.
AGAIN: frozenset[Intent] = frozenset({"recap", "language"})
DOING = ("fix", "step", "check", "warning")  # roles of what somebody is to do
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
            shown=ShownTexts(conversation.turns),
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
        """What is said: of each question a few lines, of a log all; nothing that was said before.

        Where the first line of an answer was said, one line points at it.
        """
        is_again = bool(step.shown_changes) or step.requests[0].intent == "language"
        shown = ShownTexts() if is_again else answers[0].shown
        said: dict[Statement, None] = {}
        for answer in _uptake_first(answers):
            limit = LINES_OF_ONE if answer.is_alone else LINES_OF_SEVERAL
            fitting = [item for item in answer.statements if _is_for_job(answer, item)]
            lines = fitting or answer.statements[:1]
            hints = [item for item in lines if item.role == "hint"]
            first, others = lines[:1], lines[1:]
            if answer.request.intent not in AGAIN and answer.request.form != "summary":
                hints = [item for item in hints if not shown.holds(item)]
                new = list(_new_lines(answer, others, shown))
                if first and is_lead(first[0]) and others:
                    first = first if new else [_pointed_at(answer, others[0], shown)]
                else:
                    first = [_pointed_at(answer, item, shown) for item in first]
                others = new
            first, others = _unsaid(first, said), _unsaid(others, said)
            if answer.request.intent in WHOLE:
                said |= dict.fromkeys((*first, *others))
            else:
                others = [item for item in others if item.role != "hint"]
                said |= dict.fromkeys((*first, *others[: limit - 1], *hints))
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
        if conversation.open_checks and step.requests[0].intent == "language":
            check = find_check(self._service.knowledge, conversation.open_checks[-1])
            return check_question(check, words) if check else None
        if is_next and self._is_command_due(conversation):
            return None  # the check was asked: its command is the answer
        waits = bool(conversation.open_checks) and conversation.asked_for == _leading(assessment)
        if waits and not is_next:
            return None
        return next_question(
            assessment, conversation, self._service.knowledge, self._phrases, words
        )

    def _is_command_due(self, conversation: Conversation) -> bool:
        """Whether the check that is open was asked and no line gave its command."""
        last = conversation.open_checks[-1:]
        check = find_check(self._service.knowledge, last[0]) if last else None
        return check is not None and not ShownTexts(conversation.turns).has_command(check.command)


def _unsaid(lines: Iterable[Statement], earlier: Iterable[Statement]) -> list[Statement]:
    """The lines of an answer that tell of no fix and no step that another answer has told."""
    told = "\n".join(line.text for line in earlier)

    def is_said(line: Statement) -> bool:
        quote = line.citations[0].quote if line.citations else ""
        return line.role in DOING and bool(quote) and not line.command and quote in told

    return [line for line in lines if not is_said(line)]


def _is_for_job(answer: IntentAnswer, line: Statement) -> bool:
    """Whether a line tells nothing to do that is made for another framework or launcher."""
    return line.role not in DOING or not answer.is_for_others((), f"{line.text} {line.command}")


def _new_lines(
    answer: IntentAnswer, lines: Sequence[Statement], shown: ShownTexts
) -> Iterator[Statement]:
    """The lines that were not said, and the name of a fix whose steps were not.

    What a “why” rests on is pointed at once where it was said.
    """
    rests = [line for line in lines if line.role == "evidence" and shown.holds(line)][:1]
    for line, behind in zip_longest(lines, lines[1:]):
        leads = behind is not None and (line.role, behind.role) == ("fix", "step")
        if not shown.holds(line) or (leads and not shown.holds(behind)):
            yield line
        elif line in rests and answer.request.intent == "why":
            pointer = _pointed_at(answer, line, shown)
            if not shown.says(pointer.text):
                yield pointer


def _pointed_at(answer: IntentAnswer, line: Statement, shown: ShownTexts) -> Statement:
    """A line, or where it was said one that points at it; its command stays."""
    if line.role == "note" or not shown.holds(line):
        return line
    label = "chat.noted" if answer.request.intent == "tell" else "chat.said_above"
    return replace(line, text=answer.words(label, start=start_of(line.text)))


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
