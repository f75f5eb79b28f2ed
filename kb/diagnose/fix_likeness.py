"""How much of what was reported a fix speaks of: by meaning, and by the words they share.

Meaning is the cosine of both texts' embeddings, words are BM25 of the fix's title, steps and
commands in both languages over the distinct words of the report.
Source of BM25: Robertson, Zaragoza 2009, https://doi.org/10.1561/1500000019
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kb.text.tokenizer import Tokenizer
from kb.types.knowledge import Fix
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.embed import Embedder

K1 = 1.2  # how fast a repeated word stops counting; the usual value
B = 0.5  # how much a long fix is held against it; they differ little in length
MEANING = 6.0  # points of a cosine of 1: fixes of one cause differ by .2 or so
WORDS = 0.15  # points of a unit of BM25: fixes of one cause differ by ten or so
FEW_CHARS = 100  # length of words that count half: "it hangs" tells no fixes apart
OTHERS_CACHED = 1024  # fixes of cases, which come again
LANGUAGES: tuple[Language, ...] = ("zh", "en")


class FixLikeness:
    """Compares reports with fixes; what it needs of them is made on first use."""

    def __init__(self, fixes: Sequence[Fix], embedder: Embedder, tokenizer: Tokenizer) -> None:
        self._fixes = tuple(fixes)
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._read = lru_cache(maxsize=OTHERS_CACHED)(self._read_other)

    def points(self, words: str, query: str, others: Sequence[Fix] = ()) -> dict[str, float]:
        """Points of likeness by the id of the fix; they differ where a report tells fixes apart.

        Args:
            words: what a person says; the fewer, the less they tell.
            query: words and lines that matter, as they are searched with.
            others: fixes beside its own, those of similar cases.
        """
        if not words or not query:
            return {}
        vector = self._embedder.encode_passages([words])[0]
        tokens = set(self._tokenizer.tokens(query))
        trust = len(words) / (len(words) + FEW_CHARS)
        fixes = (*self._fixes, *others)
        cosines = [*self._cosines(self._vectors, vector)]
        shared = self._bm25(tokens)
        for other in others:
            vectors, weights = self._read(other)
            cosines += self._cosines(vectors, vector)
            shared.append(math.fsum(weights[token] for token in tokens & weights.keys()))
        return {
            fix.id: trust * (MEANING * cosine + WORDS * bm25)
            for fix, cosine, bm25 in zip(fixes, cosines, shared, strict=True)
        }

    def _bm25(self, tokens: set[str]) -> list[float]:
        """BM25 of its own fixes."""
        sums = [0.0] * len(self._fixes)
        for token in sorted(tokens & self._postings.keys()):
            for place, weight in self._postings[token]:
                sums[place] += weight
        return sums

    def _read_other(self, fix: Fix) -> tuple[dict[Language, NDArray[np.float32]], dict[str, float]]:
        """The vectors and the words' weights of a fix of a similar case."""
        return self._encode([fix]), self._weigh(self._count([fix])[0])

    @staticmethod
    def _cosines(
        vectors: Mapping[Language, NDArray[np.float32]], vector: NDArray[np.float32]
    ) -> list[float]:
        zh, en = (vectors[language] @ vector for language in LANGUAGES)
        best: list[float] = np.maximum(zh, en).tolist()
        return best

    def _weigh(self, counts: Mapping[str, int]) -> dict[str, float]:
        """What each word of a fix adds to its BM25 when it is asked for."""
        length = K1 * (1 - B + B * sum(counts.values()) / self._mean_length)
        return {
            token: self._idf.get(token, 0.0) * count * (K1 + 1) / (count + length)
            for token, count in counts.items()
        }

    @cached_property
    def _postings(self) -> dict[str, list[tuple[int, float]]]:
        """The fixes that have a word, by their places, with what it adds to each."""
        having: dict[str, list[tuple[int, float]]] = {}
        for place, counts in enumerate(self._counts):
            for token, weight in self._weigh(counts).items():
                having.setdefault(token, []).append((place, weight))
        return having

    @cached_property
    def _vectors(self) -> dict[Language, NDArray[np.float32]]:
        return self._encode(self._fixes)

    def _encode(self, fixes: Sequence[Fix]) -> dict[Language, NDArray[np.float32]]:
        return {
            language: self._embedder.encode_passages([_prose(fix, language) for fix in fixes])
            for language in LANGUAGES
        }

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        return self._count(self._fixes)

    def _count(self, fixes: Sequence[Fix]) -> list[Counter[str]]:
        texts = [
            "\n".join((*(_prose(fix, language) for language in LANGUAGES), *fix.commands, fix.id))
            for fix in fixes
        ]
        return [Counter(self._tokenizer.tokens(text)) for text in texts]

    @cached_property
    def _mean_length(self) -> float:
        return sum(sum(counts.values()) for counts in self._counts) / max(len(self._counts), 1)

    @cached_property
    def _idf(self) -> dict[str, float]:
        having = Counter(token for counts in self._counts for token in counts)
        number = len(self._counts)
        return {
            token: math.log(1 + (number - count + 0.5) / (count + 0.5))
            for token, count in having.items()
        }


def _prose(fix: Fix, language: Language) -> str:
    return "\n".join((fix.title.get(language), *(step.get(language) for step in fix.steps)))
