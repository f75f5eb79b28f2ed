"""Signals: everything that speaks for or against a cause, in one shape.

A signal is a named observation with an expert's weight per cause in nats. Where it comes from
(a log line, a fact about ranks, a person's words) is its kind; the model scales kinds and adds
what the labelled incidents taught about single names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kb.diagnose.cues import CueHit
from kb.diagnose.statements import TopicStatement
from kb.settings_check.contradictions import SettingConflict
from kb.settings_check.lint import SettingHarm
from kb.types.incident import Event, Fact
from kb.types.knowledge import Bilingual, FactMeaning, Pattern, Topic
from kb.types.vocabulary import EvidenceKind, Polarity, Standing

DENIED_SHARE = -0.4  # a denied cue counts the other way, weakly: people deny what they looked at
ASKED_SHARE = 0.3  # of trouble: who asks or guesses has seen no more than the hang
TOLD_SHARE = 1.6  # of trouble that somebody reports of an incident: it was looked for and found
IN_VAIN_SHARE = -0.4  # of what a change would have cured
COUNTER = frozenset({Polarity.IN_ORDER, Polarity.DENIED, Polarity.TRIED_IN_VAIN})
SUPPOSED = frozenset({Polarity.ASKED, Polarity.GUESSED})
SILENT_KINDS = ("noise",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One observation: `name` is unique in a diagnosis, `weights` are nats per cause id.

    `line` counts from 1 in `file` (empty: the only one); 0 where it is not known. `means` says what
    it tells, None for a case's vote of its own project. `detail` fills the ``{detail}`` of `means`.
    """

    name: str
    kind: EvidenceKind
    quote: str
    line: int
    weights: Mapping[str, float]
    reason_id: str
    source: str
    means: Bilingual | None = None
    polarity: Polarity = Polarity.TROUBLE
    file: str = ""
    detail: str = ""

    @property
    def rules_out(self) -> bool:
        """Whether it only speaks against causes, on a person's word."""
        signs = {weight > 0 for weight in self.weights.values() if weight}
        return self.kind == "text" and (self.polarity in COUNTER or signs == {False})


def cue_signals(hits: Sequence[CueHit], places: Sequence[tuple[str, int]] = ()) -> list[Signal]:
    """Signals of a person's words; `places` are file and number of the text's lines."""
    return [
        Signal(
            name=f"cue:{hit.cue.id}{_SUFFIX.get(hit.polarity, '')}",
            kind="text",
            quote=hit.quote,
            line=places[hit.line - 1][1] if hit.line <= len(places) else 0,
            weights=weights,
            reason_id=hit.cue.id,
            source=hit.cue.sources[0] if hit.cue.sources else hit.cue.id,
            means=hit.cue.means,
            polarity=hit.polarity,
            file=places[hit.line - 1][0] if hit.line <= len(places) else "",
        )
        for hit in hits
        if (weights := _cue_weights(hit))
    ]


# What the labelled incidents taught about a cue is of the cue as it stands.
_SUFFIX = {
    Polarity.IN_ORDER: "!",
    Polarity.DENIED: "!",
    Polarity.ASKED: "?",
    Polarity.GUESSED: "?",
}


def _cue_weights(hit: CueHit) -> Mapping[str, float]:
    """A thing that is only named weighs nothing; what came of a change is its topic's to say."""
    causes = hit.cue.causes
    if hit.is_stated and hit.polarity in COUNTER:
        return {}
    if hit.denied:
        return hit.cue.sound or _share(causes, DENIED_SHARE)
    if hit.polarity in SUPPOSED:
        return _share(causes, ASKED_SHARE)
    return causes if hit.polarity in (Polarity.TROUBLE, Polarity.HELPED) else {}


