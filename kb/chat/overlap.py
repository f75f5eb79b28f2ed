"""Whether words stand in a text: themselves, by stem, or by their translation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from kb.text import expand, tokens

KNOWN_TEXTS = 1024  # texts whose words are kept: a reply has some hundred parts


class Bag:
    """Words of a text: English by stem, Chinese by characters."""

    def __init__(self, text: str) -> None:
        self._text = text.lower()
        self._words = frozenset(re.findall(r"[a-z]+", self._text)) | frozenset(tokens(text))

    def has(self, words: Iterable[str], others: Iterable[str]) -> bool:
        """Whether one of `words` is in it, and not only as a part of one of `others`."""
        text = self._text
        for other in others:
            if any(word in other for word in words):
                text = text.replace(other, " ")
        return any(
            word in self._words if word.isascii() and " " not in word else word in text
            for word in words
        )


@lru_cache(maxsize=KNOWN_TEXTS)
def reach_of(text: str) -> frozenset[str]:
    """The words of a text and what they are in the other language."""
    return frozenset(word for word, _ in expand(tokens(text)))


def meets(word: str, reach: frozenset[str]) -> bool:
    """Whether a word is among them, itself or by its translations."""
    return word in reach or any(other in reach for other, _ in expand([word]))
