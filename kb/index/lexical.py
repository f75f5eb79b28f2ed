"""Words with tantivy: tokens cut beforehand, BM25, filters as terms of the same index.

Source: https://docs.rs/tantivy, https://doi.org/10.1561/1500000019 (BM25; k1 = 1.2, b = 0.75)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import tantivy

from kb.errors import DamagedIndexError, SearchIndexError
from kb.index.base import DISK, REPAIR, Ranking, Scores, Term
from kb.knowledge.facets import day_range, wanted_values
from kb.types.entries import NO_FILTERS, Filters

ANALYZER = "cut"
HEAP_BYTES = 64_000_000  # tantivy writes a segment when this is full; its least is 15 MB
WRITER_THREADS = 1  # one: the same documents give the same segments, so the same order of ties
LOCKS = (".tantivy-writer.lock", ".tantivy-meta.lock")
K1 = 1.2  # tantivy's
CACHED_CLAUSES = 4096  # queries for words, about 300 bytes each
FEW_NUMBERS = 128  # chunks asked for one by one; from there on a set of them is cheaper
CACHED_WORDS = 20_000  # words whose rarity is remembered, about 200 bytes each
_SEPARATOR = "\x1f"  # between facet and value: in no facet's name


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkWords:
    """A chunk as the word index takes it: tokens cut beforehand.

    `signature` is filled on one chunk of an entry only, `whole` (the distinct tokens of all its
    chunks) on its last one. `tags` are (facet, folded value).
    """

    number: int
    entry_id: str
    day: int
    body: tuple[str, ...]
    signature: tuple[str, ...]
    tags: tuple[tuple[str, str], ...]
    whole: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LexicalIndex:
    """An opened index as it was when opened; later changes on disk are not seen."""

    schema: Any
    searcher: Any

    @property
    def size(self) -> int:
        """Number of chunks."""
        return int(self.searcher.num_docs)

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
        if not terms or limit < 1:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        query = self._any_of(terms, field)
        if filters is not None and filters != NO_FILTERS:
            query = self._filtered(query, filters)
        return self._run(query, limit)

    def scores(self, terms: Sequence[Term], numbers: Sequence[int]) -> dict[int, float]:
        """BM25 of the given chunks; those without any term are left out."""
        if not terms or not numbers:
            return {}
        return self._scores_of(self._any_of(terms, "body"), numbers)

    def coverage(
        self, choices: Sequence[Sequence[Term]], numbers: Sequence[int]
    ) -> dict[int, float]:
        """The weights of what entries have of each choice, summed; the largest one of a choice.

        Args:
            choices: a word of the question and its translations, each with its weight.
            numbers: the last chunk of each entry (`ChunkWords.whole`); those without any of the
                words are left out.
        """
        if not choices or not numbers:
            return {}
        query, clause = tantivy.Query, self._presence
        found = [
            query.disjunction_max_query([clause(term.word, term.weight) for term in terms])
            for terms in choices
        ]
        either = query.boolean_query([(tantivy.Occur.Should, one) for one in found])
        return self._scores_of(either, numbers)

    def _scores_of(self, query: Any, numbers: Sequence[int]) -> dict[int, float]:  # noqa: ANN401
        if len(numbers) <= FEW_NUMBERS:
            one_of = [(tantivy.Occur.Should, self._number(int(number))) for number in numbers]
            wanted = tantivy.Query.boolean_query(one_of)
        else:
            wanted = tantivy.Query.term_set_query(self.schema, "number", [int(n) for n in numbers])
        hits, scores = self._run(self._must(query, [wanted]), len(numbers))
        return dict(zip(hits.tolist(), scores.tolist(), strict=True))

    def rarity(self, token: str, *, field: str = "body") -> float:
        """ln(1 + (n - df + ½) / (df + ½)) of a token, as BM25 has it."""
        return self._rarity(field, token)

    def entries_with(self, word: str) -> int:
        """How many entries have the token; deleted ones count until their segment is merged."""
        return self._entries_with(word)

    @cached_property
    def _entries_with(self) -> Callable[[str], int]:
        return lru_cache(CACHED_WORDS)(lambda word: int(self.searcher.doc_freq("whole", word)))

    @cached_property
    def _rarity(self) -> Callable[[str, str], float]:
        """`rarity`, cached: logs say the same words again and again."""
        total = self.size

        @lru_cache(CACHED_WORDS)
        def rarity(field: str, token: str) -> float:
            return inverse_frequency(total, self.searcher.doc_freq(field, token))

        return rarity

    def _any_of(self, terms: Sequence[Term], field: str) -> Any:  # noqa: ANN401 - untyped
        clause = self._clause
        return tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, clause(field, term.word, term.weight)) for term in terms]
        )

    @cached_property
    def _clause(self) -> Callable[[str, str, float], Any]:
        """The query for one word, cached as its rarity is."""

        @lru_cache(CACHED_CLAUSES)
        def clause(field: str, word: str, weight: float) -> Any:  # noqa: ANN401
            query = tantivy.Query
            return query.boost_query(query.term_query(self.schema, field, word, "freq"), weight)

        return clause

    @cached_property
    def _presence(self) -> Callable[[str, float], Any]:
        """The query that gives an entry with a word that weight, cached like `_clause`."""

        @lru_cache(CACHED_CLAUSES)
        def clause(word: str, weight: float) -> Any:  # noqa: ANN401
            query = tantivy.Query
            return query.const_score_query(query.term_query(self.schema, "whole", word), weight)

        return clause

    @cached_property
    def _number(self) -> Callable[[int], Any]:
        """The query for one chunk, cached like `_clause`."""
        query = tantivy.Query
        return lru_cache(CACHED_CLAUSES)(
            lambda number: query.term_query(self.schema, "number", number, "basic")
        )

    def _must(self, query: Any, conditions: Sequence[Any]) -> Any:  # noqa: ANN401
        parts = [(tantivy.Occur.Must, query)]
        parts += [
            (tantivy.Occur.Must, tantivy.Query.const_score_query(one, 0.0)) for one in conditions
        ]
        return tantivy.Query.boolean_query(parts)

    def _filtered(self, query: Any, filters: Filters) -> Any:  # noqa: ANN401
        conditions = [
            tantivy.Query.term_set_query(
                self.schema, "tag", [facet + _SEPARATOR + value for value in values]
            )
            for facet, values in wanted_values(filters)
        ]
        days = day_range(filters)
        if days is not None:
            kind = tantivy.FieldType.Unsigned
            conditions.append(tantivy.Query.range_query(self.schema, "day", kind, *days))
        query = self._must(query, conditions)
        if filters.exclude_ids:
            unwanted = tantivy.Query.term_set_query(self.schema, "entry", list(filters.exclude_ids))
            query = tantivy.Query.boolean_query(
                [(tantivy.Occur.Must, query), (tantivy.Occur.MustNot, unwanted)]
            )
        return query

    def _run(self, query: Any, limit: int) -> Ranking:  # noqa: ANN401
        hits = self.searcher.search(query, limit, count=False).hits
        addresses = [address for _, address in hits]
        numbers = np.array(self.searcher.fast_field_values("number", addresses), dtype=np.int64)
        scores: Scores = np.array([score for score, _ in hits], dtype=np.float32)
        order = np.lexsort((numbers, -scores))
        return numbers[order], scores[order]


def inverse_frequency(chunks: int, having: int) -> float:
    """Rarity of a word that `having` of `chunks` have: ln(1 + (n - df + ½) / (df + ½)).

    Deleted documents may count for a while, so `having` may be the larger number.
    """
    return math.log1p(max(0.0, chunks - having + 0.5) / (having + 0.5))


def write(folder: Path, documents: Iterable[ChunkWords], removed: Iterable[int] = ()) -> None:
    """Delete chunks from the index in `folder`, then add `documents`; both at once.

    The index is made if `folder` is empty. A document replaces another one of its number only where
    `removed` names it too.

    Raises:
        SearchIndexError: it cannot be written.
    """
    gone = sorted({int(number) for number in removed})
    try:
        index = _index(folder)
        writer = index.writer(HEAP_BYTES, WRITER_THREADS)
        if gone:
            # by query: deletion by term takes a number for a signed one and matches nothing
            numbers = tantivy.Query.term_set_query(index.schema, "number", gone)
            writer.delete_documents_by_query(numbers)
        for document in documents:
            writer.add_document(_document(document))
        writer.commit()
        writer.wait_merging_threads()
    except ValueError as error:  # tantivy's error for everything the system refuses
        raise SearchIndexError(f"{folder} cannot be written: {error}", todo=DISK) from error
    for name in LOCKS:
        (folder / name).unlink(missing_ok=True)


def load(folder: Path) -> LexicalIndex:
    """Open the index in `folder`.

    Raises:
        SearchIndexError: there is none, or it cannot be read.
    """
    try:
        if not tantivy.Index.exists(str(folder)):
            raise DamagedIndexError(f"{folder} holds no word index", todo=REPAIR)
        index = _index(folder)
        return LexicalIndex(index.schema, index.searcher())
    except (ValueError, OSError) as error:
        raise DamagedIndexError(
            f"{folder}: the words cannot be read: {error}", todo=REPAIR
        ) from error


def _index(folder: Path) -> Any:  # noqa: ANN401 - tantivy is untyped
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("number", indexed=True, fast=True)
    builder.add_unsigned_field("day", indexed=True, fast=True)
    builder.add_text_field("entry", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("tag", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name=ANALYZER, index_option="freq")
    builder.add_text_field("signature", tokenizer_name=ANALYZER, index_option="freq")
    builder.add_text_field("whole", tokenizer_name=ANALYZER, index_option="basic")
    index = tantivy.Index(builder.build(), path=str(folder))
    index.register_tokenizer(
        ANALYZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    )
    return index


def _document(document: ChunkWords) -> Any:  # noqa: ANN401
    made = tantivy.Document()
    made.add_unsigned("number", document.number)
    made.add_unsigned("day", document.day)
    made.add_text("entry", document.entry_id)
    for facet, value in document.tags:
        made.add_text("tag", facet + _SEPARATOR + value)
    made.add_text("body", " ".join(document.body))
    if document.signature:
        made.add_text("signature", " ".join(document.signature))
    if document.whole:
        made.add_text("whole", " ".join(document.whole))
    return made
