"""One turn: a message and the conversation in, the reply and the conversation after it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from kb.chat.answers import ANSWERS
from kb.chat.answers.answer import IntentAnswer, Step, Switch
from kb.chat.answers.questions import answer_question
from kb.chat.answers.suggestions import suggest
from kb.chat.assessment import (
    RUNNING,
    STACK_WORDS,
    Assessment,
    assess,
    changes,
    check_question,
    denied_causes,
    find_check,
    next_question,
    stated_cause,
    take_back,
    tools_in,
)
from kb.chat.endings import CONFIRM, meant_cause, outcome_question
from kb.chat.incidents import is_just_begun, with_earlier, with_incident
from kb.chat.intents import NO_ANSWER, IntentReader, Meaning, Settled, Situation, UserRequest
from kb.chat.paste import without_sentences
from kb.chat.sentences import clauses, sentences
from kb.chat.types import (
    Change,
    CheckResult,
    Conversation,
    Ending,
    IncidentOutcome,
    Intent,
    Question,
    Reply,
    StatedCause,
    Statement,
    Turn,
)
from kb.diagnose.signals import Signal
from kb.knowledge.framework_names import framework_names, name_expression
from kb.knowledge.labels import Words
from kb.logs.incident.merge import merge_readings, other_job
from kb.text.tokenizer import default_tokenizer
from kb.types.incident import LogReading

if TYPE_CHECKING:
    from kb.service import Service

MAX_REMARK_CHARS = 1000  # longer ones are pastes
SIGN_NATS = 1.5  # of a cue from which a question is about its cause; weaker ones only colour it
MAX_MODEL_ANSWERS = 8  # the last ones are sent again with the report
# Requests that a note may answer better than what is known of the incident.
NOTED: frozenset[Intent] = frozenset(
    {"happened", "cause", "fix", "next", "help", "unclear", "off_topic", "search", "why"}
)
# What is asked about an incident: without one there is nothing to say.
OF_AN_INCIDENT: frozenset[Intent] = frozenset({"fix", "next", "why", "restart", "sure", "cause"})
NOTE_SCORE = 0.68  # of a note that answers such a request
LONG_QUESTION = 8  # words, from which a question tells what it is about
NOTE_WORDS = 3  # of such a request; “what now?” is about the incident
LINES_OF_ONE = 6  # statements of the answer to a question
LINES_OF_SEVERAL = 4  # where more is answered
# What is said whole: a log, a remark, a list that was asked for, what the person wrote.
WHOLE: frozenset[Intent] = frozenset(
    {"log", "tell", "case", "similar", "search", "recap", "happened", "setting"}
)
MAX_MISLEADING = 100  # sentences
MAX_SHOWN = 40  # cases remembered as shown
_SETTLES: dict[bool, Settled] = {True: "denied", False: "confirmed"}
# Replies about the conversation itself: what is repeated is the answer before them.
ABOUT_CHAT: frozenset[Intent] = frozenset(
    {"language", "courtesy", "impatient", "help", "off_topic", "unclear"}
)
# What is not answered beside a log.
NOT_BESIDE_LOG = ABOUT_CHAT - {"help"} | {"outcome"}


class Dialogue:
    """Answers messages of conversations it is handed; stores nothing itself."""

    def __init__(self, service: Service, intents: IntentReader) -> None:
        """Answer with the knowledge of `service`."""
        self._service = service
        self._intents = intents

    def begin(self, conversation: Conversation, reading: LogReading) -> tuple[Reply, Conversation]:
        """Take up an incident that was read elsewhere."""
        return self._reply(self._log(conversation, reading, Meaning(), ""))

    def answer(
        self, conversation: Conversation, text: str, reading: LogReading, *, has_output: bool
    ) -> tuple[Reply, Conversation]:
        """Answer a message.

        Args:
            conversation: its language is that of the reply.
            text: the person's own words, redacted.
            reading: the whole message, read as a log.
            has_output: whether there is program output beside the words.
        """
        if has_output:
            meaning = self._intents.read(text, Situation(has_incident=True)) if text else Meaning()
            conversation = _in_language(conversation, meaning)
            current = replace(conversation, unanswered="", asked_outcome=None)
            if meaning.refusals:
                current = self._without_tools(current, meaning.refusals)
            return self._reply(self._log(current, reading, meaning, text))
        conversation, text, switched = self._turn_to(conversation, text)
        if switched:
            reading = self._service.read_text(text)
        situation = self._situation(conversation, reading)
        meaning = self._intents.read(text, situation)
        if switched == "other":
            meaning = replace(meaning, remark=meaning.remark or text, job="")
        elif not situation.has_incident:
            meaning = self._about_no_incident(text, meaning)
        conversation = replace(_in_language(conversation, meaning), unanswered="")
        if conversation.model_question:
            conversation, meaning = _to_model(conversation, text, meaning)
        outcome = conversation.asked_outcome
        if meaning.settled and outcome is not None:
            return self._reply(self._settle(conversation, outcome, meaning.settled, text))
        if meaning.refusals:
            conversation = self._without_tools(conversation, meaning.refusals)
        step = self._step(conversation, text, reading, meaning)
        if meaning.refusals and not step.event:
            step = replace(step, asks=True, event="refused" if meaning.remark else "skip")
        return self._reply(replace(step, switched=switched))

    def _about_no_incident(self, text: str, meaning: Meaning) -> Meaning:
        """A question with its circumstances, before any incident: all of it is what is asked.

        Who states that something hangs or failed has an incident; who only asks about it has none.
        What nothing of ours answers is said to be that.
        """
        said = sentences(text)
        stated = " ".join(one for one in said if not self._intents.asks(one))
        if stated == " ".join(said) or meaning.job or meaning.language:
            return meaning
        if stated and _is_hang(self._events(self._service.read_text(stated))):
            return meaning
        whole = self._intents.remark(text)
        if meaning.remark:  # it would be an incident
            if self._service.find_notes(text, limit=1):
                return replace(meaning, remark="", requests=(replace(whole, intent="how_to"),))
            is_answered = any(item.intent in ("how_to", "setting") for item in meaning.requests)
            return replace(meaning, remark="") if is_answered else meaning
        is_of_field = whole.causes or whole.settings or whole.platforms or whole.ordinal
        asked = {item.intent for item in meaning.requests} & OF_AN_INCIDENT
        if asked and not is_of_field and len(default_tokenizer().tokens(text)) >= LONG_QUESTION:
            unknown = replace(whole, intent="unclear", unanswerable=True)
            return replace(meaning, requests=(unknown,))
        return meaning

    def _settle(
        self, conversation: Conversation, outcome: IncidentOutcome, reply: str, text: str
    ) -> Step:
        """Yes or no to how it ended; “no, it was the switch” is asked about once more."""
        step = _settled(replace(conversation, asked_outcome=None), outcome, reply, text)
        named, _ = self._intents.causes_by_sense(text)
        other = [cause for cause in named if cause != outcome.actual]
        if reply == "yes" or not other:
            return step
        instead = replace(outcome, verdict="wrong", actual=other[0])
        asked = replace(step.conversation, asked_outcome=instead)
        return replace(step, conversation=asked, event="ended")

    # --- what the message does -------------------------------------------------------------

    def _situation(self, conversation: Conversation, reading: LogReading) -> Situation:
        signals = self._service.engine.observations(reading)
        events = self._events(reading)
        known = (
            find_check(self._service.knowledge, check)
            for check in reversed(conversation.open_checks)
        )
        last = conversation.turns[-1].reply if conversation.turns else None
        answered = _last_answer(conversation)
        return Situation(
            has_incident=conversation.reading is not None,
            open_checks=tuple(check for check in known if check is not None),
            just_asked=last is not None and _asked_by(last, conversation.open_checks),
            outcome_asked=conversation.asked_outcome is not None
            and last is not None
            and (last.question is None or last.question.check == CONFIRM),
            model_asked=bool(conversation.model_question),
            reports_hang=_is_hang(events),
            has_evidence=bool(events or signals),
            after_cases=answered is not None
            and answered.reply.intent in ("similar", "search", "case"),
            hinted_causes=_hinted_causes(signals),
        )

    def _events(self, reading: LogReading) -> set[str]:
        """What a person's words report."""
        return {hit.cue.event for hit in self._service.engine.report_cues(reading)}

    def _turn_to(self, conversation: Conversation, text: str) -> tuple[Conversation, str, Switch]:
        """The conversation about the incident that `text` turns to, and what is said of that one.

        What stands before is said of the incident spoken of until then.
        """
        if conversation.reading is None:
            return conversation, text, ""
        before, rest, meant = self._intents.incident_meant(text)
        if meant == "earlier":
            words, place = self._intents.key_words, self._intents.remark(rest).ordinal
            turned = with_earlier(conversation, rest, words, place)
            if turned is not conversation:
                return turned, rest, "earlier"
            # No other waits: the turn itself tells nothing.
            behind = " ".join(sentences(rest)[1:])
            return conversation, behind or text, ""
        is_another = meant == "other" and not is_just_begun(conversation)
        if not is_another or not self._intents.tells_trouble(rest):
            return conversation, text, ""
        if before and not self._intents.asks(before):
            conversation = self._with_remark(conversation, before[:MAX_REMARK_CHARS])
        return with_incident(conversation, None), rest, "other"

    def _without_tools(self, conversation: Conversation, refusals: Sequence[str]) -> Conversation:
        """The conversation without the tools refused; a check that needs one is open no longer."""
        tools: set[str] = set()
        for sentence in refusals:
            tools |= tools_in(sentence)
            if self._intents.is_job_gone(sentence) or any(one in sentence for one in STACK_WORDS):
                tools.add(RUNNING)
        known = (find_check(self._service.knowledge, one) for one in conversation.open_checks)
        left = tuple(
            check.id
            for check in known
            if check is not None and tools and not tools_in(check.command) & tools
        )
        refused = tuple(sorted({*conversation.refused_tools, *tools}))
        return replace(conversation, refused_tools=refused, open_checks=left)

    def _step(
        self, conversation: Conversation, text: str, reading: LogReading, meaning: Meaning
    ) -> Step:
        noted = tuple(self._noted(request) for request in meaning.requests)
        meaning = replace(meaning, requests=noted)
        if meaning.job == "new" and meaning.remark:
            return self._remark(with_incident(conversation, None), reading, meaning)
        if meaning.job == "new":
            cleared = with_incident(conversation, None)
            return Step(conversation=cleared, requests=(UserRequest(intent="log"),), asks=False)
        if meaning.cannot_answer:  # on to the next best check
            skipped = replace(conversation, open_checks=conversation.open_checks[:-1])
            return Step(conversation=skipped, requests=(UserRequest(intent="tell"),), event="skip")
        if meaning.check_result is not None:
            return _check_result(conversation, meaning.check_result)
        if meaning.retraction:
            return self._retraction(conversation, reading, meaning)
        ended = next((item for item in meaning.requests if item.intent == "outcome"), None)
        if ended is not None and conversation.reading is not None:
            return self._ended(conversation, ended, meaning)
        if meaning.remark:
            return self._remark(conversation, reading, meaning)
        if meaning.is_complaint or (meaning.refusals and not meaning.requests):
            heard = UserRequest(intent="tell", text=text)
            event = "complaint" if meaning.is_complaint else "skip"
            return Step(conversation=conversation, requests=(heard,), event=event, asks=False)
        requests = meaning.requests or (UserRequest(intent="unclear", text=text),)
        if meaning.language and requests[0].intent == "language":
            return self._repeat_answer(conversation, requests[0])
        return Step(conversation=conversation, requests=requests, asks=False)

    def _noted(self, request: UserRequest) -> UserRequest:
        """The request, or one for the note that answers it well: “what does SeqNum mean?”.

        A question of the field that nothing of ours answers is known as that.
        """
        if request.intent not in (*NOTED, "how_to"):
            return request
        hits = self._service.find_notes(request.text, limit=1)
        if request.intent == "how_to":
            is_unanswerable = not hits and not request.settings
            intent: Intent = "unclear" if is_unanswerable else "how_to"
            return replace(request, intent=intent, unanswerable=is_unanswerable)
        if request.is_guess or request.form in ("movement", "standing", "choice"):
            return request
        words = default_tokenizer().tokens(request.text)
        is_answered = bool(hits) and hits[0].score >= NOTE_SCORE and len(words) >= NOTE_WORDS
        return replace(request, intent="how_to") if is_answered else request

    def _log(
        self, conversation: Conversation, reading: LogReading, meaning: Meaning, text: str
    ) -> Step:
        """A log: a new incident, or more of the known one."""
        others = (item for item in meaning.requests if item.intent not in NOT_BESIDE_LOG)
        requests = (UserRequest(intent="log", text=text), *others)
        if conversation.reading is None:
            return Step(conversation=with_incident(conversation, reading), requests=requests)
        why_other = other_job(conversation.reading, reading) if meaning.job != "same" else ""
        if meaning.job == "new" or why_other:
            return Step(
                conversation=with_incident(conversation, reading),
                requests=requests,
                event="asked_new" if meaning.job == "new" else "other",
                other_job=why_other,
            )
        if _repeats(conversation.reading, reading):
            merged, event = conversation.reading, "repeated"
        else:
            vocabulary = self._service.reader.vocabulary
            merged, event = merge_readings(conversation.reading, reading, vocabulary), "merged"
        return Step(
            conversation=replace(conversation, reading=merged),
            requests=requests,
            previous=conversation,
            event=event,
        )

    def _remark(self, conversation: Conversation, reading: LogReading, meaning: Meaning) -> Step:
        """A statement about the incident; without one it is the incident itself."""
        remark = meaning.remark[:MAX_REMARK_CHARS]
        requests = (self._intents.remark(remark), *meaning.requests)
        if conversation.reading is None:
            told = self._intents.observations
            unsure = (*told.suppositions(remark), *told.guesses(remark))
            certain = without_sentences(reading, unsure)
            reading = certain if certain.words.strip() else reading
            return Step(conversation=with_incident(conversation, reading), requests=requests)
        added = self._with_remark(conversation, remark)
        if requests[0].has_helped:
            return self._helped(conversation, added, requests)
        return Step(conversation=added, requests=requests, previous=conversation)

    def _helped(
        self,
        previous: Conversation,
        conversation: Conversation,
        requests: tuple[UserRequest, ...],
    ) -> Step:
        """A remark that may tell what mended it: asked for, and nothing is kept before a yes.

        The verdict is on what stood first before the remark.
        """
        assessment = assess(self._service, previous, conversation.language or "en")
        outcome = None
        if assessment is not None and assessment.diagnosis.causes:
            outcome = self._outcome(assessment, requests[0], conversation)
        return Step(
            conversation=replace(conversation, asked_outcome=outcome),
            requests=requests,
            previous=previous,
            event="helped" if outcome else "",
        )

    def _outcome(
        self, assessment: Assessment, request: UserRequest, conversation: Conversation
    ) -> IncidentOutcome:
        cause = meant_cause(assessment, self._service, request, conversation.focus)
        leading = assessment.diagnosis.causes[0].id
        verdict: Literal["right", "wrong"] = "right" if cause == leading else "wrong"
        return IncidentOutcome(verdict=verdict, cause=leading, actual=cause)

    def _ended(self, conversation: Conversation, request: UserRequest, meaning: Meaning) -> Step:
        """It ended so, or what was shown was wrong: both move the ranking."""
        assessment = assess(self._service, conversation, conversation.language or "en")
        told = conversation
        if meaning.remark:
            told = self._with_remark(conversation, meaning.remark[:MAX_REMARK_CHARS])
        if assessment is None:
            return Step(conversation=told, requests=(request,), asks=False)
        cause = meant_cause(assessment, self._service, request, conversation.focus)
        is_denied = request.settles == "denied" and not (request.causes and not request.is_denial)
        endings = conversation.endings
        outcome = None
        if is_denied:
            endings = (*endings, Ending(cause=cause, quote=request.text, is_denied=True))
        elif assessment.diagnosis.causes:  # moves nothing before somebody says yes to it
            outcome = self._outcome(assessment, request, conversation)
        return Step(
            conversation=replace(told, endings=endings, asked_outcome=outcome, focus=""),
            requests=(replace(request, causes=(cause,), settles=_SETTLES[is_denied]),),
            previous=conversation,
            asks=is_denied,
            event="ended",
        )

    def _with_remark(self, conversation: Conversation, remark: str) -> Conversation:
        misleading = self._intents.observations.misleading(remark)
        return replace(
            conversation,
            stated_causes=(*conversation.stated_causes, *self._stated(remark)),
            excluded=self._excluded(conversation, remark),
            remarks=(*conversation.remarks, remark),
            misleading=(*conversation.misleading, *misleading)[-MAX_MISLEADING:],
        )

    def _stated(self, remark: str) -> Iterator[StatedCause]:
        """What a remark says of why it happens, or does not happen."""
        explanations = self._intents.observations.explanations(remark)
        for sentence in sentences(remark):
            named, denied = self._intents.causes_by_sense(sentence)
            if not self._intents.is_ruling_out(sentence):
                named, denied = (*named, *denied), ()  # “it could not write” denies no cause
            if denied:
                yield denied_causes(sentence, denied)
            if sentence in explanations or (named and self._intents.is_conclusion(sentence)):
                stated = stated_cause(self._service, sentence, named, denied)
                if stated is not None:
                    yield stated

    def _excluded(self, conversation: Conversation, remark: str) -> tuple[str, ...]:
        """The frameworks the job does not use, as the person says; the last word counts."""
        names = framework_names(self._service.knowledge.framework_names)
        excluded = set(conversation.excluded)
        for clause in (clause for one in sentences(remark) for clause in clauses(one)):
            for name in names.named(clause):
                found = name_expression(name, ()).search(clause)
                if found and self._intents.denies_next(clause[: found.start()]):
                    excluded.add(name)
                else:
                    excluded.discard(name)
        return tuple(sorted(excluded))

    def _retraction(
        self, conversation: Conversation, reading: LogReading, meaning: Meaning
    ) -> Step:
        """A remark that no longer counts, and what is stated in its place."""
        request = replace(self._intents.remark(meaning.retraction), is_denial=False)
        left, retracted_remarks = take_back(
            conversation, request.text, self._intents.key_words, names_cause=bool(request.causes)
        )
        if not retracted_remarks and meaning.remark:  # “no, it is not X” puts right what we said
            return self._remark(conversation, reading, meaning)
        return Step(
            conversation=self._told_instead(left, meaning.remark),
            requests=(request,),
            previous=conversation,
            event="retracted",
            retracted_remarks=retracted_remarks,
        )

    def _told_instead(self, conversation: Conversation, remark: str) -> Conversation:
        """The conversation with what is stated in place of what was taken back."""
        if not remark:
            return conversation
        checks = (find_check(self._service.knowledge, check) for check in conversation.open_checks)
        result = self._intents.answer_to(remark, [check for check in checks if check is not None])
        if result is None:
            return self._with_remark(conversation, remark[:MAX_REMARK_CHARS])
        return replace(
            conversation,
            check_results=(*conversation.check_results, result),
            open_checks=tuple(one for one in conversation.open_checks if one != result.check),
        )

    def _repeat_answer(self, conversation: Conversation, request: UserRequest) -> Step:
        """The last answer in the language asked for."""
        turn = _last_answer(conversation)
        if turn is None or (conversation.reading is None and turn.reply.intent in ("log", "tell")):
            return Step(conversation=conversation, requests=(request,), asks=False)
        repeated = self._intents.repeated(turn.asked, turn.reply.intent)
        return Step(
            conversation=conversation,
            requests=(request, replace(repeated, cases=turn.reply.cases)),
            asks=turn.reply.question is not None,
            shown_changes=turn.reply.changes,
        )

    # --- the reply -------------------------------------------------------------------------

    def _reply(self, step: Step) -> tuple[Reply, Conversation]:
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
            statements=(*_switched(step, assessment, words), *_in_few_lines(answers)),
            question=base.question,
            changes=moved,
            diagnosis=diagnosis,
            suggestions=suggest(base, step.requests[-1].intent),
            outcome=step.outcome,
        )
        return reply, _after(conversation, answers, base.question)

    def _question(self, step: Step, assessment: Assessment | None, words: Words) -> Question | None:
        """The question due; none is asked twice, and none while the last one waits for its answer.

        A new one comes where the leading cause has changed since.
        """
        conversation = step.conversation
        is_next = any(request.intent == "next" for request in step.requests)
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
        return next_question(assessment, conversation, self._service.knowledge, words)


