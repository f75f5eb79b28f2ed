"""A vector index of a few lines: what it takes to add another kind beside FAISS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kb.index.base import Batches, Numbers, Ranking, Scores
from kb.index.vector_index import VectorIndex

CHANGED = "changed.npz"


@dataclass(frozen=True, eq=False)
class BruteForceIndex:
    """Every vector in memory, compared one by one."""

    numbers: Numbers
    vectors: Scores
    changes: int = 0

    @classmethod
    def library(cls) -> str:
        """Nothing but numpy."""
        return "brute force 1"

    @classmethod
    def build(cls, batches: Batches, *, size: int, dimension: int) -> BruteForceIndex:
        """All of `batches`."""
        empty = cls(np.zeros(0, np.int64), np.zeros((0, dimension), np.float32))
        for numbers, vectors in batches():
            empty = empty.with_changes(np.zeros(0, np.int64), numbers, vectors)
        assert len(empty.numbers) == size
        return cls(empty.numbers, empty.vectors)

    @classmethod
    def load(cls, folder: Path, base: str, *, known: VectorIndex | None = None) -> BruteForceIndex:
        """What `save` wrote; nothing is shared."""
        assert (folder / base).exists()
        with np.load(folder / CHANGED) as arrays:
            return cls(arrays["numbers"], arrays["vectors"], int(arrays["changes"]))

    @property
    def kind(self) -> str:
        """There is one."""
        return "brute force"

    @property
    def size(self) -> int:
        """Number of vectors."""
        return len(self.numbers)

    def search(self, query: Scores, limit: int, allowed: Numbers | None = None) -> Ranking:
        """Every cosine, sorted."""
        mask = np.ones(self.size, bool) if allowed is None else np.isin(self.numbers, allowed)
        scores = (self.vectors[mask] @ query).astype(np.float32)
        order = np.lexsort((self.numbers[mask], -scores))[:limit]
        return self.numbers[mask][order], scores[order]

    def vectors_of(self, numbers: Numbers) -> tuple[Numbers, Scores] | None:
        """As they were put in."""
        mask = np.isin(self.numbers, numbers)
        order = np.argsort(self.numbers[mask])
        return self.numbers[mask][order], self.vectors[mask][order]

    def with_changes(self, removed: Numbers, numbers: Numbers, vectors: Scores) -> BruteForceIndex:
        """Without `removed` and former vectors of `numbers`, with `vectors`."""
        stays = ~np.isin(self.numbers, np.concatenate([removed, numbers]))
        return BruteForceIndex(
            np.concatenate([self.numbers[stays], numbers]),
            np.concatenate([self.vectors[stays], vectors]),
            self.changes + len(removed) + len(numbers),
        )

    def save(self, folder: Path, base: str) -> None:
        """All of it every time."""
        (folder / base).touch()
        np.savez(folder / CHANGED, numbers=self.numbers, vectors=self.vectors, changes=self.changes)
