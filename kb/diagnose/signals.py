"""Signals: everything that speaks for or against a cause, in one shape.

A signal is a named observation with an expert's weight per cause in nats. Where it comes from
(a log line, a fact about ranks, a person's words) is its kind; the model scales kinds and adds
what the labelled incidents taught about single names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kb.diagnose.cues import CueHit
from kb.types import Event, EvidenceKind, Fact, FactMeaning, Pattern

DENIED_SHARE = -0.4  # a denied cue counts the other way, weakly: people deny what they looked at
SILENT_KINDS = ("noise",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One observation: `name` is unique in a diagnosis, `weights` are nats per cause id.

    `line` counts from 1 in `file` (empty: the only one); 0 where it is not known. `detail` is what
    a fact found, for its meaning's ``{detail}``.
    """

    name: str
    kind: EvidenceKind
    quote: str
    line: int
    weights: Mapping[str, float]
    reason_id: str
    source: str
    denied: bool = False
    file: str = ""
    detail: str = ""


def cue_signals(hits: Sequence[CueHit], lines: Sequence[int] = (), file: str = "") -> list[Signal]:
    """Signals of a person's words; `lines` are the numbers of the text's lines in `file`."""
    return [
        Signal(
            name=f"cue:{hit.cue.id}{'!' if hit.denied else ''}",
            kind="text",
            quote=hit.quote,
            line=lines[hit.line - 1] if hit.line <= len(lines) else 0,
            weights=_denied(hit.cue) if hit.denied else hit.cue.causes,
            reason_id=hit.cue.id,
            source=hit.cue.sources[0] if hit.cue.sources else hit.cue.id,
            denied=hit.denied,
            file=file,
        )
        for hit in hits
        if hit.denied or hit.cue.causes  # a thing named says nothing unless it is in order
    ]


def _denied(cue: Pattern) -> Mapping[str, float]:
    return cue.sound or {cause: weight * DENIED_SHARE for cause, weight in cue.causes.items()}


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
            file=fact.file,
            detail=fact.detail,
        )
    return list(signals.values())
