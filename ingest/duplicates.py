"""Near-duplicates: texts whose sets of five-character shingles nearly agree.

The Jaccard index of two sets is estimated from their bottom-k sketches, the k smallest hashes of
each: |A ∩ B| / |A ∪ B| over the k smallest hashes of the union.
Source: Broder 1997, On the resemblance and containment of documents,
https://doi.org/10.1109/SEQUEN.1997.666900
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

from ingest.types import NearDuplicate

SHINGLE = 5  # characters; shorter ones agree by chance, longer ones break on every edit
SKETCH = 128  # hashes kept of a text: standard error of the estimate at most 0.045
THRESHOLD = 0.6  # reposts with another introduction score 0.7, two write-ups of one thread 0.2
MAX_SHARED = 200  # texts that have a hash in common; a hash of more is boilerplate
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, 2^64 / golden ratio: Fibonacci hashing


def sketch(text: str) -> NDArray[np.uint64]:
    """The `SKETCH` smallest distinct hashes of a text's shingles, ascending.

    White space and case do not count. A text shorter than a shingle has an empty sketch.
    """
    folded = "".join(text.lower().split())
    codes = np.frombuffer(folded.encode("utf-32-le", "replace"), dtype=np.uint32).astype(np.uint64)
    count = len(codes) - SHINGLE + 1
    if count <= 0:
        return np.empty(0, dtype=np.uint64)
    hashes = np.zeros(count, dtype=np.uint64)
    for offset in range(SHINGLE):
        hashes = (hashes ^ codes[offset : offset + count]) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    return np.unique(hashes)[:SKETCH]


def similarity(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> float:
    """Estimated Jaccard index of the texts behind two sketches, 0 to 1; 0 where one is empty."""
    if not len(first) or not len(second):
        return 0.0
    union = np.union1d(first, second)[:SKETCH]
    both = np.intersect1d(first, second, assume_unique=True)
    return float(np.isin(union, both, assume_unique=True).sum() / len(union))


class NearDuplicates:
    """Texts seen so far, asked for those like a new one."""

    def __init__(self) -> None:
        self._sketches: dict[str, NDArray[np.uint64]] = {}
        self._holders: defaultdict[int, list[str]] = defaultdict(list)

    def add(self, entry_id: str, text: str) -> tuple[NearDuplicate, ...]:
        """Remember a text; returns what was there and is like it, the most similar first."""
        new = sketch(text)
        near = self._find(entry_id, new)
        self._sketches[entry_id] = new
        for key in new.tolist():
            if len(self._holders[key]) < MAX_SHARED:
                self._holders[key].append(entry_id)
        return near

    def like(self, entry_id: str, text: str) -> tuple[NearDuplicate, ...]:
        """What is remembered and like a text that is not, the most similar first."""
        return self._find(entry_id, sketch(text))

    def _find(self, entry_id: str, new: NDArray[np.uint64]) -> tuple[NearDuplicate, ...]:
        shared = Counter(other for key in new.tolist() for other in self._holders.get(key, ()))
        pairs = [
            NearDuplicate(entry_id, other, round(similarity(new, self._sketches[other]), 2))
            for other, count in shared.items()
            # the union's sketch is at least as long as either: fewer in common cannot be enough
            if other != entry_id and count >= THRESHOLD * max(len(new), len(self._sketches[other]))
        ]
        near = [pair for pair in pairs if pair.similarity >= THRESHOLD]
        return tuple(sorted(near, key=lambda pair: (-pair.similarity, pair.other_id)))