def statement_signals(
    statements: Sequence[TopicStatement],
    hits: Sequence[CueHit],
    places: Sequence[tuple[str, int]] = (),
    *,
    added_chars: int = 0,
) -> list[Signal]:
    """Signals of statements, each topic and polarity once, where no cue's hit says as much.

    Trouble that is reported later, in the first `added_chars`, is an answer: it weighs for the
    causes of its topic. In a description it is the learned reader's to weigh.
    """
    signals: dict[str, Signal] = {}
    for item in statements:
        weights = statement_weights(item.topic, item.polarity)
        if item.polarity is Polarity.TROUBLE and item.left < added_chars:
            weights = _share(item.topic.trouble, TOLD_SHARE)
        name = f"topic:{item.topic.id}:{item.polarity}"
        if item.standing is Standing.GENERIC:
            continue  # "the GPU": too general to weigh
        if not weights or name in signals or _says_as_much(item, weights, hits):
            continue
        signals[name] = Signal(
            name=name,
            kind="text",
            quote=item.quote,
            line=places[item.line - 1][1] if item.line <= len(places) else 0,
            weights=weights,
            reason_id=item.topic.id,
            source=name,
            means=item.topic.title,
            polarity=item.polarity,
            file=places[item.line - 1][0] if item.line <= len(places) else "",
        )
    return list(signals.values())


def statement_weights(topic: Topic, polarity: Polarity) -> Mapping[str, float]:
    """What it says of a topic that it is so: nats per cause; trouble is its words' to weigh."""
    match polarity:
        case Polarity.IN_ORDER | Polarity.DENIED:
            return topic.in_order
        case Polarity.TRIED_IN_VAIN:
            return _share(topic.cures, IN_VAIN_SHARE)
        case Polarity.HELPED:
            return topic.cures
        case Polarity.ASKED | Polarity.GUESSED:
            return _share(topic.trouble, ASKED_SHARE)
        case _:
            return {}


def _says_as_much(
    item: TopicStatement, weights: Mapping[str, float], hits: Sequence[CueHit]
) -> bool:
    """Whether a cue of the same sentence weighs a cause of the statement in the same direction."""
    for hit in hits:
        if item.left <= hit.start < item.right:
            others = _cue_weights(hit)
            if any(weight * others.get(cause, 0.0) > 0 for cause, weight in weights.items()):
                return True
    return False


def _share(causes: Mapping[str, float], share: float) -> dict[str, float]:
    return {cause: weight * share for cause, weight in causes.items()}


def event_signals(events: Sequence[Event], patterns: Mapping[str, Pattern]) -> list[Signal]:
    """Signals of log lines: each pattern once, at its first line."""
    signals: dict[str, Signal] = {}
    for event in events:
        pattern = patterns.get(event.pattern_id)
        if pattern is None or pattern.kind in SILENT_KINDS or pattern.id in signals:
            continue
        signals[pattern.id] = Signal(
            name=f"log:{pattern.id}",
            kind="log",
            quote=event.text,
            line=event.line,
            weights=pattern.causes,
            reason_id=pattern.id,
            source=pattern.sources[0] if pattern.sources else pattern.id,
            means=pattern.means,
            file=event.file,
        )
    return list(signals.values())


def fact_signals(facts: Sequence[Fact], meanings: Mapping[str, FactMeaning]) -> list[Signal]:
    """Signals of derived facts: each name once; a fact nobody gave a meaning says nothing."""
    signals: dict[str, Signal] = {}
    for fact in facts:
        meaning = meanings.get(fact.name)
        if meaning is None or fact.name in signals:
            continue
        signals[fact.name] = Signal(
            name=f"fact:{fact.name}",
            kind="rank",
            quote=fact.quote,
            line=fact.line,
            weights=meaning.causes,
            reason_id=fact.name,
            source=f"fact:{fact.name}",
            means=meaning.means,
            file=fact.file,
            detail=fact.detail,
        )
    return list(signals.values())


def conflict_signals(conflicts: Sequence[SettingConflict]) -> list[Signal]:
    """Signals of contradicting settings: each relation once, at its first value."""
    meanings = {
        item.contradiction.id: FactMeaning(
            id=item.contradiction.id,
            means=item.contradiction.means,
            causes=item.contradiction.causes,
        )
        for item in conflicts
    }
    return fact_signals([conflict.fact() for conflict in conflicts], meanings)


def harm_signals(harms: Sequence[SettingHarm]) -> list[Signal]:
    """Signals of settings whose values do harm: each setting once."""
    signals: dict[str, Signal] = {}
    for harm in harms:
        name = f"setting:{harm.setting.name}"
        signals.setdefault(
            name,
            Signal(
                name=name,
                kind="rank",
                quote=harm.quote,
                line=harm.setting.line,
                weights=harm.rule.causes,
                reason_id=name,
                source=harm.rule.source or name,
                means=harm.rule.explanation,
                file=harm.setting.file,
            ),
        )
    return list(signals.values())
