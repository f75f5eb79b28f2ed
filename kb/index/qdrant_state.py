"""What a search asks of an index on Qdrant (`kb.index.chunk_index.IndexReader`).

A chunk is a point: its vector, its words and its entry's log lines as sparse vectors, and what it
is filtered by. The last chunk of an entry carries what is the entry's: its labels, which facets
count, and all of its words. Of every word a second collection knows how many chunks and entries
have it.

Source: https://qdrant.tech/documentation/concepts/
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from qdrant_client import models

from kb.index.base import Numbers, Scores, Term
from kb.index.catalogue import CACHED_SELECTIONS, facet_table
from kb.index.chunk_index import NOTHING, Proposal, Selection, WordField
from kb.index.lexical import inverse_frequency
from kb.index.qdrant_connection import QdrantConnection
from kb.index.sparse_words import SparseRow, question_row, word_index
from kb.knowledge.facets import day_range, wanted_values
from kb.types.entries import NO_FILTERS, Filters

WORDS = "-words"  # ends the name of the collection that counts words
SEPARATOR = "\x1f"  # between facet and value: in no facet's name
MOST_LABELS = 100_000  # different values of all facets that are counted
WIDTH = 256  # points a search of the graph keeps: recall@10 .95 on 500,000 chunks
KNOWN_WORDS = 100_000  # whose counts are kept, about 200 bytes each
PLACE = np.dtype("<u4")  # of a word, in the list of an entry's words
UNCOUNTED: dict[str, int] = {}


class QdrantState:
    """The index after change `seq` of the store; nothing but counts of words is kept in memory.

    Attributes:
        seq: number of the last change that is in it.
        chunks, entries: how many it has.
    """

    def __init__(
        self, connection: QdrantConnection, *, seq: int, chunks: int, entries: int
    ) -> None:
        self.seq, self.chunks, self.entries = seq, chunks, entries
        self._connection = connection
        self._collection = connection.collection
        self._counts: dict[int, dict[str, int]] = {}
        self._selections = lru_cache(CACHED_SELECTIONS)(self._select)

    # --- filters and facets ------------------------------------------------------------------

    def select(self, filters: Filters) -> Selection:
        """The entries that pass, with their facets; the last ones are kept."""
        return self._selections(filters)

    def _select(self, filters: Filters) -> Selection:
        only, size = _filter(filters), self.chunks
        with self._connection.asking() as client:
            hits = client.facet(
                self._collection, "labels", facet_filter=only, limit=MOST_LABELS, exact=True
            ).hits
            if only is not None:
                size = client.count(self._collection, count_filter=only, exact=True).count
        counts = [(*str(hit.value).split(SEPARATOR, 1), hit.count) for hit in hits]
        return Selection(filters=filters, facets=facet_table(counts), size=size)

    # --- candidates --------------------------------------------------------------------------

    def propose_dense(self, vector: Scores, limit: int, selected: Selection) -> Proposal:
        """The nearest chunks, by a graph over 8-bit vectors and the cosines of the best."""
        params = models.SearchParams(
            hnsw_ef=max(WIDTH, limit), quantization=models.QuantizationSearchParams(rescore=True)
        )
        found = self._query(vector.tolist(), "dense", limit, selected.filters, params=params)
        return Proposal(found.numbers, np.clip(found.scores, -1, 1), found.entries)

    def vectors_of(self, numbers: Numbers) -> tuple[Numbers, Scores] | None:
        """None: the store has them, and a few are quicker from there."""
        return None

    def propose_words(
        self, terms: Sequence[Term], limit: int, selected: Selection, *, field: WordField = "body"
    ) -> Proposal:
        """The best chunks by BM25."""
        row = self._question(terms, field)
        return (
            self._query(sparse_vector(row), field, limit, selected.filters) if row[0] else NOTHING
        )

    # --- scores of words ---------------------------------------------------------------------

    def score_words(self, terms: Sequence[Term], numbers: Sequence[int]) -> dict[int, float]:
        """BM25 of the given chunks."""
        row = self._question(terms, "body")
        if not row[0] or not numbers:
            return {}
        among = models.Filter(must=[models.HasIdCondition(has_id=list(numbers))])
        found = self._query(sparse_vector(row), "body", len(numbers), NO_FILTERS, among=among)
        return dict(zip(found.numbers.tolist(), found.scores.tolist(), strict=True))

    def cover_words(
        self, choices: Sequence[Sequence[Term]], entries: Sequence[int]
    ) -> dict[int, float]:
        """What entries have of each choice, by the list of all words on their last chunk."""
        if not choices or not entries:
            return {}
        terms = [term for some in choices for term in some]
        places = np.array([word_index(term.word) for term in terms], dtype=PLACE)
        weights = np.array([term.weight for term in terms], dtype=np.float32)
        starts = np.cumsum([0, *(len(some) for some in choices[:-1])])
        covered: dict[int, float] = {}
        for payload in self._last_chunks(entries):
            there = np.isin(places, places_of(payload["words"]))
            if there.any():
                best = np.maximum.reduceat(np.where(there, weights, 0), starts)
                covered[payload["entry"]] = float(best.sum())
        return covered

    def _last_chunks(self, entries: Sequence[int]) -> list[dict[str, Any]]:
        among = models.FieldCondition(key="last_of", match=models.MatchAny(any=list(entries)))
        with self._connection.asking() as client:
            points, _ = client.scroll(
                self._collection,
                models.Filter(must=[among]),
                limit=len(entries),
                with_payload=["entry", "words"],
            )
        return [point.payload for point in points]

    # --- rarities ----------------------------------------------------------------------------

    def idf(self, tokens: Iterable[str], *, field: WordField = "body") -> dict[str, float]:
        """Rarity of every token."""
        counts = self._counts_of(tokens, field)
        return {token: inverse_frequency(self.chunks, n) for token, n in counts.items()}

    def entries_with(self, words: Iterable[str]) -> dict[str, int]:
        """How many entries have each token."""
        return self._counts_of(words, "entries")

    def _counts_of(self, words: Iterable[str], field: str) -> dict[str, int]:
        places = {word: word_index(word) for word in words}
        known = self._counts
        missing = sorted({place for place in places.values() if place not in known})
        if missing:
            if len(known) > KNOWN_WORDS:
                known = self._counts = {}
                missing = sorted(set(places.values()))
            with self._connection.asking() as client:
                points = client.retrieve(self._collection + WORDS, missing, with_payload=True)
            known.update(dict.fromkeys(missing, UNCOUNTED))
            known.update({point.id: point.payload for point in points})
        return {word: known[place].get(field, 0) for word, place in places.items()}

    def _question(self, terms: Sequence[Term], field: WordField) -> SparseRow:
        """The question as a sparse vector: words that nobody has are left out."""
        words = [term.word for term in terms]
        counts = self._counts_of(words, field)
        return question_row([t for t in terms if counts[t.word]], self.idf(words, field=field))

    # --- requests ----------------------------------------------------------------------------

    def _query(
        self,
        query: list[float] | models.SparseVector,
        using: str,
        limit: int,
        filters: Filters,
        *,
        params: models.SearchParams | None = None,
        among: models.Filter | None = None,
    ) -> Proposal:
        with self._connection.asking() as client:
            points = client.query_points(
                self._collection,
                query=query,
                using=using,
                query_filter=among or _filter(filters),
                search_params=params,
                limit=max(1, limit),
                with_payload=["entry"],
            ).points
        numbers = np.array([point.id for point in points], dtype=np.int64)
        scores = np.array([point.score for point in points], dtype=np.float32)
        entries = np.array([point.payload["entry"] for point in points], dtype=np.int64)
        order = np.lexsort((numbers, -scores))
        return Proposal(numbers[order], scores[order], entries[order])


def _filter(filters: Filters) -> models.Filter | None:
    """The conditions on a chunk's entry; None where there is none.

    Raises:
        InputError: a date of the filter cannot be read.
    """
    must: list[Any] = [
        models.FieldCondition(
            key="tags",
            match=models.MatchAny(any=[facet + SEPARATOR + value for value in values]),
        )
        for facet, values in wanted_values(filters)
    ]
    days = day_range(filters)
    if days is not None:
        must.append(models.FieldCondition(key="day", range=models.Range(gte=days[0], lte=days[1])))
    if not must and not filters.exclude_ids:
        return None
    unwanted = models.FieldCondition(key="id", match=models.MatchAny(any=list(filters.exclude_ids)))
    return models.Filter(must=must, must_not=[unwanted] if filters.exclude_ids else None)


def sparse_vector(row: SparseRow) -> models.SparseVector:
    """A row as the client takes it."""
    return models.SparseVector(indices=row[0], values=row[1])


def places_text(places: Iterable[int]) -> str:
    """Places of words as text that `places_of` reads."""
    return base64.b64encode(np.array(sorted(places), dtype=PLACE).tobytes()).decode()


def places_of(text: str) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The places of the words of an entry, ascending."""
    return np.frombuffer(base64.b64decode(text), dtype=PLACE)
