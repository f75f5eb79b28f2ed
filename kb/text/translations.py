"""Translations of words, Chinese to English and back, so that a search crosses the languages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kb.text.tokenizer import read_rows, stem

BY_HAND = ("glossary.tsv", "everyday.tsv")  # terms of the field; words people describe a hang with
MINED = ("mined.tsv", "mined-knowledge.tsv")  # out of documentation; out of the knowledge itself
GLOSSARY_WEIGHT = 0.5  # of a translation from the glossary, beside 1 for the word itself
MINED_WEIGHT = 0.5  # times the mean of both translation probabilities
MAX_TRANSLATIONS = 6  # of a word; a common English one has thirty in the glossary
WHOLE = 1.0  # weight of a token the person wrote


class Translations:
    """The translations of a lexicon folder (``data/lexicon``), by token."""

    def __init__(self, lexicon: Path) -> None:
        """Read `lexicon`.

        Raises:
            DataError: a file is missing or a line does not have its columns.
        """
        self._of_word = _read_translations(lexicon)

    def expand(self, tokens: Iterable[str]) -> list[tuple[str, float]]:
        """The distinct `tokens` with weight 1, then their translations with weights below 1.

        Tokens keep their order; a translation reached twice keeps its largest weight, and the
        order is by weight (highest first), then by spelling.
        """
        own = dict.fromkeys(tokens, WHOLE)
        weights: dict[str, float] = {}
        for token in own:
            for translation, weight in self._of_word.get(token, ()):
                if translation not in own and weight > weights.get(translation, 0):
                    weights[translation] = weight
        by_weight = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
        return [*own.items(), *by_weight]


def _read_translations(lexicon: Path) -> dict[str, list[tuple[str, float]]]:
    """Translations of both directions, from the glossary and the mined words."""
    weights: dict[str, dict[str, float]] = {}

    def add(word: str, translation: str, weight: float) -> None:
        of_word = weights.setdefault(word, {})
        of_word[translation] = max(weight, of_word.get(translation, 0.0))

    terms = (row for name in BY_HAND for row in read_rows(lexicon / name, 2))
    for chinese, english in terms:
        words = [stem(word) for word in english.lower().split()]
        for place, word in enumerate(words):
            add(chinese, word, GLOSSARY_WEIGHT)
            # the first word is the usual translation, the others part of a phrase
            add(word, chinese, GLOSSARY_WEIGHT / (len(words) if place else 1))
    mined = (row for name in MINED for row in read_rows(lexicon / name, 4))
    for chinese, english, to_english, to_chinese in mined:
        weight = MINED_WEIGHT * (float(to_english) * float(to_chinese)) ** 0.5
        add(chinese, stem(english), weight)
        add(stem(english), chinese, weight)
    return {
        word: sorted(of_word.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_TRANSLATIONS]
        for word, of_word in weights.items()
    }