def _in_language(conversation: Conversation, meaning: Meaning) -> Conversation:
    """The conversation in the language the message asks for."""
    if not meaning.language:
        return conversation
    return replace(conversation, language=meaning.language, language_pinned=True)


def _is_hang(events: Set[str]) -> bool:
    return "hang" in events or {"distributed", "failure"} <= events


def _to_model(
    conversation: Conversation, text: str, meaning: Meaning
) -> tuple[Conversation, Meaning]:
    """What a message means to the question the language model asked: an answer is a remark.

    Its own words never become evidence: they are kept beside the answer, for the model alone.
    """
    asks = [item.intent for item in meaning.requests if item.intent not in NO_ANSWER]
    others = meaning.check_result or meaning.retraction or meaning.job or meaning.language
    if (
        others
        or (asks and not meaning.remark)
        or any(item.unanswerable for item in meaning.requests)
    ):
        return conversation, meaning
    question, closed = conversation.model_question, replace(conversation, model_question="")
    if meaning.cannot_answer:
        return closed, meaning
    answer = (meaning.remark or text)[:MAX_REMARK_CHARS]
    answers = (*conversation.model_answers, (question, answer))[-MAX_MODEL_ANSWERS:]
    meaning = replace(meaning, remark=answer, requests=())
    return replace(closed, model_answers=answers), meaning


