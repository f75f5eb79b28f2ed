"""What the incident of a conversation means now (its diagnosis), and what moved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kb.chat.checks import find_check
from kb.chat.sentences import clauses
from kb.chat.types import (
    Change,
    CheckResult,
    Conversation,
    Ending,
    StatedCause,
)
from kb.diagnose.signals import DENIED_SHARE, Signal, statement_weights
from kb.diagnose.verdict import Verdict
from kb.knowledge.load import Knowledge
from kb.types.answer import Diagnosis
from kb.types.incident import LogReading
from kb.types.vocabulary import Language, Polarity

if TYPE_CHECKING:
    from kb.service import Service

CHECK_RESULT = "user:"  # names of signals that are answers to checks begin with it
# What an observed outcome of a check adds to a cause, in nats before the model's scale. A check is
# an experiment made for these causes: more than a passing remark (a cue has 0.3 to 2), less than
# the strongest log lines (3). Ruling out is what experiments do best.
SUPPORT_NATS = 1.5
REFUTE_NATS = -1.8
# What somebody says who has mended it: more than any line of the log. That what was advised did not
# help says less: it may have been done wrongly, or be one of two causes.
ENDED_NATS = 4.0
NOT_IT_NATS = -1.2
# Who tells why it happens has looked at it: as much as an outcome of a check, for the causes the
# learned reader takes the sentence for, by how clearly it does.
STATED_NATS = 2.5
CLEAR_NATS = 1.5  # of the reader, from which a sentence is a clear one
LEAST_NATS = 0.6  # of the reader; a sentence it takes for less is for no cause
STATED_CAUSES = 2  # of one sentence
ENDING = f"{CHECK_RESULT}ending:"
STATED = f"{CHECK_RESULT}stated:"
READ = f"{CHECK_RESULT}read:"  # signals of what a language model read in a remark
MOVED = 0.04  # probability by which a cause must move to be shown
CHANGES_SHOWN = 3
WHY_QUOTES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What an incident means: the verdict, and the diagnosis with all causes made of it."""

    verdict: Verdict
    diagnosis: Diagnosis

    @property
    def reading(self) -> LogReading:
        """The logs with the person's remarks."""
        return self.verdict.reading

    @property
    def signals(self) -> dict[str, Signal]:
        """What the log and the person say, by name; likeness to cases is no part of it."""
        return {item.name: item for item in self.verdict.signals if item.kind != "case"}

    def probability(self, cause: str) -> float:
        """The probability of a cause."""
        return next((item.probability for item in self.diagnosis.causes if item.id == cause), 0.0)


def assess(service: Service, conversation: Conversation, language: Language) -> Assessment | None:
    """What the conversation's incident means now, in that language; None where it has none."""
    verdict = verdict_of(service, conversation)
    if verdict is None:
        return None
    top = max(len(service.knowledge.causes), 1)
    diagnosis = service.render(verdict, language=language, top=top)
    return Assessment(verdict=verdict, diagnosis=diagnosis)


def verdict_of(service: Service, conversation: Conversation) -> Verdict | None:
    """What the logs mean with all that was said of them; None where there are none."""
    if conversation.reading is None:
        return None
    reading = _with_remarks(service, conversation.reading, conversation)
    results = _result_signals(conversation.check_results, service.knowledge)
    endings = _ending_signals(conversation.endings, service.knowledge)
    stated = _stated_signals(conversation.stated_causes, service.knowledge)
    read = _read_signals(service, reading, conversation)
    verdict = service.judge(reading, observed=(*results, *endings, *stated, *read))
    verdict = replace(verdict, uses=verdict.uses.difference(conversation.excluded))
    told = conversation.remarks or any(item.kind == "text" for item in verdict.signals)
    if verdict.status == "no_timeout" and told:
        verdict = replace(verdict, status="unknown")  # who tells of it has a problem
    return replace(verdict, answers=conversation.model_answers)


