"""One turn: what was said is understood, the incident kept, and the answer put together."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kb.chat.answers import ANSWERERS
from kb.chat.incident import (
    Judged,
    changes,
    find_check,
    judge,
    next_question,
    retitled,
    taken_back,
)
from kb.chat.message import without_sentences
from kb.chat.suggestions import suggest
from kb.chat.talk import Heard, Said, Talk
from kb.chat.types import Answered, Change, Conversation, Question, Reply, Statement, Turn
from kb.chat.understanding import Situation, Understanding, Understood
from kb.diagnose.signals import Signal
from kb.diagnose.wording import Words
from kb.logs.merge import merge_readings, other_job
from kb.logs.timeline import meanings
from kb.types import Diagnosis, Language, LogReading

if TYPE_CHECKING:
    from kb.service import Service

MAX_TOLD_CHARS = 1000  # of one remark; longer ones are pastes
HELD = 64  # judgements held in memory, about a megabyte each at most
SIGN_NATS = 1.5  # of a cue from which a question is about its cause; weaker ones only colour it
MAX_SHOWN = 40  # cases remembered as shown
# Replies that are about the talk itself: what is said again is the answer before them.
MANNERS = frozenset({"language", "courtesy", "help", "off_topic", "unclear"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A message read: the own words (redacted), the reading of all of it."""

    own: str
    reading: LogReading
    pasted: bool
    language: Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply, and the conversation as it is after it (without the turn itself)."""

    reply: Reply
    conversation: Conversation


Key = tuple[str, float, int, Language]


class Memory:
    """The last judgements, so that a turn need not repeat the one before. Thread-safe."""

    def __init__(self) -> None:
        """Begin empty."""
        self._held: OrderedDict[Key, Judged] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Judged | None:
        """The judgement after that turn of a conversation, if it is still held."""
        with self._lock:
            return self._held.get(key)

    def put(self, key: Key, judged: Judged | None) -> None:
        """Hold a judgement; the oldest makes room."""
        if judged is None:
            return
        with self._lock:
            self._held[key] = judged
            while len(self._held) > HELD:
                self._held.popitem(last=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """A turn under way."""

    conversation: Conversation
    language: Language
    before: Judged | None = None
    event: str = ""
    other: str = ""
    retracted: tuple[str, ...] = ()
    changed: tuple[Change, ...] = ()  # by the answer that is said again


class Turns:
    """Answers messages of conversations it is handed; keeps nothing itself."""

    def __init__(self, service: Service, understanding: Understanding) -> None:
        """Answer with the knowledge of `service`."""
        self._service = service
        self._understanding = understanding
        self._memory = Memory()

    def begin(self, known: Conversation, reading: LogReading, language: Language) -> Answer:
        """Take up an incident that was read elsewhere."""
        known = replace(known, language=language)
        state = self._pasted(_State(conversation=known, language=language), reading, "")
        return self._answer(state, [Heard(intent="log", own="")], asks=True)

    def answer(self, known: Conversation, spoken: Spoken) -> Answer:
        """Answer a message."""
        state = _State(
            conversation=replace(known, language=spoken.language), language=spoken.language
        )
        if spoken.pasted:
            return self._answer_paste(state, spoken)
        understood = self._understanding.understand(spoken.own, self._situation(known, spoken))
        if understood.speaks:
            state = _in_language(state, understood.speaks)
        if understood.parts == "new":
            return self._start_over(state)
        if understood.unsure:
            return self._skip(state)
        if understood.answered is not None:
            return self._take_answer(state, understood.answered)
        if understood.retracts:
            return self._take_back(state, understood, spoken.reading)
        if understood.told:
            return self._take_told(state, understood, spoken.reading)
        heard = understood.heard or (Heard(intent="unclear", own=spoken.own),)
        if understood.speaks and heard[0].intent == "language":
            return self._say_again(state, heard[0])
        return self._answer(state, list(heard), asks=False)

    # --- what was said ---------------------------------------------------------------------

    def _situation(self, known: Conversation, spoken: Spoken) -> Situation:
        engine = self._service.engine
        check = None
        if known.open and known.asked:
            check = find_check(self._service.knowledge, known.asked[-1])
        last = known.turns[-1].reply if known.turns else None
        answered = _last_answer(known)
        events = {hit.cue.event for hit in engine.report_cues(spoken.reading)}
        return Situation(
            has_incident=known.reading is not None,
            check=check,
            reports="hang" in events or {"distributed", "failure"} <= events,
            tells=bool(events) or bool(engine.signals(spoken.reading)),
            just_asked=last is not None and last.question is not None,
            lists=answered is not None and answered.reply.intent in ("similar", "search", "case"),
            signs=_signs(engine.signals(spoken.reading)),
        )

    def _answer_paste(self, state: _State, spoken: Spoken) -> Answer:
        understood = Understood()
        if spoken.own:
            situation = Situation(has_incident=True)
            understood = self._understanding.understand(spoken.own, situation)
        if understood.speaks:
            state = _in_language(state, understood.speaks)
        state = self._pasted(state, spoken.reading, understood.parts)
        follow = [
            item
            for item in understood.heard
            if item.intent not in ("courtesy", "unclear", "off_topic", "outcome", "language")
        ]
        return self._answer(state, [Heard(intent="log", own=spoken.own), *follow], asks=True)

    def _pasted(self, state: _State, reading: LogReading, parts: str) -> _State:
        """The state with a log's reading taken in: a new incident, or more of the known one."""
        known = state.conversation
        if known.reading is None:
            return replace(state, conversation=_new_incident(known, reading))
        other = other_job(known.reading, reading) if parts != "same" else ""
        if parts == "new" or other:
            event = "asked_new" if parts == "new" else "other"
            return replace(
                state, conversation=_new_incident(known, reading), event=event, other=other
            )
        before = self._known(known, state.language)
        if _repeated(known.reading, reading):
            return replace(state, before=before, event="repeated")
        means = meanings(self._service.reader.patterns)
        merged = merge_readings(known.reading, reading, means=means)
        return replace(
            state,
            conversation=replace(known, reading=merged),
            before=before,
            event="merged",
        )

    def _take_told(self, state: _State, understood: Understood, reading: LogReading) -> Answer:
        known = state.conversation
        told = understood.told[:MAX_TOLD_CHARS]
        follow = list(understood.heard)
        if known.reading is None:
            supposed = self._understanding.suppositions(told)
            left = without_sentences(reading, supposed)
            kept = left if left.words.strip() else reading
            state = replace(state, conversation=_new_incident(known, kept))
        else:
            before = self._known(known, state.language)
            conversation = replace(known, told=(*known.told, told))
            state = replace(state, conversation=conversation, before=before)
        return self._answer(state, [self._understanding.remark(told), *follow], asks=True)

    def _take_back(self, state: _State, understood: Understood, spoken: LogReading) -> Answer:
        """A remark that no longer counts, and what is told in its place."""
        known = state.conversation
        before = self._known(known, state.language)
        meant = self._understanding.remark(understood.retracts)
        left, retracted = taken_back(
            known, self._understanding.words, meant.own, named=bool(meant.causes)
        )
        if not retracted and understood.told:  # “no, it is not X” puts right what we said
            return self._take_told(state, understood, spoken)
        told = (understood.told[:MAX_TOLD_CHARS],) if understood.told else ()
        state = replace(
            state,
            conversation=replace(left, told=(*left.told, *told)),
            before=before,
            event="retracted",
            retracted=retracted,
        )
        return self._answer(state, [replace(meant, denies=False)], asks=True)

    def _say_again(self, state: _State, wanted: Heard) -> Answer:
        """The last answer in the language asked for."""
        known = state.conversation
        turn = _last_answer(known)
        if turn is None or (known.reading is None and turn.reply.intent in ("log", "tell")):
            return self._answer(state, [wanted], asks=False)
        heard = self._understanding.again(turn.asked, turn.reply.intent)
        cases = [
            citation.id
            for statement in turn.reply.statements
            if statement.role == "case"
            for citation in statement.citations
            if citation.kind == "case"
        ]
        heard = replace(heard, cases=tuple(dict.fromkeys(cases)))
        state = replace(state, changed=turn.reply.changes)
        return self._answer(state, [wanted, heard], asks=turn.reply.question is not None)

    def _take_answer(self, state: _State, answered: Answered) -> Answer:
        known = state.conversation
        before = self._known(known, state.language)
        conversation = replace(known, answered=(*known.answered, answered), open=False)
        state = replace(state, conversation=conversation, before=before, event="answered")
        return self._answer(state, [Heard(intent="tell", own=answered.quote)], asks=True)

    def _skip(self, state: _State) -> Answer:
        """The person cannot answer: on to the next best check."""
        state = replace(state, conversation=replace(state.conversation, open=False), event="skip")
        return self._answer(state, [Heard(intent="tell", own="")], asks=True)

    def _start_over(self, state: _State) -> Answer:
        known = state.conversation
        cleared = Conversation(
            id=known.id,
            language=known.language,
            pinned=known.pinned,
            created_s=known.created_s,
            turns=known.turns,
        )
        state = replace(state, conversation=cleared, event="cleared")
        return self._answer(state, [Heard(intent="log", own="")], asks=False)

    def _known(self, known: Conversation, language: Language) -> Judged | None:
        """What the incident meant when the last turn ended."""
        if known.reading is None:
            return None
        number = known.turns[-1].reply.number if known.turns else 0
        held = self._memory.get(_key(known, number, language))
        return held or judge(self._service, known, language)

    # --- the reply -------------------------------------------------------------------------

    def _answer(self, state: _State, heard: list[Heard], *, asks: bool) -> Answer:
        known = state.conversation
        words = Words(self._service.knowledge.labels, state.language)
        judged = (
            judge(self._service, known, state.language)
            if asks
            else self._known(known, state.language)
        )
        number = known.turns[-1].reply.number + 1 if known.turns else 1
        self._memory.put(_key(known, number, state.language), judged)
        moved = retitled(state.changed, self._service.knowledge, state.language)
        if judged and state.before and state.event != "skip":
            moved = changes(state.before, judged, self._service.knowledge)
        question = self._question(state, judged, words, asks=asks)
        if not asks and any(item.intent == "next" for item in heard):
            question = question or self._question(state, judged, words, asks=True)
        talk = Talk(
            service=self._service,
            words=words,
            conversation=known,
            heard=heard[0],
            judged=judged,
            before=state.before,
            changes=moved,
            question=question,
            event=state.event,
            other=state.other,
            retracted=state.retracted,
        )
        said = [ANSWERERS[item.intent](replace(talk, heard=item)) for item in heard]
        changed = bool(judged) and heard[0].intent in ("log", "tell") and state.event != "skip"
        conversation = _after(known, said, question)
        reply = Reply(
            conversation=known.id,
            number=number,
            intent=heard[0].intent,
            language=state.language,
            statements=_together(said),
            question=question,
            changes=() if state.changed else moved,
            diagnosis=self._shown(judged) if judged and changed else None,
            suggestions=suggest(talk, heard[-1].intent),
            outcome=next((item.outcome for item in said if item.outcome), None),
        )
        return Answer(reply=reply, conversation=conversation)

    def _question(
        self, state: _State, judged: Judged | None, words: Words, *, asks: bool
    ) -> Question | None:
        """The question due: the open one again while it still tells most."""
        if judged is None or judged.diagnosis.status == "no_timeout" or not asks:
            return None
        known = state.conversation
        asked = known.asked[:-1] if known.open else known.asked  # the open one may be asked again
        return next_question(judged, asked, self._service.knowledge, words)

    def _shown(self, judged: Judged) -> Diagnosis:
        """The diagnosis as every face shows it: with as many causes as are set."""
        top = self._service.settings.top
        return replace(judged.diagnosis, causes=judged.diagnosis.causes[:top])


