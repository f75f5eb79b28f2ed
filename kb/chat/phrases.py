"""What people say and what it means: data/chat.yaml, matched in linear time by RE2."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from kb.chat.types import Intent
from kb.errors import DataError
from kb.knowledge import Knowledge, read_yaml
from kb.types import Language

MAX_SPOKEN = 1000  # characters read for intents; a question is shorter, the rest is a report
_MEMORY = 16 << 20  # bytes RE2 may use for one set of automata

Need = Literal["", "setting", "topic", "ordinal"]
Answer = Literal["", "yes", "no", "unsure"]
Settles = Literal["", "confirmed", "denied"]
Parts = Literal["", "new", "same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """One way of meaning something.

    Attributes:
        needs: what the message must name besides, for the saying to count.
        speaks: the language asked for.
        replies: the answer given to an open question.
        settles: whether a cause is confirmed or denied.
        parts: whether the logs belong to another job or to the same.
        retracts: whether an earlier remark is taken back.
    """

    id: str
    intent: Intent
    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    needs: Need = ""
    speaks: Language | None = None
    replies: Answer = ""
    settles: Settles = ""
    parts: Parts = ""
    retracts: bool = False
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Words for causes; the first cause is the one meant when one is needed."""

    id: str
    causes: tuple[str, ...]
    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Words for a backend or framework, and what to filter cases by."""

    id: str
    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    backends: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal:
    """Words for a number in a list, counted from 1."""

    number: int
    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ways of saying one kind of thing."""

    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Weak words for an intent."""

    intent: Intent
    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrasebook:
    """The whole of data/chat.yaml.

    Attributes:
        field: words of this field.
        orders: orders to an assistant that stand in logs.
        questions: interrogatives; `statements` look like them and are none.
        denials: what denies a cause it names; `complaints` look like it and say the contrary.
        choices: nothing but a place in a list.
        shorthand: how words are written in a hurry, and the words.
        hints: what a request that no saying reads is most likely for.
    """

    intents: tuple[Saying, ...]
    topics: tuple[Topic, ...]
    places: tuple[Place, ...]
    ordinals: tuple[Ordinal, ...]
    field: Group
    orders: Group
    questions: Group
    statements: Group
    denials: Group
    complaints: Group
    choices: Group
    shorthand: dict[str, str]
    hints: tuple[Hint, ...]


class Matcher:
    """Tells which of several lists of patterns match a text, all at once."""

    def __init__(
        self,
        lists: Sequence[tuple[str, Sequence[str]]],
        *,
        shorthand: Mapping[str, str] | None = None,
    ) -> None:
        """Compile `lists` of (name for errors, patterns); `shorthand` is read as its words.

        Raises:
            DataError: a pattern is not RE2.
        """
        import re2

        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = _MEMORY
        self._owners: list[int] = []
        self._set = re2.Set.SearchSet(options)
        for number, (name, patterns) in enumerate(lists):
            for pattern in patterns:
                try:
                    self._set.Add(pattern)
                except re2.error as error:
                    raise DataError(
                        f"chat.yaml: {name}: {error}", todo="use RE2 syntax, without look-around"
                    ) from error
                self._owners.append(number)
        self._set.Compile()
        self._words = dict(shorthand or {})
        longest = sorted(self._words, key=lambda word: (-len(word), word))
        self._short = re.compile(
            rf"(?<![\w/'’=.-])(?:{'|'.join(map(re.escape, longest)) or '(?!)'})(?![\w/'’=-])",
            re.IGNORECASE,
        )

    def match(self, text: str) -> tuple[int, ...]:
        """Positions of the lists that match, in order."""
        text = text[:MAX_SPOKEN].encode("utf-8", "replace").decode("utf-8")
        text = self._short.sub(lambda found: self._words[found[0].lower()], text)
        return tuple(sorted({self._owners[hit] for hit in self._set.Match(text) or ()}))


class Phrases:
    """The phrasebook, ready to be asked; made once."""

    def __init__(self, book: Phrasebook) -> None:
        """Compile `book`.

        Raises:
            DataError: a pattern is not RE2.
        """
        self.book = book
        matcher = partial(Matcher, shorthand=book.shorthand)
        self._sayings = matcher([(item.id, item.patterns) for item in book.intents])
        self._topics = matcher([(item.id, item.patterns) for item in book.topics])
        self._places = matcher([(item.id, item.patterns) for item in book.places])
        self._ordinals = matcher([(str(item.number), item.patterns) for item in book.ordinals])
        self._field = matcher([("field", book.field.patterns)])
        self._questions = matcher(
            [("questions", book.questions.patterns), ("statements", book.statements.patterns)]
        )
        self._denials = matcher(
            [("denials", book.denials.patterns), ("complaints", book.complaints.patterns)]
        )
        self._choices = matcher([("choices", book.choices.patterns)])
        self._orders = matcher([("orders", book.orders.patterns)])
        self._hints = matcher([(item.intent, item.patterns) for item in book.hints])

    def sayings(self, text: str) -> tuple[Saying, ...]:
        """What the text may mean, in the order of the file; `needs` are not looked at."""
        return tuple(self.book.intents[at] for at in self._sayings.match(text))

    def causes(self, text: str) -> tuple[str, ...]:
        """The causes the text names, the single ones before those of a wider word."""
        named = sorted(
            (self.book.topics[at] for at in self._topics.match(text)),
            key=lambda topic: len(topic.causes),
        )
        return tuple(dict.fromkeys(cause for topic in named for cause in topic.causes))

    def places(self, text: str) -> tuple[Place, ...]:
        """The backends and frameworks the text names."""
        return tuple(self.book.places[at] for at in self._places.match(text))

    def ordinal(self, text: str) -> int:
        """The number in a list the text names, counted from 1; 0 for none."""
        found = self._ordinals.match(text)
        return self.book.ordinals[found[0]].number if found else 0

    def hint(self, text: str) -> Intent | None:
        """What a request is most likely for that no saying reads; None where nothing tells."""
        found = self._hints.match(text)
        return self.book.hints[found[0]].intent if found else None

    def is_order(self, line: str) -> bool:
        """Whether a line gives orders to an assistant, such as to ignore its instructions."""
        return bool(self._orders.match(line))

    def is_question(self, sentence: str) -> bool:
        """Whether a sentence asks, with or without a question mark, and so tells nothing."""
        return self._questions.match(sentence) == (0,)

    def is_denial(self, text: str) -> bool:
        """Whether the text says that what it names is in order, or is not the cause."""
        return self._denials.match(text) == (0,)

    def choice(self, text: str) -> int:
        """The place in a list, counted from 1, that is all the text says; 0 for none."""
        if not self._choices.match(text):
            return 0
        figure = next((int(char) for char in text if char.isdecimal()), 0)
        return self.ordinal(text) or figure

    def of_the_field(self, text: str) -> bool:
        """Whether the text holds a word of the field."""
        return bool(self._field.match(text))


def load_phrases(data: Path, knowledge: Knowledge) -> Phrases:
    """Read and check `data`/chat.yaml.

    Raises:
        DataError: it is missing, breaks its schema, or names a cause nobody knows.
    """
    book = read_yaml((data / "chat").with_suffix(".yaml"), Phrasebook)
    known = {cause.id for cause in knowledge.causes}
    for topic in book.topics:
        for cause in topic.causes:
            if known and cause not in known:
                raise DataError(
                    f"chat.yaml: topic {topic.id}: {cause!r} is not a cause",
                    todo="see data/causes.yaml",
                )
    return Phrases(book)
