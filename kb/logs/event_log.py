"""The events of one input, with what the knowledge says about their kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kb.knowledge.labels import in_both_languages
from kb.knowledge.load import Knowledge
from kb.text.polarity import PolarityReader
from kb.types.incident import Event
from kb.types.knowledge import Bilingual, EventType, Framework, Pattern, PolarityMark
from kb.types.vocabulary import EventRole, PatternKind, Stage


class EventVocabulary:
    """The patterns of logs, the kinds of events they make, frameworks, and labels for findings.

    Attributes:
        patterns: what to look for, noise with it.
        frameworks: what a log may name, by id.
        polarity: decides how a person's line means what it names.
        recoveries: kinds of events that withdraw others.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        types: Sequence[EventType],
        frameworks: Sequence[Framework],
        labels: Mapping[str, Bilingual],
        polarity: Sequence[PolarityMark] = (),
    ) -> None:
        self.patterns = tuple(patterns)
        self._types = {item.id: item for item in types}
        self.frameworks = {item.id: item for item in frameworks}
        self.recoveries = frozenset(name for item in types for name in item.withdrawn_by)
        self._labels = labels
        self.polarity = PolarityReader(polarity)
        self._means = {pattern.id: pattern.means for pattern in self.patterns}
        self._players = {
            role: frozenset(item.id for item in types if role in item.roles) for role in EventRole
        }

    @classmethod
    def of(cls, knowledge: Knowledge) -> EventVocabulary:
        """The vocabulary of the loaded knowledge."""
        return cls(
            knowledge.patterns,
            knowledge.events,
            knowledge.frameworks,
            knowledge.labels,
            knowledge.polarity,
        )

    def players(self, *roles: EventRole) -> frozenset[str]:
        """The kinds of events that play one of the roles."""
        return frozenset().union(*(self._players[role] for role in roles))

    def plays(self, event: Event | Pattern, role: EventRole) -> bool:
        """Whether an event, or the events of a pattern, play the role."""
        return event.event in self._players[role]

    def type_of(self, event: Event) -> EventType | None:
        """The kind of an event; None for one of a conversation that older patterns read."""
        return self._types.get(event.event)

    def means(self, event: Event) -> Bilingual:
        """What an event means: its pattern's words, else those of its kind."""
        known = self._means.get(event.pattern_id)
        if known is not None:
            return known
        kind = self.type_of(event)
        return kind.means if kind is not None else Bilingual(zh=event.event, en=event.event)

    def label(self, name: str, **values: object) -> Bilingual:
        """The label `name` of data/labels in both languages, its braces filled with `values`."""
        return in_both_languages(self._labels, name, **values)


@dataclass(frozen=True)
class EventLog:
    """The events of one input, in its order."""

    events: tuple[Event, ...]
    vocabulary: EventVocabulary

    @cached_property
    def _kinds(self) -> frozenset[str]:
        """The kinds of its events: of most roles there are none."""
        return frozenset(event.event for event in self.events)

    def plays(self, event: Event, role: EventRole) -> bool:
        """Whether an event plays the role."""
        return self.vocabulary.plays(event, role)

    def of(self, *roles: EventRole) -> list[Event]:
        """The events that play one of the roles."""
        kinds = self._kinds & self.vocabulary.players(*roles)
        return [event for event in self.events if event.event in kinds] if kinds else []

    def of_kind(self, *kinds: PatternKind) -> list[Event]:
        """The events whose patterns are of one of the kinds."""
        return [event for event in self.events if event.kind in kinds]

    def stage(self, event: Event) -> Stage | None:
        """The part of a run that an event shows."""
        kind = self.vocabulary.type_of(event)
        return kind.stage if kind is not None else None
