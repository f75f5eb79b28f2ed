"""One turn: a message and the conversation in, the reply and the conversation after it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kb.chat.answers.answer import Step, Switch
from kb.chat.checks import find_check
from kb.chat.endings import CONFIRM
from kb.chat.field_questions import OF_AN_INCIDENT, FieldQuestions, is_hang, reported_events
from kb.chat.incident_steps import (
    ABOUT_CHAT,
    MAX_REMARK_CHARS,
    NOT_BESIDE_LOG,
    IncidentSteps,
    answered,
)
from kb.chat.incidents import is_just_begun, with_earlier, with_incident
from kb.chat.intents import NO_ANSWER, IntentReader
from kb.chat.meaning import Meaning, Situation, UserRequest
from kb.chat.model_reading import MessageModel
from kb.chat.replies import words_of
from kb.chat.reply import ReplyWriter
from kb.chat.sentences import sentences
from kb.chat.types import (
    CheckResult,
    Conversation,
    Intent,
    Reply,
    Turn,
)
from kb.diagnose.signals import Signal
from kb.text.tokenizer import default_tokenizer
from kb.types.incident import LogReading
from kb.types.vocabulary import Polarity

if TYPE_CHECKING:
    from kb.second_reader.message_reading import MessageReading
    from kb.service import Service

SIGN_NATS = 1.5  # of a cue from which a question is about its cause; weaker ones only colour it
MAX_MODEL_ANSWERS = 8  # the last ones are sent again with the report
# Requests that a note may answer better than what is known of the incident.
NOTED: frozenset[Intent] = frozenset(
    {"happened", "cause", "fix", "next", "help", "unclear", "off_topic", "search", "why"}
)
NOTE_SCORE = 0.68  # of a note that answers such a request
NOTE_WORDS = 3  # of such a request; “what now?” is about the incident


class Dialogue:
    """Answers messages of conversations it is handed; stores nothing itself."""

    def __init__(
        self,
        service: Service,
        intents: IntentReader,
        questions: FieldQuestions,
        model: MessageModel,
    ) -> None:
        """Answer with the knowledge of `service`; `model` knows what its readings mean."""
        self._model = model
        self._service = service
        self._intents = intents
        self._questions = questions
        self._steps = IncidentSteps(service, intents)
        self._reply = ReplyWriter(service, intents.phrases).write

    def begin(self, conversation: Conversation, reading: LogReading) -> tuple[Reply, Conversation]:
        """Take up an incident that was read elsewhere."""
        return self._reply(self._steps.log(conversation, reading, Meaning(), ""))

    def answer(
        self,
        conversation: Conversation,
        text: str,
        reading: LogReading,
        *,
        has_output: bool,
        read: MessageReading | None = None,
    ) -> tuple[Reply, Conversation]:
        """Answer a message.

        Args:
            conversation: its language is that of the reply.
            text: the person's own words, redacted.
            reading: the whole message, read as a log.
            has_output: whether there is program output beside the words.
            read: what a language model read in the words.
        """
        if has_output:
            meaning = self._intents.read(text, Situation(has_incident=True)) if text else Meaning()
            conversation = _in_language(conversation, meaning)
            current = replace(conversation, unanswered="", asked_outcome=None)
            if meaning.refusals:
                current = self._without_tools(current, meaning.refusals)
            return self._reply(self._steps.log(current, reading, meaning, text))
        whole = text
        conversation, text, settled = self._settle_first(conversation, text)
        conversation, text, switched = self._turn_to(conversation, text)
        if switched or settled is not None:
            reading = self._service.read_text(text)
        situation = self._situation(conversation, reading)
        if switched == "other":
            meaning = self._intents.read(text, situation)
            meaning = replace(meaning, remark=meaning.remark or text, job="")
        else:
            believed = read if text == whole and not switched else None
            meaning = self._meaning(conversation, text, situation, believed)
        conversation = replace(_in_language(conversation, meaning), unanswered="")
        if conversation.model_question:
            conversation, meaning = _to_model(conversation, text, meaning)
        outcome = conversation.asked_outcome
        if meaning.settled and outcome is not None:
            return self._reply(self._steps.settle(conversation, outcome, meaning.settled, text))
        if meaning.refusals:
            conversation = self._without_tools(conversation, meaning.refusals)
        step = self._step(conversation, text, reading, meaning)
        if meaning.refusals and not step.event:
            step = replace(step, asks=True, event="refused" if meaning.remark else "skip")
        outcome = settled.outcome if settled else None
        return self._reply(replace(step, switched=switched, outcome=outcome))

    def _meaning(
        self,
        conversation: Conversation,
        text: str,
        situation: Situation,
        read: MessageReading | None,
    ) -> Meaning:
        """What the text means: as a language model `read` it, else as the fitted reader does."""
        meaning = self._model.meaning(read, conversation, text, situation) if read else None
        if meaning is not None:
            return meaning
        meaning = self._intents.read(text, situation)
        if situation.has_incident:
            return meaning
        return self._questions.meaning(text, meaning)

    def _settle_first(
        self, conversation: Conversation, text: str
    ) -> tuple[Conversation, str, Step | None]:
        """The conversation after a yes or no to how it ended, and what the message says besides.

        A message that says nothing besides is read as a whole.
        """
        outcome, (first, *others) = conversation.asked_outcome, sentences(text) or [""]
        rest = " ".join(others)
        if outcome is None or not self._intents.tells(rest):
            return conversation, text, None
        meaning = self._intents.read(
            first, self._situation(conversation, self._service.read_text(first))
        )
        if not meaning.settled or self._intents.phrases.concludes(rest):
            return conversation, text, None
        step = self._steps.settle(conversation, outcome, meaning.settled, first)
        return step.conversation, rest, step

    # --- what the message does -------------------------------------------------------------

    def _situation(self, conversation: Conversation, reading: LogReading) -> Situation:
        signals = self._service.engine.observations(reading)
        events = reported_events(self._service, reading)
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
            reports_hang=is_hang(events),
            has_evidence=bool(events or signals),
            after_cases=answered is not None
            and answered.reply.intent in ("similar", "search", "case"),
            after_fixes=answered is not None and answered.reply.intent == "fix",
            hinted_causes=_hinted_causes(signals),
        )

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
            conversation = self._steps.with_remark(conversation, before[:MAX_REMARK_CHARS])
        return with_incident(conversation, None), rest, "other"

    def _without_tools(self, conversation: Conversation, refusals: Sequence[str]) -> Conversation:
        """The conversation without the tools refused; a check that needs one is open no longer."""
        phrases = self._intents.phrases
        tools: set[str] = set()
        for sentence in refusals:
            tools |= phrases.tools_in(sentence)
            if phrases.is_job_gone(sentence) or phrases.names_stacks(sentence):
                tools.add(phrases.running)
        known = (find_check(self._service.knowledge, one) for one in conversation.open_checks)
        left = tuple(
            check.id
            for check in known
            if check is not None and tools and not phrases.tools_in(check.command) & tools
        )
        refused = tuple(sorted({*conversation.refused_tools, *tools}))
        return replace(conversation, refused_tools=refused, open_checks=left)

    def _step(
        self, conversation: Conversation, text: str, reading: LogReading, meaning: Meaning
    ) -> Step:
        noted = tuple(self._noted(request) for request in meaning.requests)
        if meaning.remark:  # a fact is answered; what nothing of ours answers beside it is not
            noted = tuple(one for one in noted if one.intent not in NO_ANSWER or one.form)
        meaning = replace(meaning, requests=noted, text=text)
        if meaning.job == "new":
            return self._new_job(conversation, reading, meaning)
        if meaning.check_result is not None and self._tells_other(meaning.check_result):
            told = replace(meaning, check_result=None, remark=meaning.check_result.quote)
            return self._steps.remark(conversation, reading, told)
        if meaning.cannot_answer or meaning.check_result is not None:
            return self._check_answered(conversation, meaning)
        if conversation.reading is not None and not meaning.retracted:
            corrected = self._steps.correction(conversation, text)
            if corrected is not None:
                return corrected
        if meaning.retraction:
            return self._steps.retraction(conversation, reading, meaning)
        ended = next((item for item in meaning.requests if item.intent == "outcome"), None)
        if ended is not None and conversation.reading is not None:
            return self._steps.ended(conversation, ended, meaning)
        if meaning.remark:
            return self._steps.remark(conversation, reading, meaning)
        return self._only_questions(conversation, text, meaning)

    def _new_job(self, conversation: Conversation, reading: LogReading, meaning: Meaning) -> Step:
        cleared = with_incident(conversation, None)
        if meaning.remark:
            return self._steps.remark(cleared, reading, meaning)
        return Step(conversation=cleared, requests=(UserRequest(intent="log"),), asks=False)

    def _tells_other(self, result: CheckResult) -> bool:
        """Whether what was taken as an answer reports trouble of which the check says nothing.

        "Two threads send at once" tells more than that the stacks differ.
        """
        engine = self._service.engine
        check = find_check(self._service.knowledge, result.check)
        asked = engine.topics_in("\n".join(words_of(check))) if check is not None else frozenset()
        told = engine.statements(result.quote)
        return any(
            item.polarity is Polarity.TROUBLE and item.topic.id not in asked for item in told
        )

    def _check_answered(self, conversation: Conversation, meaning: Meaning) -> Step:
        """An outcome of a check, with what is told and asked beside it; or on to the next check."""
        if meaning.check_result is None:
            skipped = replace(conversation, open_checks=conversation.open_checks[:-1])
            return Step(conversation=skipped, requests=(UserRequest(intent="tell"),), event="skip")
        told = conversation
        if meaning.remark:
            remark = meaning.remark[:MAX_REMARK_CHARS]
            told = self._steps.with_remark(conversation, remark, meaning.statements)
        asked = tuple(item for item in meaning.requests if item.intent not in NOT_BESIDE_LOG)
        return replace(answered(told, meaning.check_result, asked), previous=conversation)

    def _only_questions(self, conversation: Conversation, text: str, meaning: Meaning) -> Step:
        """What a message only asks, which moves nothing."""
        if conversation.reading is None and meaning.requests:
            begun = self._begun_before(conversation, text, meaning)
            if begun is not None:
                return begun
        if meaning.is_complaint or (meaning.refusals and not meaning.requests):
            heard = UserRequest(intent="tell", text=text)
            event = "complaint" if meaning.is_complaint else "skip"
            return Step(conversation=conversation, requests=(heard,), event=event, asks=False)
        requests = meaning.requests or (UserRequest(intent="unclear", text=text),)
        if meaning.language and requests[0].intent == "language":
            return self._repeat_answer(conversation, requests[0])
        return Step(conversation=conversation, requests=requests, asks=False)

    def _begun_before(self, conversation: Conversation, text: str, meaning: Meaning) -> Step | None:
        """The incident that earlier messages told of, where one asks of it; None without one."""
        if not any(request.intent in OF_AN_INCIDENT for request in meaning.requests):
            return None
        told = "\n".join((*(turn.asked for turn in conversation.turns), text))
        reading = self._service.read_text(told)
        if not conversation.turns or not self._service.engine.report_cues(reading):
            return None
        requests = tuple(item for item in meaning.requests if item.intent not in ABOUT_CHAT)
        meaning = replace(meaning, remark=told, requests=requests)
        return self._steps.remark(conversation, reading, meaning)

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


def _in_language(conversation: Conversation, meaning: Meaning) -> Conversation:
    """The conversation in the language the message asks for."""
    if not meaning.language:
        return conversation
    return replace(conversation, language=meaning.language, language_pinned=True)


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


def _last_answer(conversation: Conversation) -> Turn | None:
    """The last turn that was about something."""
    turns = reversed(conversation.turns)
    return next((turn for turn in turns if turn.reply.intent not in ABOUT_CHAT), None)


def _hinted_causes(signals: Iterable[Signal]) -> tuple[str, ...]:
    """The cause each of the signals speaks for most, the strongest first."""
    best = [max(item.weights.items(), key=lambda pair: pair[1]) for item in signals if item.weights]
    best.sort(key=lambda pair: (-pair[1], pair[0]))
    return tuple(dict.fromkeys(cause for cause, weight in best if weight >= SIGN_NATS))
