"""What a message does to an incident: a log, a remark, how it ended, what is taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from kb.chat.answers.answer import Step
from kb.chat.assessment import (
    CLEAR_NATS,
    Assessment,
    assess,
    denied_causes,
    stated_cause,
)
from kb.chat.checks import find_check
from kb.chat.corrections import CorrectionReader, take_back, without, words_that_count
from kb.chat.endings import meant_cause
from kb.chat.incidents import with_incident
from kb.chat.intents import IntentReader
from kb.chat.meaning import Meaning, Settled, UserRequest
from kb.chat.paste import without_sentences
from kb.chat.sentences import clauses, sentences
from kb.chat.types import (
    CheckResult,
    Conversation,
    Ending,
    IncidentOutcome,
    Intent,
    ReadStatement,
    StatedCause,
)
from kb.knowledge.framework_names import framework_names, name_expression
from kb.logs.incident.merge import merge_readings, other_job
from kb.types.incident import LogReading

if TYPE_CHECKING:
    from kb.service import Service

MAX_REMARK_CHARS = 1000  # longer ones are pastes
MAX_MISLEADING = 100  # sentences
MAX_STATEMENTS = 100  # that a language model read
_SETTLES: dict[bool, Settled] = {True: "denied", False: "confirmed"}
# Replies about the conversation itself: what is repeated is the answer before them.
ABOUT_CHAT: frozenset[Intent] = frozenset(
    {"language", "courtesy", "impatient", "help", "off_topic", "unclear"}
)
# What is not answered beside a log.
NOT_BESIDE_LOG = ABOUT_CHAT - {"help"} | {"outcome"}


class IncidentSteps:
    """Makes the steps of messages about incidents; stores nothing itself."""

    def __init__(self, service: Service, intents: IntentReader) -> None:
        """Read remarks with `intents`."""
        self._service = service
        self._intents = intents
        engine = service.engine
        self._corrections = CorrectionReader(intents.phrases, engine.topics_in, intents.key_words)

    def log(
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

    def remark(self, conversation: Conversation, reading: LogReading, meaning: Meaning) -> Step:
        """A statement about the incident; without one it is the incident itself."""
        remark = meaning.remark[:MAX_REMARK_CHARS]
        heard = self._intents.remark(remark, message=meaning.text)
        requests = (heard, *meaning.requests)
        if conversation.reading is None:
            told = self._intents.observations
            unsure = (*told.suppositions(remark), *told.guesses(remark))
            certain = without_sentences(reading, unsure)
            reading = certain if certain.words.strip() else reading
            return Step(conversation=with_incident(conversation, reading), requests=requests)
        reader = self._intents.sentence_reader
        is_awaited = reader.tells_progress if heard.is_trying else reader.is_trying
        trouble = self._intents.phrases.is_still_trouble
        facts = [one for one in sentences(remark) if not is_awaited(one) or trouble(one)]
        added = self.with_remark(conversation, " ".join(facts), meaning.statements)
        if heard.is_trying:
            step = Step(conversation=added, requests=requests, previous=conversation)
            return replace(step, event="trying", asks=False)
        if heard.has_helped:
            heard = replace(heard, text=meaning.text or remark)
            return self._helped(conversation, added, (heard,))
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

    def settle(
        self, conversation: Conversation, outcome: IncidentOutcome, reply: str, text: str
    ) -> Step:
        """Yes or no to how it ended; “no, it was the switch” is asked about once more."""
        step = _settled(replace(conversation, asked_outcome=None), outcome, reply, text)
        other = [] if reply == "yes" else self._named_instead(text, outcome.actual)
        if not other:
            return step
        instead = replace(outcome, verdict="wrong", actual=other[0])
        asked = replace(step.conversation, asked_outcome=instead)
        return replace(step, conversation=asked, event="ended")

    def _named_instead(self, text: str, denied: str) -> list[str]:
        """The causes that a “no” says it was instead, by their names or by what it tells."""
        named, _ = self._intents.phrases.causes_by_sense(text)
        other = [cause for cause in named if cause != denied]
        told = [one for one in sentences(text) if self._intents.phrases.concludes(one)]
        if other or not told:
            return other
        nats = self._service.engine.causes_of(" ".join(told))
        best = max(nats, key=lambda cause: (nats[cause], cause), default="")
        return [best] if best and best != denied and nats[best] >= CLEAR_NATS else []

    def ended(self, conversation: Conversation, request: UserRequest, meaning: Meaning) -> Step:
        """It ended so, or what was shown was wrong: both move the ranking."""
        assessment = assess(self._service, conversation, conversation.language or "en")
        told = conversation
        if meaning.remark:
            remark = meaning.remark[:MAX_REMARK_CHARS]
            told = self.with_remark(conversation, remark, meaning.statements)
        if assessment is None:
            return Step(conversation=told, requests=(request,), asks=False)
        request = self._with_causes(request, meaning.text)
        cause = meant_cause(assessment, self._service, request, conversation.focus)
        goes_on = self._intents.phrases.is_still_trouble(request.text)  # tried, and in vain
        names_another = bool(request.causes) and not request.is_denial and not goes_on
        is_denied = request.settles == "denied" and not names_another
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

    def _with_causes(self, request: UserRequest, message: str) -> UserRequest:
        """The request of how it ended, with all that the message says of which cause it was."""
        if request.settles != "confirmed" or request.causes or not message:
            return request
        named, _ = self._intents.phrases.causes_by_sense(message)
        return replace(request, text=message, causes=named)

    def with_remark(
        self, conversation: Conversation, remark: str, read: Sequence[ReadStatement] = ()
    ) -> Conversation:
        """The conversation with a remark, and what it says of causes and frameworks.

        `read` is what a language model read in it.
        """
        if not remark.strip():
            return conversation
        misleading = self._intents.observations.misleading(remark)
        return replace(
            conversation,
            stated_causes=(*conversation.stated_causes, *self._stated(remark)),
            excluded=self._excluded(conversation, remark),
            remarks=(*conversation.remarks, remark),
            statements=(*conversation.statements, *read)[-MAX_STATEMENTS:],
            misleading=(*conversation.misleading, *misleading)[-MAX_MISLEADING:],
        )

    def _stated(self, remark: str) -> Iterator[StatedCause]:
        """What a remark says of why it happens, or does not happen."""
        explanations = self._intents.observations.explanations(remark)
        for sentence in sentences(remark):
            named, denied = self._intents.phrases.causes_by_sense(sentence)
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
                if found and self._intents.phrases.denies_next(clause[: found.start()]):
                    excluded.add(name)
                else:
                    excluded.discard(name)
        return tuple(sorted(excluded))

    def retraction(self, conversation: Conversation, reading: LogReading, meaning: Meaning) -> Step:
        """A remark that no longer counts, and what is stated in its place."""
        request = replace(self._intents.remark(meaning.retraction), is_denial=False)
        is_disowned = self._intents.phrases.is_disowned(request.text)
        if meaning.retracted:
            left, retracted_remarks = without(conversation, meaning.retracted), meaning.retracted
        else:
            left, retracted_remarks = take_back(
                conversation,
                request.text,
                self._topics_and_words,
                self._service.knowledge,
                names_it=bool(request.causes or request.platforms or request.settings)
                or is_disowned,
                is_disowned=is_disowned,
            )
        if not retracted_remarks and meaning.remark:  # “no, it is not X” puts right what we said
            return self.remark(conversation, reading, meaning)
        if not retracted_remarks and is_disowned:
            heard = (request, *meaning.requests)
            return Step(conversation=conversation, requests=heard, event="complaint", asks=False)
        return Step(
            conversation=self._told_instead(left, meaning),
            requests=(request, *meaning.requests),
            previous=conversation,
            event="retracted",
            retracted_remarks=retracted_remarks,
        )

    def _topics_and_words(self, text: str) -> frozenset[str]:
        return self._intents.key_words(text) | self._service.engine.topics_in(text)

    def correction(self, conversation: Conversation, text: str) -> Step | None:
        """What a message puts right of what was said before; None where it puts nothing right."""
        described = _description(conversation)
        found = self._corrections.read(text, (*described, *words_that_count(conversation)))
        if found is None:
            return None
        left = without(conversation, (found.old,))
        if found.old in described:
            rest = " ".join(one for one in described if one != found.old) or found.new
            left = replace(left, reading=self._service.read_text(rest))
        told = self._told_instead(left, Meaning(remark=found.new))
        return Step(
            conversation=told,
            requests=(replace(self._intents.remark(found.new), is_denial=False),),
            previous=conversation,
            event="retracted",
            retracted_remarks=(found.old,),
            instead=found.new,
        )

    def _told_instead(self, conversation: Conversation, meaning: Meaning) -> Conversation:
        """The conversation with what is stated in place of what was taken back."""
        remark = meaning.remark
        if not remark:
            return conversation
        checks = (find_check(self._service.knowledge, check) for check in conversation.open_checks)
        result = self._intents.answer_to(remark, [check for check in checks if check is not None])
        if result is None:
            return self.with_remark(conversation, remark[:MAX_REMARK_CHARS], meaning.statements)
        return replace(
            conversation,
            check_results=(*conversation.check_results, result),
            open_checks=tuple(one for one in conversation.open_checks if one != result.check),
        )


def _description(conversation: Conversation) -> list[str]:
    """The sentences that began an incident without any output."""
    reading = conversation.reading
    return sentences(reading.words) if reading is not None and not reading.events else []


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


def answered(
    conversation: Conversation, result: CheckResult, requests: tuple[UserRequest, ...] = ()
) -> Step:
    """An outcome of a check was reported, beside other `requests`."""
    results = (*conversation.check_results, result)
    still_open = tuple(check for check in conversation.open_checks if check != result.check)
    return Step(
        conversation=replace(conversation, check_results=results, open_checks=still_open),
        requests=(UserRequest(intent="tell", text=result.quote), *requests),
        previous=conversation,
        event="answered",
    )


def _repeats(earlier: LogReading, reading: LogReading) -> bool:
    """Whether all of a paste was there before."""
    seen = {(event.pattern_id, event.text) for event in earlier.events}
    new = {(event.pattern_id, event.text) for event in reading.events}
    return bool(new) and new <= seen