def _key(known: Conversation, number: int, language: Language) -> Key:
    """A turn's judgement; an id forgotten and created again is another conversation."""
    return known.id, known.created_s, number, language


def _in_language(state: _State, language: Language) -> _State:
    conversation = replace(state.conversation, language=language, pinned=True)
    return replace(state, conversation=conversation, language=language)


def _new_incident(known: Conversation, reading: LogReading) -> Conversation:
    return replace(
        known, reading=reading, told=(), answered=(), asked=(), open=False, focus="", shown=()
    )


def _last_answer(known: Conversation) -> Turn | None:
    """The last turn that was about something."""
    return next((item for item in reversed(known.turns) if item.reply.intent not in MANNERS), None)


def _repeated(known: LogReading, reading: LogReading) -> bool:
    """Whether all of a paste was there before."""
    seen = {(event.pattern_id, event.text) for event in known.events}
    return bool(reading.events) and all(
        (event.pattern_id, event.text) in seen for event in reading.events
    )


def _signs(signals: Iterable[Signal]) -> tuple[str, ...]:
    """The cause each of the signals speaks for most, the strongest first."""
    best = [max(item.weights.items(), key=lambda pair: pair[1]) for item in signals if item.weights]
    best.sort(key=lambda pair: (-pair[1], pair[0]))
    return tuple(dict.fromkeys(cause for cause, weight in best if weight >= SIGN_NATS))


def _after(known: Conversation, said: list[Said], question: Question | None) -> Conversation:
    """The conversation after the answer: what was spoken of, shown and asked."""
    focus = next((item.focus for item in reversed(said) if item.focus), known.focus)
    shown = dict.fromkeys((*known.shown, *(case for item in said for case in item.shown)))
    asked, is_open = known.asked, known.open
    if question is not None:
        asked = (*(check for check in asked if check != question.check), question.check)
        is_open = True
    return replace(known, focus=focus, shown=tuple(shown)[-MAX_SHOWN:], asked=asked, open=is_open)


def _together(said: list[Said]) -> tuple[Statement, ...]:
    """All statements, one and the same only once."""
    return tuple(dict.fromkeys(statement for item in said for statement in item.statements))