def _asked_by(reply: Reply, open_checks: Sequence[str]) -> bool:
    """Whether the reply asked for the open check, or gave its command."""
    if reply.question is None:
        return reply.intent == "next" and bool(open_checks)
    return reply.question.check in open_checks


def _asked_first(answers: Sequence[IntentAnswer]) -> list[IntentAnswer]:
    """Answers to questions before what a remark beside them moved; a log's verdict comes first."""
    return sorted(answers, key=lambda answer: answer.request.intent == "tell")


def _switched(step: Step, assessment: Assessment | None, words: Words) -> Iterator[Statement]:
    """Which incident is answered, where the message turned to another."""
    if step.switched == "other":
        yield Statement(role="note", text=words("chat.other_incident"))
    elif step.switched == "earlier" and assessment is not None:
        title = assessment.diagnosis.headline
        yield Statement(role="note", text=words("chat.earlier_incident", title=title))


def _in_few_lines(answers: Sequence[IntentAnswer]) -> tuple[Statement, ...]:
    """What is said: of each question a few lines, of a log all."""
    said: dict[Statement, None] = {}
    for answer in _asked_first(answers):
        limit = LINES_OF_ONE if answer.is_alone else LINES_OF_SEVERAL
        is_question = answer.request.intent not in WHOLE
        shown = answer.statements[: limit if is_question else None]
        hints = (item for item in answer.statements if item.role == "hint")
        said |= dict.fromkeys((*shown, *hints))
    return tuple(said)


