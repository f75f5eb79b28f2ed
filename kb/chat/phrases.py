"""What messages name: causes, platforms, places; data/chat.yaml, matched in linear time by RE2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from kb.chat.sentences import clauses
from kb.chat.types import QuestionForm
from kb.errors import DataError
from kb.knowledge.load import Knowledge, read_yaml
from kb.text.expression_set import ExpressionSet
from kb.types.vocabulary import Language

NEXT_CHARS = 40  # before a name that may deny it
MAX_CHARS = 1000  # of a text that are read; a message is shorter, the rest is a report

ENTRY_ID = re.compile(r"\b(?:incident|thread|writeup)-[0-9a-f]{16}\b")  # of an imported entry
# A question inside a statement: “只有 0 号判断要不要停”.
_EMBEDDED = re.compile(
    r"(?:判断|决定|不知道|不确定|看看?|确认|检查|查|试试?|取决于|知道)[^，。？?！!]{0,4}?"
    r"(?:要不要|是不是|能不能|会不会|有没有|是否)"
    r"|(?:不知道|不明白|不清楚|搞不懂|没想明白)(?:是)?(?:为什么|为啥|怎么|什么|啥)|怎么[^，。？?]{1,4}都"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseGroup:
    """Patterns of one meaning; a test holds them to `examples` and `no_match`."""

    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    no_match: tuple[str, ...] = ()


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
class QuestionFormWords(PhraseGroup):
    """Words by which a question asks for something of that form."""

    form: QuestionForm


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageName(PhraseGroup):
    """Names of a language; None: one that nothing is answered in."""

    language: Language | None


class PhraseSet:
    """Tells which of several phrase groups match a text, all at once."""

    def __init__(self, groups: Sequence[PhraseGroup]) -> None:
        """Compile the patterns of `groups`.

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

    def match(self, text: str) -> tuple[int, ...]:
        """Positions of the groups that match, in order."""
        text = text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
        return tuple(sorted({self._owners[hit] for hit in self._set.matching(text)}))