def _with_remarks(service: Service, reading: LogReading, conversation: Conversation) -> LogReading:
    """The reading with the person's remarks, the newest first: of one thing the last word counts.

    Versions and settings they name are read anew each time: one taken back is gone. Sentences that
    are misleading come first, where no learned model reads them.
    """
    remarks = conversation.remarks
    if not remarks:
        return reading
    incident = reading.incident
    for remark in remarks:
        named = service.read_text(remark).incident
        incident = replace(
            incident,
            versions=incident.versions | named.versions,
            settings=incident.settings | named.settings,
            frameworks=tuple(dict.fromkeys((*incident.frameworks, *named.frameworks))),
        )
    excluded = set(conversation.excluded)
    frameworks = tuple(name for name in incident.frameworks if name not in excluded)
    incident = replace(incident, frameworks=frameworks)
    plain = list(reversed(remarks))
    for quote in _not_trouble(conversation):
        plain = [remark.replace(quote, "").strip() for remark in plain]
    for sentence in conversation.misleading:
        plain = [remark.replace(sentence, "").strip() for remark in plain]
    misleading = [
        one for one in reversed(conversation.misleading) if any(one in r for r in remarks)
    ]
    first = "".join(f"{one}\n" for one in misleading)
    second = "".join(f"{one}\n" for one in plain if one)
    return replace(
        reading,
        words=f"{first}{second}{reading.words}",
        remark_chars=len(first),
        added_chars=len(first) + len(second),
        word_places=(),  # remarks stand on no line of the log
        incident=incident,
    )


def _not_trouble(conversation: Conversation) -> Sequence[str]:
    """Words of the remarks that a language model read as something else than trouble."""
    read = conversation.statements
    return [one.quote for one in read if one.polarity is not Polarity.TROUBLE]


def _read_signals(
    service: Service, reading: LogReading, conversation: Conversation
) -> Iterator[Signal]:
    """What a language model read in the remarks, as signals; the last word of a topic counts.

    Trouble counts where no cue of ours weighs the same words for one of its causes.
    """
    topics = {topic.id: topic for topic in service.knowledge.topics}
    read = {one.topic: one for one in conversation.statements if one.topic in topics}
    ours = service.engine.observations(reading) if read else ()
    for one in read.values():
        topic = topics[one.topic]
        weights = statement_weights(topic, one.polarity)
        if one.polarity is Polarity.TROUBLE:
            near = [item for item in ours if one.quote in item.quote or item.quote in one.quote]
            is_known = any(item.weights.get(cause) for item in near for cause in topic.trouble)
            weights = {} if is_known else topic.trouble
        if weights:
            yield Signal(
                name=f"{READ}{topic.id}",
                kind="text",
                quote=one.quote,
                line=0,
                weights=weights,
                reason_id=topic.id,
                source=f"{READ}{topic.id}",
                means=topic.title,
                polarity=one.polarity,
            )


def _result_signals(results: Sequence[CheckResult], knowledge: Knowledge) -> tuple[Signal, ...]:
    """Answers to checks as signals; of two answers to one check the later counts."""
    signals = []
    for result in {result.check: result for result in results}.values():
        check = find_check(knowledge, result.check)
        if check is None or not 1 <= result.outcome <= len(check.outcomes):
            continue
        outcome = check.outcomes[result.outcome - 1]
        share = DENIED_SHARE if result.is_denied else 1.0
        weights = dict.fromkeys(outcome.supports, SUPPORT_NATS * share)
        weights |= dict.fromkeys(outcome.refutes, REFUTE_NATS * share)
        signals.append(
            Signal(
                name=f"{CHECK_RESULT}{result.check}",
                kind="text",
                quote=result.quote,
                line=0,
                weights=weights,
                reason_id=result.check,
                source=check.sources[0] if check.sources else f"check:{check.id}",
                means=outcome.observation,
                polarity=Polarity.DENIED if result.is_denied else Polarity.TROUBLE,
            )
        )
    return tuple(signals)


def _ending_signals(endings: Sequence[Ending], knowledge: Knowledge) -> tuple[Signal, ...]:
    """What was said of how it ended as signals; of one cause the last word counts."""
    return tuple(
        Signal(
            name=f"{ENDING}{ending.cause}",
            kind="text",
            quote=ending.quote,
            line=0,
            weights={ending.cause: NOT_IT_NATS if ending.is_denied else ENDED_NATS},
            reason_id=ending.cause,
            source=f"cause:{ending.cause}",
            means=knowledge.cause_by_id[ending.cause].title,
            polarity=Polarity.DENIED if ending.is_denied else Polarity.TROUBLE,
        )
        for ending in {one.cause: one for one in endings}.values()
        if ending.cause in knowledge.cause_by_id
    )


def stated_cause(
    service: Service, sentence: str, named: Sequence[str], denied: Sequence[str]
) -> StatedCause | None:
    """What a sentence says of why it happens: the causes the learned reader takes it for.

    A cause it names counts besides, and none it denies; None where it is clear about none.
    """
    nats = service.engine.causes_of(sentence)
    for cause in named:
        nats[cause] = nats.get(cause, 0.0) + CLEAR_NATS / len(named)
    best = sorted((-value, cause) for cause, value in nats.items() if cause not in denied)
    weights = {
        cause: STATED_NATS * min(1.0, -value / CLEAR_NATS)
        for value, cause in best[:STATED_CAUSES]
        if -value >= LEAST_NATS and value <= best[0][0] / 2
    }
    return StatedCause(quote=sentence, weights=weights) if weights else None


