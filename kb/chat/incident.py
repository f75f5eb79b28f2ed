"""The incident of a conversation: what is known, what it means, what moved, what to ask next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kb.chat.clues import clue
from kb.chat.types import Answered, Change, Conversation, Option, Question, Turn
from kb.diagnose.checks import best_check
from kb.diagnose.fixes import elsewhere, fit
from kb.diagnose.given import given
from kb.diagnose.signals import DENIED_SHARE, Signal
from kb.diagnose.wording import Words
from kb.knowledge import Knowledge
from kb.types import Check, Diagnosis, Incident, Language, LogReading

if TYPE_CHECKING:
    from kb.service import Service

# What an observed outcome of a check adds to a cause, in nats before the model's scale. A check is
# an experiment made for these causes: more than a passing remark (a cue has 0.3 to 2), less than
# the strongest log lines (3). Ruling out is what experiments do best.
TOLD = "told:"  # names of signals that are answers to checks begin with it
SUPPORT_NATS = 1.5
REFUTE_NATS = -1.8
MOVED = 0.02  # probability by which a cause must move to be told
CHANGES_TOLD = 3
WHY_QUOTES = 3
ASKED_CAUSES = 4  # leading causes a question has to tell apart
UNFIT = -5.0  # of `fit`: the check is for another backend or version
FLATTER = 0.5  # power on the probabilities when the verdict is nearly certain: what would test it?


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What an incident means: the diagnosis with all causes, and the signals it rests on."""

    reading: LogReading
    diagnosis: Diagnosis
    signals: Mapping[str, Signal]

    def share(self, cause: str) -> float:
        """The probability of a cause."""
        return next((item.probability for item in self.diagnosis.causes if item.id == cause), 0.0)


def judge(service: Service, conversation: Conversation, language: Language) -> Judged | None:
    """What the conversation's incident means now; None where it has none."""
    if conversation.reading is None:
        return None
    facts = [service.read_text(remark).incident for remark in conversation.told]
    reading = with_facts(with_words(conversation.reading, conversation.told), facts)
    told = told_signals(conversation.answered, service.knowledge, language)
    diagnosis = service.answer(
        reading, language=language, told=told, top=max(len(service.knowledge.causes), 1)
    )
    signals = {signal.name: signal for signal in (*service.engine.signals(reading), *told)}
    return Judged(reading=reading, diagnosis=diagnosis, signals=signals)


def with_words(reading: LogReading, told: Sequence[str]) -> LogReading:
    """The reading with a person's remarks, the newest first: of one thing the last word counts."""
    if not told:
        return reading
    said = "\n".join(reversed(told))
    return replace(
        reading,
        words=f"{said}\n{reading.words}",
        word_lines=(),  # remarks stand on no line of the log
        description=f"{said}\n{reading.description}".strip(),
    )


def with_facts(reading: LogReading, told: Iterable[Incident]) -> LogReading:
    """The reading with the versions and settings a person named, the last word counting.

    They are read anew each time: what is taken back is gone with the remark.
    """
    incident = reading.incident
    for item in told:
        incident = replace(
            incident,
            versions=incident.versions | item.versions,
            settings=incident.settings | item.settings,
        )
    return replace(reading, incident=incident)


def told_signals(
    answered: Sequence[Answered], knowledge: Knowledge, language: Language
) -> tuple[Signal, ...]:
    """Answers to checks as signals; of two answers to one check the later counts."""
    last = {item.check: item for item in answered}
    signals = []
    for item in last.values():
        check = find_check(knowledge, item.check)
        if check is None or not 1 <= item.outcome <= len(check.outcomes):
            continue
        outcome = check.outcomes[item.outcome - 1]
        share = DENIED_SHARE if item.denied else 1.0
        weights = dict.fromkeys(outcome.supports, SUPPORT_NATS * share)
        weights |= dict.fromkeys(outcome.refutes, REFUTE_NATS * share)
        signals.append(
            Signal(
                name=f"{TOLD}{item.check}",
                kind="text",
                quote=item.quote,
                line=0,
                weights=weights,
                reason_id=outcome.observation.get(language),
                source=check.sources[0] if check.sources else f"check:{check.id}",
                denied=item.denied,
            )
        )
    return tuple(signals)


def find_check(knowledge: Knowledge, identifier: str) -> Check | None:
    """The check with that id."""
    return next(
        (check for cause in knowledge.causes for check in cause.checks if check.id == identifier),
        None,
    )


