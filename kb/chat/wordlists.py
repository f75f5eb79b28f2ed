"""The words of ``data/llm.yaml``: what a model is told, and what its sentences are checked with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from kb.errors import DataError
from kb.knowledge import read_yaml
from kb.settings import shipped_data
from kb.types import Bilingual

FILE = "llm.yaml"


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Words of both languages."""

    zh: tuple[str, ...]
    en: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WordLists:
    """The file's content.

    Attributes:
        system: the rules a model is given, before the data.
        reminder: the same in short, after the data.
        withheld: what stands in place of a quote that talks to its reader.
        addressing: expressions for text that talks to its reader.
        negations: words that turn a clause round.
        not_negations: words that hold a negation and do not turn anything round.
        opposites: pairs of word groups that exclude each other.
        subjects: groups of words for what a cause may be about.
        suppositions: words that make a supposition of a statement.
        conditions: words that begin a condition.
        function_words: words that carry no fact.
        acronyms: short names that need no evidence.
        programs: what a line for the shell begins with.
        numbered: nouns that give a number its meaning, by meaning.
        durations_ms: units of time in milliseconds.
        number_words: numbers written as words.
    """

    system: Bilingual
    reminder: Bilingual
    withheld: Bilingual
    addressing: tuple[str, ...]
    negations: Terms
    not_negations: Terms
    opposites: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    subjects: tuple[tuple[str, ...], ...]
    suppositions: Terms
    conditions: Terms
    function_words: Terms
    acronyms: tuple[str, ...]
    programs: tuple[str, ...]
    numbered: dict[str, tuple[str, ...]]
    durations_ms: dict[str, int]
    number_words: dict[str, int]

    @cached_property
    def talks_to_reader(self) -> re.Pattern[str]:
        """Finds text that talks to its reader instead of reporting."""
        return re.compile("|".join(f"(?:{part})" for part in self.addressing), re.IGNORECASE)

    @cached_property
    def silent(self) -> frozenset[str]:
        """The words without a fact, of both languages."""
        return frozenset(self.function_words.zh) | frozenset(self.function_words.en)

    @cached_property
    def negation(self) -> re.Pattern[str]:
        """Finds a negation of either language."""
        return _any_of(self.negations)

    @cached_property
    def no_negation(self) -> re.Pattern[str]:
        """Finds words that only look like a negation."""
        return _any_of(self.not_negations)

    @cached_property
    def supposition(self) -> re.Pattern[str]:
        """Finds a word that supposes."""
        return _any_of(self.suppositions)

    @cached_property
    def condition(self) -> re.Pattern[str]:
        """Finds a word that begins a condition."""
        return _any_of(self.conditions)


def _any_of(terms: Terms) -> re.Pattern[str]:
    """English words at their boundaries with their endings, Chinese ones anywhere."""
    english = "|".join(map(re.escape, terms.en))
    chinese = "|".join(map(re.escape, terms.zh))
    return re.compile(rf"\b(?:{english})(?:s|ed|ing)?\b|n['’]t\b|{chinese}", re.IGNORECASE)


def read_wordlists(path: Path) -> WordLists:
    """Read and check the file.

    Raises:
        DataError: missing, of another shape, or an expression that is none.
    """
    lists = read_yaml(path, WordLists)
    try:
        _ = lists.talks_to_reader
    except re.error as error:
        raise DataError(f"{path.name}: addressing: {error}", todo="mend the expression") from error
    return lists


@lru_cache(maxsize=1)
def default_wordlists() -> WordLists:
    """The shipped lists, read on first use."""
    return read_wordlists(shipped_data() / FILE)
