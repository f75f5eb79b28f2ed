"""What the two halves of an index promise. Every index is a value: a change makes a new one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kb.types import Filters

Numbers = NDArray[np.int64]
Scores = NDArray[np.float32]
Ranking = tuple[Numbers, Scores]
"""Chunk numbers and their scores, best first, ties by number."""

REPAIR = "run `timeout-kb ingest --rebuild`"
DISK = "free space or make the folder writable; the former index stays in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of a question and its weight (1: as asked; below: a translation)."""

    word: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A chunk as the word index takes it: tokens cut beforehand.

    `signature` is filled on one chunk of an entry only. `tags` are (facet, folded value).
    """

    number: int
    entry_id: str
    day: int
    body: tuple[str, ...]
    signature: tuple[str, ...]
    tags: tuple[tuple[str, str], ...]


class DenseIndex(Protocol):
    """Nearest vectors by cosine."""

    @property
    def kind(self) -> str:
        """Name of the method, with its parameters."""

    @property
    def size(self) -> int:
        """Number of vectors that can be found."""

    def search(self, query: Scores, limit: int, allowed: Numbers | None = None) -> Ranking:
        """The `limit` nearest, with their cosine in [-1, 1].

        Args:
            query: vector of length 1, shape (dimension,).
            limit: how many at most.
            allowed: numbers that may be found, ascending; None for all.
        """

    def vectors_of(self, numbers: Numbers) -> tuple[Numbers, Scores] | None:
        """The vectors of those numbers (ascending) that are here, as they were put in.

        Returns:
            Their numbers, ascending, and one row each; None where the method keeps them rounded.
        """

    def with_changes(self, removed: Numbers, numbers: Numbers, vectors: Scores) -> DenseIndex:
        """This index without `removed` and with `vectors` (rows of length 1) under `numbers`."""

    def save(self, folder: Path, base: str) -> None:
        """Write it to `folder`; the large unchanged part goes to the file `base`."""


class LexicalIndex(Protocol):
    """Chunks by the words they share with a question, scored by BM25."""

    @property
    def size(self) -> int:
        """Number of chunks."""

    def search(
        self,
        terms: Sequence[Term],
        limit: int,
        *,
        field: str = "body",
        filters: Filters | None = None,
    ) -> Ranking:
        """The `limit` best, with the weighted sum of their terms' BM25 (above 0).

        Args:
            terms: tokens joined by OR; a token given twice counts twice.
            limit: how many at most.
            field: ``body`` or ``signature``.
            filters: conditions on the chunk's entry, applied before ranking.
        """

    def scores(self, terms: Sequence[Term], numbers: Sequence[int]) -> dict[int, float]:
        """BM25 of the given chunks; those without any term are left out."""

    def idf(self, tokens: Iterable[str], *, field: str = "body") -> dict[str, float]:
        """ln(1 + (n - df + ½) / (df + ½)) of every token, as BM25 has it."""
