"""What a vector index promises, and the vector indexes there are.

A vector index is a value: a change makes a new one. To add one, write a class as `VectorIndex`
promises in a file of its own, add a line to `VECTOR_INDEXES`, and name it in
`DEFAULT_VECTOR_INDEX` (what `SearchIndex` opens unless told otherwise).
"""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Protocol, Self

from kb.errors import InputError
from kb.index.base import Batches, Numbers, Ranking, Scores


class VectorIndex(Protocol):
    """Nearest vectors by cosine."""

    @classmethod
    def library(cls) -> str:
        """Name and version of what it is made with: another one cannot read its files."""

    @classmethod
    def build(cls, batches: Batches, *, size: int, dimension: int) -> Self:
        """An index of the `size` vectors (rows of length 1) that `batches` gives."""

    @classmethod
    def load(cls, folder: Path, base: str, *, known: VectorIndex | None = None) -> Self:
        """Read what `save` wrote; `known` has the same file `base` in memory.

        Raises:
            SearchIndexError: a file cannot be read as an index.
        """

    @property
    def kind(self) -> str:
        """Name of the method, with its parameters."""

    @property
    def size(self) -> int:
        """Number of vectors that can be found."""

    @property
    def changes(self) -> int:
        """How many vectors were added or removed since it was built."""

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

    def with_changes(self, removed: Numbers, numbers: Numbers, vectors: Scores) -> VectorIndex:
        """This index without `removed` and with `vectors` (rows of length 1) under `numbers`."""

    def save(self, folder: Path, base: str) -> None:
        """Write it to `folder`; the large unchanged part goes to the file `base`."""


DEFAULT_VECTOR_INDEX = "faiss"
VECTOR_INDEXES = {"faiss": "kb.index.faiss_index:FaissIndex"}
"""Name of every vector index → its class, imported when it is used."""


def vector_index(name: str) -> type[VectorIndex]:
    """The vector index of that name.

    Raises:
        InputError: there is none.
    """
    if name not in VECTOR_INDEXES:
        raise InputError(
            f"there is no vector index {name!r}", todo=f"use {', '.join(VECTOR_INDEXES)}"
        )
    index: type[VectorIndex] = pkgutil.resolve_name(VECTOR_INDEXES[name])
    return index
