"""What search asks of an index of chunks, whatever holds it: five verbs.

Four ask one state of it (`IndexReader`): candidates by meaning (`propose_dense`), candidates by
words (`propose_words`), scores of words (`score_words` and `cover_words`, with the rarities they
are made of), and what passes a filter with its facets (`select`). The fifth brings the index up to
the store: `catch_up` of `ChunkIndex` applies the changes and remembers the number of the last one.

Which words weigh how much, how routes are fused and what a score means is decided by the search,
so it is the same on every index. Implementations: FAISS and tantivy (`kb.index.live`,
`kb.index.snapshot`), and Qdrant (`kb.index.qdrant_index`, `kb.index.qdrant_state`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from kb.index.base import Numbers, Scores, Term
from kb.types.entries import Filters

WordField = Literal["body", "signature"]
NO_ENTRY = -1


@dataclass(frozen=True, eq=False, slots=True)
class Proposal:
    """Chunks that one route proposes, best first, ties by number.

    Attributes:
        numbers: of the chunks.
        scores: of the route, one a chunk.
        entries: ordinals of their entries; `NO_ENTRY` where a chunk has none any more.
    """

    numbers: Numbers
    scores: Scores
    entries: Numbers


NOTHING = Proposal(
    np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """The entries that pass a filter.

    Attributes:
        filters: the filter; the empty one where all pass.
        facets: how many of them have each value, per facet, the most frequent first.
        size: how many chunks they have.
        chunks: numbers of their chunks, ascending; None for all, or where the index filters itself.
    """

    filters: Filters
    facets: dict[str, dict[str, int]]
    size: int
    chunks: Numbers | None = None


class IndexReader(Protocol):
    """The index after one change of the store, as a search works on it.

    Every verb raises SearchIndexError where the index cannot be asked.
    """

    @property
    def chunks(self) -> int:
        """How many chunks it has."""

    @property
    def entries(self) -> int:
        """How many entries it has."""

    def select(self, filters: Filters) -> Selection:
        """The entries that pass, with their facets.

        Raises:
            InputError: a date of the filter cannot be read.
        """

    def propose_dense(self, vector: Scores, limit: int, selected: Selection) -> Proposal:
        """The `limit` nearest chunks by cosine; it may be off by a hundredth.

        Args:
            vector: of length 1, shape (dimension,).
            limit: how many at most.
            selected: what `select` gave.
        """

    def vectors_of(self, numbers: Numbers) -> tuple[Numbers, Scores] | None:
        """The vectors of those numbers (ascending) that are in memory, as they were put in.

        Returns:
            Their numbers, ascending, and one row each; None where the store has to be asked.
        """

    def propose_words(
        self, terms: Sequence[Term], limit: int, selected: Selection, *, field: WordField = "body"
    ) -> Proposal:
        """The `limit` best chunks by the weighted sum of their terms' BM25 (above 0).

        Args:
            terms: tokens joined by OR.
            limit: how many at most.
            selected: what `select` gave.
            field: the chunk's words, or the log lines of its entry.
        """

    def score_words(self, terms: Sequence[Term], numbers: Sequence[int]) -> dict[int, float]:
        """BM25 of the given chunks by number; those without any term are left out."""

    def cover_words(
        self, choices: Sequence[Sequence[Term]], entries: Sequence[int]
    ) -> dict[int, float]:
        """The weights of what entries have of each choice, summed; the largest one of a choice.

        Args:
            choices: a word of the question and its translations, each with its weight.
            entries: ordinals; those without any of the words are left out of the answer.
        """

    def idf(self, tokens: Iterable[str], *, field: WordField = "body") -> dict[str, float]:
        """ln(1 + (n - df + ½) / (df + ½)) of every token, as BM25 has it; n counts chunks."""

    def entries_with(self, words: Iterable[str]) -> dict[str, int]:
        """How many entries have each token; deleted ones may count for a while."""


class ChunkIndex(Protocol):
    """An index that follows the store; safe to use from many threads and processes.

    Attributes:
        failure: why it could not be brought up to date when that was last tried; empty otherwise.
    """

    failure: str

    def snapshot(self) -> IndexReader:
        """The newest state; where the store has changed since, the changes are applied beside it.

        Raises:
            SearchIndexError: there is no usable state at all, or it cannot be reached.
        """

    def catch_up(self) -> bool:
        """Apply the store's changes and remember their number; whether that changed anything.

        Applying changes that are in already changes nothing.

        Raises:
            SearchIndexError: the index cannot be written; it is what it was, or a part of the
                changes is in and will be applied again.
            StoreError: the database cannot be read.
        """

    def rebuild(self) -> None:
        """Build everything anew beside the index in use, which serves meanwhile.

        Raises:
            SearchIndexError: it cannot be written; the former index stays in use.
        """

    def close(self) -> None:
        """Let go of files and connections."""

    def exists(self) -> bool:
        """Whether a program like this one has built an index here."""

    def behind(self) -> int:
        """How many changes of the store the index lacks."""

    def stamp(self) -> tuple[int, int] | None:
        """Something that changes whenever a search may find something else; cheap to ask."""

    def follow(self) -> threading.Thread | None:
        """Start to `catch_up` in the thread returned; None where there is no need, or it runs."""
