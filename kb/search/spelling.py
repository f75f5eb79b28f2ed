"""Mistyped words of a question: the word of the knowledge base that is one keystroke away.

Only a word that no entry has is looked at, and only in a question, not in a pasted log. One
keystroke is a letter too many, missing or wrong, or two neighbours exchanged; the first letter is
nearly always right and is kept.

Source of the idea: Norvig, https://norvig.com/spell-correct.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import ascii_lowercase

LEAST_ENTRIES = (
    5  # with the word that is meant: common ones are mistyped, rare ones are met by chance
)
LONGEST = 400  # characters of a question; what is longer was pasted
MOST_CORRECTED = 8  # words of a question: each asks the index for about 400 spellings
# five letters and more: shorter words are one keystroke from many others; no parts of identifiers
_WORD = re.compile(r"(?<![\w./:-])[A-Za-z][a-z]{4,}(?![\w/:'’])")


EntryCounts = Callable[[Sequence[str]], Mapping[str, int]]


def corrections(
    question: str, entries_with: EntryCounts, known: Callable[[str], bool]
) -> dict[str, str]:
    """The word that is meant for every unknown one of a question; empty where there is none.

    Args:
        question: what a person typed.
        entries_with: how many entries have each of some words, or a translation of it.
        known: whether a word is right though no entry has it.
    """
    if len(question) > LONGEST or "\n" in question.strip():
        return {}
    words = dict.fromkeys(match[0] for match in _WORD.finditer(question))
    unknown = [word for word in words if not known(word.lower())]
    counts = entries_with([word.lower() for word in unknown])
    unknown = [word for word in unknown if not counts[word.lower()]]
    return {word: _meant(word.lower(), entries_with) for word in unknown[:MOST_CORRECTED]}


def corrected(question: str, meant: dict[str, str]) -> str:
    """The question with the words that are meant."""
    return _WORD.sub(lambda word: meant.get(word[0]) or word[0], question) if meant else question


def _meant(word: str, entries_with: EntryCounts) -> str:
    """The most frequent known word one keystroke away, ties by word; empty where there is none."""
    counts = entries_with(sorted(set(_one_keystroke_away(word))))
    count, meant = max((count, other) for other, count in counts.items())
    return meant if count >= LEAST_ENTRIES else ""


def _one_keystroke_away(word: str) -> Iterator[str]:
    """Every spelling one keystroke from `word` with its first letter; some more than once."""
    for at in range(1, len(word) + 1):
        head, tail = word[:at], word[at:]
        yield from (head + letter + tail for letter in ascii_lowercase)
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in ascii_lowercase)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
