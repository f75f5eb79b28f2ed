"""BM25 in memory, the yardstick of the retrieval benchmark.

score = Σ weight · idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / mean length))
Source: https://doi.org/10.1561/1500000019
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from kb.evaluation.retrieval import Route, Scores

K1 = 1.2
B = 0.75
Terms = Callable[[str], list[str]]
Weights = Callable[[Iterable[str]], list[tuple[str, float]]]


def bm25(terms: Terms, weigh: Weights) -> Route:
    """The route that scores `weigh(terms(query))` against `terms(document)`."""

    def score(queries: Sequence[str], documents: Sequence[str]) -> Scores:
        counts = [Counter(terms(document)) for document in documents]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        norms = K1 * (1 - B + B * lengths / lengths.mean())
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            for term, frequency in count.items():
                postings[term].append((number, frequency))
        scores = np.zeros((len(queries), len(documents)))
        for row, query in enumerate(queries):
            for term, weight in weigh(terms(query)):
                found = postings.get(term, [])
                idf = math.log(1 + (len(documents) - len(found) + 0.5) / (len(found) + 0.5))
                for number, frequency in found:
                    gain = frequency * (K1 + 1) / (frequency + norms[number])
                    scores[row, number] += weight * idf * gain
        return scores.astype(np.float32)

    return score


def once(terms: Iterable[str]) -> list[tuple[str, float]]:
    """Every distinct term with weight 1: a log repeats itself without meaning more."""
    return [(term, 1.0) for term in dict.fromkeys(terms)]
