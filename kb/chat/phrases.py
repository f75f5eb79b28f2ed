"""What people write and what it means: data/chat.yaml, matched in linear time by RE2."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from kb.chat.types import Intent
from kb.errors import DataError
from kb.knowledge.load import Knowledge, read_yaml
from kb.text.expression_set import ExpressionSet
from kb.types.vocabulary import Language

MAX_CHARS = 1000  # of a text read for intents; a question is shorter, the rest is a report

YesNo = Literal["", "yes", "no", "unsure"]
Job = Literal["", "new", "same"]
Settled = Literal["", "confirmed", "denied"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseGroup:
    """Patterns of one meaning; a test holds them to `examples` and `no_match`."""

    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentPhrase(PhraseGroup):
    """One way of meaning something.

    Attributes:
        needs: what the message must name besides, for the phrase to count.
        language: the language asked for.
        answer: the answer given to an open question.
        settles: whether a cause is confirmed or denied.
        job: whether the logs belong to another job or to the same.
        retracts: whether an earlier remark is taken back.
    """

    id: str
    intent: Intent
    needs: Literal["", "setting", "topic", "ordinal"] = ""
    language: Language | None = None
    answer: YesNo = ""
    settles: Settled = ""
    job: Job = ""
    retracts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CausePhrase(PhraseGroup):
    """Words for causes; the first cause is the one meant when one is needed."""

    id: str
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform(PhraseGroup):
    """Words for a backend or framework, and what to filter cases by."""

    id: str
    backends: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal(PhraseGroup):
    """Words for a number in a list, counted from 1."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentHint(PhraseGroup):
    """Weak words for an intent."""

    intent: Intent


class PhraseSet:
    """Tells which of several phrase groups match a text, all at once."""

    def __init__(
        self, groups: Sequence[PhraseGroup], shorthand: Mapping[str, str] | None = None
    ) -> None:
        """Compile the patterns of `groups`; `shorthand` is read as its words.

        Raises:
            DataError: a pattern is not RE2.
        """
        self._owners = [number for number, group in enumerate(groups) for _ in group.patterns]
        self._set = ExpressionSet(
            [
                (f"chat.yaml: {getattr(group, 'id', '') or repr(pattern[:60])}", pattern)
                for group in groups
                for pattern in group.patterns
            ]
        )
        self._words = dict(shorthand or {})
        longest = sorted(self._words, key=lambda word: (-len(word), word))
        self._short = re.compile(
            rf"(?<![\w/'’=.-])(?:{'|'.join(map(re.escape, longest)) or '(?!)'})(?![\w/'’=-])",
            re.IGNORECASE,
        )

    def match(self, text: str) -> tuple[int, ...]:
        """Positions of the groups that match, in order."""
        text = text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
        text = self._short.sub(lambda word: self._words[word[0].lower()], text)
        return tuple(sorted({self._owners[hit] for hit in self._set.matching(text)}))


@dataclass(frozen=True, kw_only=True)
class Phrasebook:
    """The whole of data/chat.yaml, and what of it a text holds.

    Attributes:
        field: words of this field.
        orders: orders to an assistant that stand in logs.
        questions: interrogatives; `statements` look like them and are none.
        denials: what denies a cause it names; `complaints` look like it and say the contrary.
        choices: nothing but a place in a list.
        shorthand: how words are written in a hurry, and the words.
        hints: what a request that no intent phrase reads is most likely for.
    """

    intents: tuple[IntentPhrase, ...]
    topics: tuple[CausePhrase, ...]
    platforms: tuple[Platform, ...]
    ordinals: tuple[Ordinal, ...]
    field: PhraseGroup
    orders: PhraseGroup
    questions: PhraseGroup
    statements: PhraseGroup
    denials: PhraseGroup
    complaints: PhraseGroup
    choices: PhraseGroup
    shorthand: dict[str, str]
    hints: tuple[IntentHint, ...]

    @cached_property
    def sets(self) -> dict[str, PhraseSet]:
        """The patterns by what they tell, compiled with the first text.

        Raises:
            DataError: a pattern is not RE2.
        """
        groups: dict[str, Sequence[PhraseGroup]] = {
            "intents": self.intents,
            "topics": self.topics,
            "platforms": self.platforms,
            "ordinals": self.ordinals,
            "hints": self.hints,
            "field": (self.field,),
            "orders": (self.orders,),
            "questions": (self.questions, self.statements),
            "denials": (self.denials, self.complaints),
            "choices": (self.choices,),
        }
        return {name: PhraseSet(group, self.shorthand) for name, group in groups.items()}

    def intents_in(self, text: str) -> tuple[IntentPhrase, ...]:
        """What the text may mean, in the order of the file; `needs` are not looked at."""
        return tuple(self.intents[at] for at in self.sets["intents"].match(text))

    def causes_in(self, text: str) -> tuple[str, ...]:
        """The causes the text names, the single ones before those of a wider word.

        A wider word adds nothing where one of its causes is named: "the network configuration".
        """
        topics = sorted(
            (self.topics[at] for at in self.sets["topics"].match(text)),
            key=lambda topic: len(topic.causes),
        )
        causes: dict[str, None] = {}
        for topic in topics:
            if len(topic.causes) == 1 or not causes.keys() & topic.causes:
                causes |= dict.fromkeys(topic.causes)
        return tuple(causes)

    def platforms_in(self, text: str) -> tuple[Platform, ...]:
        """The backends and frameworks the text names."""
        return tuple(self.platforms[at] for at in self.sets["platforms"].match(text))

    def ordinal_in(self, text: str) -> int:
        """The number in a list the text names, counted from 1; 0 for none."""
        return next((self.ordinals[at].number for at in self.sets["ordinals"].match(text)), 0)

    def hint_in(self, text: str) -> Intent | None:
        """What a request is most likely for that no intent phrase reads."""
        return next((self.hints[at].intent for at in self.sets["hints"].match(text)), None)

    def is_order(self, line: str) -> bool:
        """Whether a line gives orders to an assistant, such as to ignore its instructions."""
        return bool(self.sets["orders"].match(line))

    def is_question(self, sentence: str) -> bool:
        """Whether a sentence asks, with or without a question mark, and so states nothing."""
        return self.sets["questions"].match(sentence) == (0,)

    def is_denial(self, text: str) -> bool:
        """Whether the text says that what it names is in order, or is not the cause."""
        return self.sets["denials"].match(text) == (0,)

    def choice_in(self, text: str) -> int:
        """The place in a list, counted from 1, that is all the text says; 0 for none."""
        if not self.sets["choices"].match(text):
            return 0
        return self.ordinal_in(text) or next((int(char) for char in text if char.isdecimal()), 0)

    def is_of_the_field(self, text: str) -> bool:
        """Whether the text holds a word of the field."""
        return bool(self.sets["field"].match(text))


def load_phrases(data: Path, knowledge: Knowledge) -> Phrasebook:
    """Read and check `data`/chat.yaml.

    Raises:
        DataError: it is missing, breaks its schema, names a cause nobody knows, or holds a
            pattern that is not RE2.
    """
    book = read_yaml(data / "chat.yaml", Phrasebook)
    cause_ids = {cause.id for cause in knowledge.causes}
    for topic in book.topics:
        for cause in topic.causes:
            if cause_ids and cause not in cause_ids:
                raise DataError(
                    f"chat.yaml: topic {topic.id}: {cause!r} is not a cause",
                    todo="see data/causes.yaml",
                )
    _ = book.sets
    return book