@dataclass(frozen=True, kw_only=True)
class Phrasebook:
    """The whole of data/chat.yaml, and what of it a text holds.

    Attributes:
        field: words of this field.
        orders: orders to an assistant that stand in logs.
        denials: what denies a cause it names; `complaints` look like it and say the contrary.
        denies_next_words: words that deny what comes right behind them.
        ruling_out: words of one who says what it is not.
        asking: forms of a question.
        endings: words of one who knows by now what it was.
        troubles: words of trouble that is still there; `cured` say that it is over.
        takes_back: words that take back or correct what was said; `keeps` say the contrary.
        misleading: words of sentences whose words alone mislead.
        choices: nothing but a place in a list.
        guesses: words of one who guesses.
        to_us: words to us about our answers; `own_deeds` tell what the person did all the same.
        explanations: words of one who tells why it happened.
        refusals: what cannot or will not be run; `gone`: the job is no longer there.
        other_incident, first_incident: another incident, and back to an earlier one.
        forms: what a question asks for.
    """

    topics: tuple[CausePhrase, ...]
    platforms: tuple[Platform, ...]
    ordinals: tuple[Ordinal, ...]
    languages: tuple[LanguageName, ...]
    field: PhraseGroup
    orders: PhraseGroup
    denials: PhraseGroup
    complaints: PhraseGroup
    denies_next_words: PhraseGroup
    ruling_out: PhraseGroup
    asking: PhraseGroup
    endings: PhraseGroup
    troubles: PhraseGroup
    cured: PhraseGroup
    takes_back: PhraseGroup
    keeps: PhraseGroup
    misleading: PhraseGroup
    choices: PhraseGroup
    guesses: PhraseGroup
    to_us: PhraseGroup
    own_deeds: PhraseGroup
    explanations: PhraseGroup
    refusals: PhraseGroup
    gone: PhraseGroup
    other_incident: PhraseGroup
    first_incident: PhraseGroup
    forms: tuple[QuestionFormWords, ...]

    @cached_property
    def sets(self) -> dict[str, PhraseSet]:
        """The patterns by what they tell, compiled with the first text.

        Raises:
            DataError: a pattern is not RE2.
        """
        groups: dict[str, Sequence[PhraseGroup]] = {
            "topics": self.topics,
            "platforms": self.platforms,
            "ordinals": self.ordinals,
            "languages": self.languages,
            "field": (self.field,),
            "orders": (self.orders,),
            "denials": (self.denials, self.complaints),
            "ruling_out": (self.ruling_out,),
            "denies_next": (self.denies_next_words,),
            "asking": (self.asking,),
            "endings": (self.endings,),
            "troubles": (self.troubles, self.cured),
            "takes_back": (self.takes_back, self.keeps),
            "misleading": (self.misleading,),
            "choices": (self.choices,),
            "guesses": (self.guesses,),
            "to_us": (self.to_us, self.own_deeds),
            "explanations": (self.explanations,),
            "refusals": (self.refusals, self.gone),
            "incidents": (self.other_incident, self.first_incident),
            "forms": self.forms,
        }
        return {name: PhraseSet(group) for name, group in groups.items()}

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

    def causes_by_sense(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The causes the text names as they are, and those it only denies: “not a version bug”."""
        denied: dict[str, None] = {}
        named: dict[str, None] = {}
        parts = clauses(text)
        for place, clause in enumerate(parts):
            behind = "".join(parts[place + 1 : place + 2])
            is_denied = self.is_denial(clause) or (
                self.is_denial(behind) and not self.causes_in(behind)
            )
            (denied if is_denied else named).update(dict.fromkeys(self.causes_in(clause)))
        return tuple(named), tuple(cause for cause in denied if cause not in named)

    def platforms_in(self, text: str) -> tuple[Platform, ...]:
        """The backends and frameworks the text names."""
        return tuple(self.platforms[at] for at in self.sets["platforms"].match(text))

    def ordinal_in(self, text: str) -> int:
        """The number in a list the text names, counted from 1; 0 for none."""
        return next((self.ordinals[at].number for at in self.sets["ordinals"].match(text)), 0)

    def languages_in(self, text: str) -> set[Language | None]:
        """The languages the text names."""
        return {self.languages[at].language for at in self.sets["languages"].match(text)}

    def is_order(self, line: str) -> bool:
        """Whether a line gives orders to an assistant, such as to ignore its instructions."""
        return bool(self.sets["orders"].match(line))

    def is_denial(self, text: str) -> bool:
        """Whether the text says that what it names is in order, or is not the cause."""
        return self.sets["denials"].match(text) == (0,)

    def is_ruling_out(self, text: str) -> bool:
        """Whether the text says of what it names that it is not why."""
        return bool(self.sets["ruling_out"].match(text))

    def denies_next(self, words: str) -> bool:
        """Whether the words deny what comes right behind them."""
        return bool(self.sets["denies_next"].match(words[-NEXT_CHARS:]))

    def is_asked(self, text: str) -> bool:
        """Whether the text has the form of a question; “decides whether to stop” has none."""
        return bool(self.sets["asking"].match(_EMBEDDED.sub("", text[:MAX_CHARS])))

    def is_ending(self, text: str) -> bool:
        """Whether the text names a cause as the one that it was."""
        named = self.sets["endings"].match(text) and self.causes_in(text)
        return bool(named) and not self.is_asked(text)

    def is_misleading(self, text: str) -> bool:
        """Whether the words alone mislead: something is denied, wished or guessed."""
        return bool(self.sets["misleading"].match(text))

    def is_still_trouble(self, text: str) -> bool:
        """Whether the text speaks of trouble and of no end of it."""
        return self.sets["troubles"].match(text) == (0,)

    def is_cured(self, text: str) -> bool:
        """Whether the text speaks of the end of the trouble."""
        return 1 in self.sets["troubles"].match(text)

    def is_taken_back(self, text: str) -> bool:
        """Whether the text has words that take something back."""
        return self.sets["takes_back"].match(text) == (0,)

    def is_guess(self, text: str) -> bool:
        """Whether the text guesses."""
        return bool(self.sets["guesses"].match(text))

    def is_to_us(self, text: str) -> bool:
        """Whether the text speaks to us of our answers and tells nothing the person did."""
        return self.sets["to_us"].match(text) == (0,)

    def is_own_deed(self, text: str) -> bool:
        """Whether the text tells what the person did or found."""
        return 1 in self.sets["to_us"].match(text)

    def is_explanation(self, text: str) -> bool:
        """Whether the text tells why it happened."""
        return bool(self.sets["explanations"].match(text)) and not self.is_guess(text)

    def is_refusal(self, text: str) -> bool:
        """Whether the text says that something cannot or will not be run."""
        return 0 in self.sets["refusals"].match(text)

    def is_job_gone(self, text: str) -> bool:
        """Whether the text says that the job is no longer there to be looked at."""
        return 1 in self.sets["refusals"].match(text)

    def incident_meant(self, text: str) -> Literal["", "other", "earlier"]:
        """Whether the text speaks of another incident, or goes back to an earlier one."""
        found = self.sets["incidents"].match(text)
        return "earlier" if 1 in found else "other" if found else ""

    def form_of(self, question: str) -> QuestionForm:
        """What a question asks for by its form; the first in the file counts."""
        found = self.sets["forms"].match(question)
        return self.forms[found[0]].form if found else ""

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
