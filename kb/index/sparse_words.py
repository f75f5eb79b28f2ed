"""Words as sparse vectors whose product is BM25: what a chunk has, times what a question weighs.

The part of BM25 that a chunk's own length and counts decide goes into the stored vector; rarity
and the weights of translations go into the question's. So rarity is our own and never the
engine's, which counts it by shard.

Source: https://doi.org/10.1561/1500000019 (BM25; k1 = 1.2, b = 0.75, as tantivy has them)
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from kb.index.base import Term
from kb.index.lexical import K1

B = 0.75  # how far a chunk's length counts
CACHED_WORDS = 50_000  # about 150 bytes each

SparseRow = tuple[list[int], list[float]]
"""Indices, ascending, and their values."""


@lru_cache(CACHED_WORDS)
def word_index(word: str) -> int:
    """The place of a word, in [0, 2^32): a hash, so nobody has to agree on numbers.

    Of a million words about one in 4,000 shares its place with another and is weighed like it.
    """
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest())


def chunk_row(tokens: Sequence[str], average: float) -> SparseRow:
    """What the counts of a chunk's tokens are worth, its length against the `average` one."""
    counts = Counter(map(word_index, tokens))
    norm = K1 * (1 - B + B * len(tokens) / average)
    places = sorted(counts)
    return places, [count / (count + norm) for count in (counts[place] for place in places)]


def question_row(terms: Iterable[Term], idf: Mapping[str, float]) -> SparseRow:
    """What each term adds where a chunk has it; a term given twice counts twice."""
    weights: dict[int, float] = {}
    for term in terms:
        place = word_index(term.word)
        weights[place] = weights.get(place, 0.0) + term.weight * idf[term.word] * (K1 + 1)
    places = sorted(weights)
    return places, [weights[place] for place in places]
