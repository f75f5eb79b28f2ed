"""Terms worth showing as what two texts have in common.

Rarity alone does not choose them: *either* is rarer in a knowledge base of hangs than *memlock*.
So a word is shown if it is one of the field's own (glossary and identifiers of data/lexicon, less
plain.txt) or looks like a name: letters with digits, or parts joined by a sign.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from kb.text.tokenizer import read_rows, stem

MIN_NAME = 3  # characters of a name; ``e.g`` and ``v0`` are none
TOKENS_CACHED = 8192  # about 200 bytes each
_NAME = re.compile(r"(?=.*[a-z])(?:.*[0-9]|.*[a-z0-9][_.:/-]+[a-z0-9])")


class SalientTerms:
    """The field's terms by their tokens; made once from the lexicon's folder."""

    def __init__(self, lexicon: Path) -> None:
        """Read the lists of `lexicon` (``data/lexicon``).

        Raises:
            DataError: a file is missing or a line does not have its columns.
        """
        terms = {word for row in read_rows(lexicon / "glossary.tsv", 2) for word in _words(row)}
        terms |= {row[0] for row in read_rows(lexicon / "identifiers.txt", 1)}
        plain = {stem(row[0]) for row in read_rows(lexicon / "plain.txt", 1)}
        # of several spellings with one stem the shortest is shown
        ordered = sorted(terms, key=lambda word: (-len(word), word))
        ordered = [word for word in ordered if not word.isdecimal()]
        self._words = {stem(word): word for word in ordered if stem(word) not in plain}
        self._plain = plain
        # every entry that is shown shares words with the others
        self.word = lru_cache(TOKENS_CACHED)(self._word)

    def _word(self, token: str) -> str:
        """The term shown for `token`; empty where it is not salient."""
        known = self._words.get(token)
        if known is not None:
            return known
        if len(token) < MIN_NAME or token in self._plain or "=" in token:  # a field's value
            return ""
        return token if _NAME.match(token) else ""


def _words(row: list[str]) -> list[str]:
    """The Chinese term and its English words."""
    chinese, english = row
    return [chinese, *english.lower().split()]