def taken_back(
    known: Conversation, words: Callable[[str], frozenset[str]], sentence: str, *, named: bool
) -> tuple[Conversation, tuple[str, ...]]:
    """The conversation without the remarks that `sentence` means, and those, as they were said.

    Meant are those that share most of `words` with it; where none shares a word, what was told or
    answered last, and nothing where the sentence names (`named`) a cause.
    """
    said = words(sentence)
    shared = [len(said & words(remark)) for remark in known.told]
    if any(shared):
        pairs = list(zip(known.told, shared, strict=True))
        told = tuple(remark for remark, common in pairs if common < max(shared))
        return replace(known, told=told), tuple(r for r, common in pairs if common == max(shared))
    if named:
        return known, ()
    latest = next((turn.asked for turn in reversed(known.turns) if _tells(turn, known)), "")
    if known.answered and known.answered[-1].quote == latest:
        return replace(known, answered=known.answered[:-1]), (latest,)
    return replace(known, told=known.told[:-1]), known.told[-1:]


def _tells(turn: Turn, known: Conversation) -> bool:
    """Whether something said in the turn still counts."""
    answers = {item.quote for item in known.answered}
    return turn.asked in answers or any(remark in turn.asked for remark in known.told)


def new_signals(before: Judged, after: Judged) -> list[Signal]:
    """Signals `after` has and `before` had not, strongest first."""
    new = [
        signal
        for name, signal in after.signals.items()
        if name not in before.signals or before.signals[name].weights != signal.weights
    ]
    return sorted(new, key=lambda signal: (-_strength(signal), signal.name))


def evidence_quote(signal: Signal, knowledge: Knowledge) -> str:
    """What to quote of a signal: the words that count, an answer such as “2” by what was seen."""
    return signal.reason_id if signal.name.startswith(TOLD) else clue(signal, knowledge)


def _strength(signal: Signal) -> float:
    return max((abs(weight) for weight in signal.weights.values()), default=0.0)


def changes(before: Judged, after: Judged, knowledge: Knowledge) -> tuple[Change, ...]:
    """The causes whose probability moved, most first, with the new evidence that moved them."""
    new = new_signals(before, after)
    moved = [
        (after.share(item.id) - before.share(item.id), item) for item in after.diagnosis.causes
    ]
    moved = [(by, item) for by, item in moved if abs(by) >= MOVED]
    moved.sort(key=lambda pair: (-abs(pair[0]), pair[1].id))
    return tuple(
        Change(
            cause=item.id,
            title=item.title,
            before=before.share(item.id),
            after=after.share(item.id),
            why=_why(item.id, by, new, knowledge),
        )
        for by, item in moved[:CHANGES_TOLD]
    )


def retitled(
    moved: Sequence[Change], knowledge: Knowledge, language: Language
) -> tuple[Change, ...]:
    """The changes with the causes' titles in that language."""
    causes = knowledge.cause_by_id
    return tuple(
        replace(item, title=causes[item.cause].title.get(language))
        for item in moved
        if item.cause in causes
    )


def _why(cause: str, by: float, new: Sequence[Signal], knowledge: Knowledge) -> tuple[str, ...]:
    """Quotes of the new evidence that moves `cause` that way, else of all that is new."""
    direct = [signal for signal in new if signal.weights.get(cause, 0.0) * by > 0]
    quotes = dict.fromkeys(evidence_quote(signal, knowledge) for signal in (direct or new))
    whole = [
        quote
        for quote in quotes
        if quote and not any(quote in other for other in quotes if other != quote)
    ]
    return tuple(whole[:WHY_QUOTES])


def next_question(
    judged: Judged, asked: Sequence[str], knowledge: Knowledge, words: Words
) -> Question | None:
    """The check not asked yet whose outcome separates the leading causes best, as a question."""
    leading = judged.diagnosis.causes[:ASKED_CAUSES]
    shares = {item.id: item.probability for item in leading}
    incident = judged.reading.incident
    known = given(judged.reading, knowledge.given)
    checks = [
        check
        for item in leading
        for check in fitting_checks(knowledge, item.id, incident)
        if check.id not in asked and check.gives not in known
    ]
    best = best_check(checks, shares)
    if best is None:
        best = best_check(checks, {cause: share**FLATTER for cause, share in shares.items()})
    return as_question(best, words) if best else None


def fitting_checks(knowledge: Knowledge, cause: str, incident: Incident) -> list[Check]:
    """The checks of a cause that can be done here, best fitting first, ties by id."""
    checks = [
        check
        for check in knowledge.cause_by_id[cause].checks
        if check.outcomes and not elsewhere(check.applies_to, incident)
    ]
    scored = [(fit(check.applies_to, incident), check) for check in checks]
    kept = [(score, check) for score, check in scored if score > UNFIT]
    return [check for _, check in sorted(kept, key=lambda pair: (-pair[0], pair[1].id))]


def as_question(check: Check, words: Words) -> Question:
    """A check as a question with its outcomes to choose from."""
    return Question(
        check=check.id,
        text=words.say("chat.ask", tells=mid_sentence(check.tells.get(words.language))),
        options=tuple(
            Option(number=number, text=outcome.observation.get(words.language))
            for number, outcome in enumerate(check.outcomes, start=1)
        ),
        command=check.command,
    )


def mid_sentence(text: str) -> str:
    """The text without the capital of a sentence's beginning; names keep theirs."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
