"""What an answerer has to go by, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kb.chat.incident import Judged
from kb.chat.phrases import Place, Settles
from kb.chat.types import (
    Change,
    Citation,
    Conversation,
    Intent,
    Outcome,
    Question,
    Statement,
    StatementRole,
)
from kb.diagnose.wording import Placed, Words
from kb.knowledge import Knowledge
from kb.types import Cause, Diagnosis, Incident, Language, RankedCause

if TYPE_CHECKING:
    from kb.service import Service

QUOTE_CHARS = 200
MAX_SOURCES = 3  # pages cited for one statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a message was understood as.

    Attributes:
        own: the sentence of the person it stands in, redacted.
        query: what to search with where it asks for something.
        causes, places, ordinal: what it names: causes, backends and frameworks, a place in a list.
        settings: names of settings, as data/advice.yaml knows them or as written.
        settles: whether a cause was confirmed or denied.
        speaks: the language asked for.
        asks: whether it is a question that nothing here answers.
        denies: whether it says that what it names is in order.
        cases: those of the reply to be said again, in its order.
    """

    intent: Intent
    own: str
    query: str = ""
    causes: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    ordinal: int = 0
    settings: tuple[str, ...] = ()
    settles: Settles = ""
    speaks: Language | None = None
    asks: bool = False
    denies: bool = False
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer: statements, the cause spoken of, cases shown, how the incident ended."""

    statements: tuple[Statement, ...]
    focus: str = ""
    shown: tuple[str, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True, kw_only=True)
class Talk:
    """One turn: what was heard, what is known. `before` is what was known before this message."""

    service: Service
    words: Words
    conversation: Conversation
    heard: Heard
    judged: Judged | None = None
    before: Judged | None = None
    changes: tuple[Change, ...] = ()
    question: Question | None = None
    event: str = ""  # merged, repeated, other, asked_new, answered, skip, retracted
    other: str = ""  # why the logs are of another job
    retracted: tuple[str, ...] = ()  # remarks taken back

    @property
    def knowledge(self) -> Knowledge:
        """All knowledge."""
        return self.service.knowledge

    @property
    def incident(self) -> Incident:
        """The incident, without anything known of it where there is none."""
        return self.judged.reading.incident if self.judged else Incident()

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The incident's diagnosis with all causes."""
        return self.judged.diagnosis if self.judged else None

    @cached_property
    def ranked(self) -> dict[str, RankedCause]:
        """The causes by id, best first."""
        return {item.id: item for item in self.diagnosis.causes} if self.diagnosis else {}

    @property
    def leading(self) -> RankedCause | None:
        """The first cause."""
        return next(iter(self.ranked.values()), None)

    def meant(self) -> str:
        """The cause the message speaks of: named, numbered, spoken of last, or leading."""
        named = (
            sorted(self.heard.causes, key=lambda cause: list(self.ranked).index(cause))
            if (self.ranked and all(cause in self.ranked for cause in self.heard.causes))
            else list(self.heard.causes)
        )
        if named:
            return named[0]
        order = list(self.ranked)
        if 1 <= self.heard.ordinal <= len(order):
            return order[self.heard.ordinal - 1]
        if self.conversation.focus in self.knowledge.cause_by_id:
            return self.conversation.focus
        return order[0] if order else ""

    def say(
        self,
        role: StatementRole,
        label: str,
        citations: Sequence[Citation] = (),
        command: str = "",
        **values: object,
    ) -> Statement:
        """A statement in the words of `label`."""
        return Statement(
            role=role,
            text=_one_stop(self.words.say(label, **values)),
            citations=tuple(citations),
            command=command,
        )

    def need_log(self) -> Said:
        """Nothing to speak of yet: no log, or none with a timeout in it."""
        label = "chat.need_log" if self.diagnosis is None else "chat.no_sign"
        return Said(statements=(self.say("hint", label),))

    def percent(self, share: float) -> str:
        """A probability in whole per cent; the model never gives 0 or 1, so neither does this."""
        if share < 0.01:
            return "<1%"
        if share > 0.99:
            return ">99%"
        return f"{round(share * 100)}%"

    def title(self, cause: str) -> str:
        """A cause's title."""
        known = self.knowledge.cause_by_id.get(cause)
        return known.title.get(self.words.language) if known else cause


def _one_stop(text: str) -> str:
    """The text with one full stop, where a sentence was put into a sentence."""
    doubled = text.endswith(("..", "。。")) and not text.endswith("...")
    return text[:-1] if doubled else text


def cite_cause(cause: Cause, talk: Talk, quote: str = "") -> tuple[Citation, ...]:
    """The entry of a cause and the pages behind it."""
    own = Citation(kind="cause", id=cause.id, quote=quote or cause.title.get(talk.words.language))
    return (own, *cite_sources(cause.sources))


def cite_sources(urls: Sequence[str]) -> tuple[Citation, ...]:
    """Pages."""
    web = [url for url in urls if url.startswith(("https://", "http://"))]
    return tuple(Citation(kind="source", url=url) for url in web[:MAX_SOURCES])


def cite_line(item: Placed, quote: str, rank: int | None = None) -> Citation:
    """A line of the log, or of the incident where it has none."""
    return Citation(
        kind="line" if item.line else "text",
        id="" if rank is None else str(rank),
        quote=quote[:QUOTE_CHARS],
        line=item.line,
        file=item.file,
    )