def _leading(assessment: Assessment) -> str:
    return assessment.diagnosis.causes[0].id if assessment.diagnosis.causes else ""


def _settled(conversation: Conversation, outcome: IncidentOutcome, reply: str, text: str) -> Step:
    """Yes or no to whether it ended so."""
    request = UserRequest(intent="outcome", text=text, causes=(outcome.actual,))
    if reply == "yes":
        ending = Ending(cause=outcome.actual, quote=text)
        return Step(
            conversation=replace(conversation, endings=(*conversation.endings, ending)),
            previous=conversation,
            requests=(replace(request, settles="confirmed"),),
            asks=False,
            event="settled",
            outcome=outcome,
        )
    return Step(
        conversation=conversation,
        requests=(replace(request, settles="denied"),),
        asks=False,
        event="settled",
    )


def _check_result(conversation: Conversation, result: CheckResult) -> Step:
    results = (*conversation.check_results, result)
    still_open = tuple(check for check in conversation.open_checks if check != result.check)
    return Step(
        conversation=replace(conversation, check_results=results, open_checks=still_open),
        requests=(UserRequest(intent="tell", text=result.quote),),
        previous=conversation,
        event="answered",
    )


def _last_answer(conversation: Conversation) -> Turn | None:
    """The last turn that was about something."""
    turns = reversed(conversation.turns)
    return next((turn for turn in turns if turn.reply.intent not in ABOUT_CHAT), None)


def _repeats(earlier: LogReading, reading: LogReading) -> bool:
    """Whether all of a paste was there before."""
    seen = {(event.pattern_id, event.text) for event in earlier.events}
    new = {(event.pattern_id, event.text) for event in reading.events}
    return bool(new) and new <= seen


def _hinted_causes(signals: Iterable[Signal]) -> tuple[str, ...]:
    """The cause each of the signals speaks for most, the strongest first."""
    best = [max(item.weights.items(), key=lambda pair: pair[1]) for item in signals if item.weights]
    best.sort(key=lambda pair: (-pair[1], pair[0]))
    return tuple(dict.fromkeys(cause for cause, weight in best if weight >= SIGN_NATS))


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
