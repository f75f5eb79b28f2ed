"""Patterns of one meaning, and several groups of them matched at once in linear time by RE2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb.chat.types import QuestionForm
from kb.text.expression_set import ExpressionSet
from kb.types.vocabulary import Language

MAX_CHARS = 1000  # of a text that are read; a message is shorter, the rest is a report


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseGroup:
    """Patterns of one meaning; a test holds them to `examples` and `no_match`."""

    patterns: tuple[str, ...]
    examples: tuple[str, ...]
    no_match: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CausePhrase(PhraseGroup):
    """Words for causes; the first cause is the one meant when one is needed.

    `alone`: they count only where the text names nothing else: “mismatch”, “mismatched packages”.
    """

    id: str
    causes: tuple[str, ...]
    alone: bool = False


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(PhraseGroup):
    """A program that people lack or will not run, by the words of commands and refusals.

    `own_program`: a job of it runs no training script.
    """

    id: str
    own_program: bool = False


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

    def without(self, text: str, instead: str = "") -> str:
        """The text with `instead` in place of all that matches."""
        text = text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
        for number in range(len(self._owners)):
            text = self._set[number].sub(instead, text)
        return text

    def behind(self, text: str) -> str:
        """What the group of the first pattern that matches holds; empty where none does."""
        text = text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")
        found = (self._set[number].search(text) for number in range(len(self._owners)))
        return next((match[1] for match in found if match), "")