def denied_causes(sentence: str, causes: Sequence[str]) -> StatedCause:
    """That it is none of `causes`, as the person says."""
    weights = dict.fromkeys(causes, NOT_IT_NATS)
    return StatedCause(quote=sentence, weights=weights, is_denied=True)


def _stated_signals(stated: Sequence[StatedCause], knowledge: Knowledge) -> tuple[Signal, ...]:
    """What was said of why it happens as signals; said twice it counts once."""
    latest: dict[tuple[str, ...], StatedCause] = {}
    for item in stated:
        latest[(str(item.is_denied), *sorted(item.weights))] = item
    signals = []
    for key, item in latest.items():
        cause = max(item.weights, key=lambda name: (abs(item.weights[name]), name))
        if cause in knowledge.cause_by_id:
            signals.append(
                Signal(
                    name=f"{STATED}{'-'.join(key)}",
                    kind="text",
                    quote=item.quote,
                    line=0,
                    weights=item.weights,
                    reason_id=cause,
                    source=f"cause:{cause}",
                    means=knowledge.cause_by_id[cause].title,
                    polarity=Polarity.DENIED if item.is_denied else Polarity.TROUBLE,
                )
            )
    return tuple(signals)


def changes(before: Assessment, after: Assessment, knowledge: Knowledge) -> tuple[Change, ...]:
    """The causes whose probability moved, most first, with the new evidence that moved them."""
    new = [signal for signal in _new_signals(before, after) if _is_new(signal, before)]
    moved = [
        (after.probability(cause.id) - before.probability(cause.id), cause)
        for cause in after.diagnosis.causes
    ]
    moved = [(by, cause) for by, cause in moved if abs(by) >= MOVED]
    moved.sort(key=lambda pair: (-abs(pair[0]), pair[1].id))
    return tuple(
        Change(
            cause=cause.id,
            title=cause.title,
            before=before.probability(cause.id),
            after=after.probability(cause.id),
            why=_why(cause.id, by, new, knowledge, after.diagnosis.language),
        )
        for by, cause in moved[:CHANGES_SHOWN]
    )


def _new_signals(before: Assessment, after: Assessment) -> list[Signal]:
    """Signals `after` has and `before` had not, strongest first."""
    earlier = before.signals
    new = [
        signal
        for name, signal in after.signals.items()
        if name not in earlier or earlier[name].weights != signal.weights
    ]
    return sorted(new, key=lambda signal: (-_strength(signal), signal.name))


def _is_new(signal: Signal, before: Assessment) -> bool:
    """Whether a signal quotes something that was not there before, in words or in the log."""
    known = {other.quote for other in before.signals.values()}
    return signal.quote not in known and signal.quote not in before.reading.words


def _strength(signal: Signal) -> float:
    return max((abs(weight) for weight in signal.weights.values()), default=0.0)


def _why(
    cause: str, by: float, new: Sequence[Signal], knowledge: Knowledge, language: Language
) -> tuple[str, ...]:
    """Quotes of the new evidence that itself moves `cause` that way."""
    direct = [signal for signal in new if signal.weights.get(cause, 0.0) * by > 0]
    direct = [signal for signal in direct if signal.kind != "reader"] or direct
    quotes = dict.fromkeys(_quote(signal, knowledge, language) for signal in direct)
    whole = [
        quote
        for quote in quotes
        if quote and not any(quote in other for other in quotes if other != quote)
    ]
    return tuple(whole[:WHY_QUOTES])


def _quote(signal: Signal, knowledge: Knowledge, language: Language) -> str:
    """The clause of a remark that a cue matched; an answer such as “2” by what was observed.

    Of what is denied or in order the words name the thing only, and the sentence says the rest.
    """
    if signal.name.startswith(CHECK_RESULT) and not signal.name.startswith((ENDING, STATED, READ)):
        return signal.means.get(language) if signal.means else signal.quote
    pattern = knowledge.pattern_by_id.get(signal.reason_id)
    if pattern is None or signal.kind != "text" or signal.polarity is not Polarity.TROUBLE:
        return signal.quote
    # As RE2 reads it: \b and \w know ASCII only.
    found = re.search(pattern.regex, signal.quote, re.IGNORECASE | re.ASCII)
    said = (part for part in clauses(signal.quote) if found and found.group() in part)
    return next(said, signal.quote)
