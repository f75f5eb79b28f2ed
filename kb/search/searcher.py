"""Hybrid search: by meaning, by words of both languages, and by the lines software printed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kb.embed.base import Embedder
from kb.errors import InputError, NotFoundError, UnreachableStoreError
from kb.index.base import Numbers, Scores, Term, Tokens, signature_tokens
from kb.knowledge.paraphrases import ASKED_ROLE
from kb.search.rerank import LINE_SHARE, RERANKED, QuestionNames, Reranker, Weigh, missing_words
from kb.search.similarity import (
    SIMILAR_ENOUGH,
    QuestionWords,
    signature_strength,
    similarity,
    snippet,
    text_similarity,
    why,
)
from kb.search.spelling import corrected, corrections
from kb.store import ChunkRow, EntryHead, Store
from kb.text.language import detect_language
from kb.types.entries import NO_FILTERS, Filters, Hit, SearchResult
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.index.chunk_index import ChunkIndex, IndexReader, Selection

POOL = 100  # chunks each route proposes at first: a case has about 20 chunks
POOL_PER_HIT = 10  # so that the entries asked for are among them
POOL_GROWTH = 4  # the next try's pool where they were not
MAX_TERMS = 96  # words asked for, the rarest; 48 lower the MRR by .03, 200 do not raise it
REACHABLE_TERMS = 8  # rarest own words a good chunk can be expected to have
SIGNATURE_POOL = 20  # chunks proposed for the log lines of their entry
SIGNATURE_SLACK = 10  # entries below the limit that a log line may still lift
HEALTHY_ROLE = "verify"  # of the passages that tell of a job that runs
RARELY_SHOWN = (HEALTHY_ROLE, ASKED_ROLE)  # roles of passages in whose place others are shown
LIMIT_MAX = 1000  # hits a question may ask for
CACHED_HEADS = 2048  # heads of entries in memory, about 4 KB each
WORDS_CACHED = 8192  # words of questions with what they tell, about 500 bytes each
LINES_CACHED = 16_384  # lines of found chunks whose words are kept, about 1 KB each
K1 = 1.2  # of BM25: a word's largest score is its idf * (K1 + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A question prepared: its vector (None without a known token), its words, its log lines.

    `name_idf` is the rarity of names of log lines, `choices` are its words with their translations
    as the re-ranker weighs them, `mentions` the frameworks and hardware it names.
    """

    vector: Scores | None
    terms: tuple[Term, ...]
    names: tuple[Term, ...]
    name_idf: Mapping[str, float]
    choices: tuple[tuple[Term, ...], ...]
    mentions: QuestionNames | None
    reachable: float  # BM25 that a chunk with the question's rarest words could reach
    compared: QuestionWords


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """An entry at its best chunk `at`, its matched log line, and what its text is scored by."""

    at: int
    ordinal: int
    head: EntryHead
    line: tuple[float, tuple[str, ...]]
    features: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """Chunks some route proposed, with their likeness.

    `owners` are ordinals of their entries; `signed` tells the chunks proposed for the log lines of
    their entry.
    """

    numbers: Numbers
    owners: NDArray[np.int64]
    likeness: Scores
    signed: NDArray[np.bool_]


class Searcher:
    """Finds entries like a question. Safe to use from many threads."""

    def __init__(
        self,
        store: Store,
        index: ChunkIndex,
        embedder: Embedder,
        tokenizer: Tokens,
        *,
        salient: Callable[[str], str] = str,
        reranker: Reranker | None = None,
    ) -> None:
        """Search `index`, made from `store` with `embedder` and `tokenizer`.

        `reranker` looks at the first entries again; None leaves them as they are.
        `salient` gives the term shown for a token two texts share; empty where it is not worth
        showing.
        """
        self._store = store
        self._index = index
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._salient = salient
        self._reranker = reranker
        self._known: tuple[int, dict[int, EntryHead]] = (-1, {})
        self._weighed: tuple[IndexReader, Weigh] | None = None
        # the lines of often found entries are cut once
        self._words = lru_cache(LINES_CACHED)(lambda line: frozenset(tokenizer.tokens(line)))

    def search(
        self,
        query: str,
        *,
        filters: Filters = NO_FILTERS,
        limit: int = 10,
        language: Language | None = None,
        signature: Sequence[str] = (),
    ) -> SearchResult:
        """The entries most like `query`, best first.

        Args:
            query: a description, log lines, or both; put the description first.
            filters: conditions on entries, applied before ranking.
            limit: how many entries at most.
            language: what the question is written in; default: detected.
            signature: the question's identifying log lines; default: all of it.

        Returns:
            Hits with scores in [0, 1] (see `kb.search.similarity`), ties by id. `similar_enough`
            says whether the best reaches `SIMILAR_ENOUGH`. Facets count all entries that pass the
            filters, so they tell what a further filter would leave.

        Raises:
            InputError: the question is empty, or `limit` or a filter's date is out of range.
            SearchIndexError: there is no usable index.
        """
        started = time.perf_counter()
        if not query.strip():
            raise InputError(
                "the question is empty",
                todo="type a description or paste a log",
                reason="no_question",
            )
        if not 1 <= limit <= LIMIT_MAX:
            raise InputError(f"limit={limit} is out of range", todo=f"use 1 to {LIMIT_MAX}")
        snapshot = self._index.snapshot()
        selected = snapshot.select(filters)
        meant: dict[str, str] = {}
        if self._reranker is not None and not signature:
            entries_with = partial(self._entries_with, snapshot)
            meant = corrections(query, entries_with, self._is_right)
        question = self._question(corrected(query, meant), snapshot, language, signature)
        pool = max(POOL, POOL_PER_HIT * limit)
        while True:
            candidates = self._candidates(question, snapshot, selected, pool=pool, limit=limit)
            entries = len(np.unique(candidates.owners))
            if entries >= limit or pool >= selected.size:
                break
            pool *= POOL_GROWTH
        hits, nearest = self._hits(question, snapshot, candidates, limit)
        enough = bool(hits) and hits[0].score >= SIMILAR_ENOUGH
        missing: tuple[str, ...] = ()
        if nearest is not None and not enough:
            entry = [nearest.ordinal]
            missing = missing_words(
                question.choices, lambda word: bool(snapshot.cover_words((word,), entry))
            )
        return SearchResult(
            query=query,
            hits=hits,
            similar_enough=enough,
            facets=selected.facets,
            took_ms=(time.perf_counter() - started) * 1000,
            corrected=tuple((typed, word) for typed, word in meant.items() if word),
            unknown=tuple(typed for typed, word in meant.items() if not word),
            missing=missing,
        )

    def version(self) -> str:
        """Changes whenever a result may: with every change of an entry or of the index."""
        return f"{self._store.last_seq()} {self._index.stamp()}"

    def index_behind(self) -> int:
        """How many changes of the store cannot be found yet."""
        return self._index.behind()

    def index_failure(self) -> str:
        """Why the index could not be brought up to date; empty where it could."""
        return self._index.failure

    # --- the question --------------------------------------------------------------------------

    def _question(
        self,
        query: str,
        snapshot: IndexReader,
        language: Language | None,
        signature: Sequence[str],
    ) -> _Question:
        vector = self._embedder.encode_queries([query])[0]
        # once each: repeated log lines must not drown what was said once
        own = dict.fromkeys(self._tokenizer.tokens(query))
        expanded = dict(self._tokenizer.expand(list(own)))
        idf = snapshot.idf(expanded)
        worth = {token: weight * idf[token] for token, weight in expanded.items()}
        rarest = sorted(sorted(worth), key=worth.__getitem__, reverse=True)  # ties by token
        names = signature_tokens("\n".join(signature) or query)
        name_idf = _EntryIdf(snapshot, names)
        rare_names = sorted(names, key=lambda name: (-name_idf[name], name))[:MAX_TERMS]
        rarest_own = sorted((worth[token] for token in own), reverse=True)[:REACHABLE_TERMS]
        # of few words an entry has to have a larger part; a single one may be an identifier
        short = (REACHABLE_TERMS / max(2, len(rarest_own))) ** 0.5
        choices: tuple[tuple[Term, ...], ...] = ()
        if self._reranker is not None:
            choices = self._reranker.choices(own, self._weighing(self._reranker, snapshot))
        return _Question(
            choices=choices,
            mentions=self._reranker.names(query) if self._reranker else None,
            vector=vector if np.any(vector) else None,
            terms=tuple(Term(word=token, weight=expanded[token]) for token in rarest[:MAX_TERMS]),
            names=tuple(Term(word=name) for name in rare_names),
            name_idf=name_idf,
            reachable=sum(rarest_own) * (K1 + 1) * short,
            compared=QuestionWords(
                names=frozenset(names),
                weights={token: worth[token] for token in rarest},
                own=frozenset(own),
                language=language or detect_language(query),
            ),
        )

    def _weighing(self, reranker: Reranker, snapshot: IndexReader) -> Weigh:
        """What a word tells in one state of the index, cached: logs say the same words again."""
        known = self._weighed
        if known is not None and known[0] is snapshot:
            return known[1]
        entries = max(1, snapshot.entries)

        def share(word: str) -> float:
            return min(1.0, snapshot.entries_with([word])[word] / entries)

        weigh = partial(reranker.weigh, tokenizer=self._tokenizer, share=share)
        self._weighed = snapshot, lru_cache(WORDS_CACHED)(weigh)
        return self._weighed[1]

    def _is_right(self, word: str) -> bool:
        """Whether people ask with a word, or it is none that is searched for."""
        tokens = self._tokenizer.tokens(word)
        return (
            self._reranker is None or not tokens or any(map(self._reranker.is_asked_with, tokens))
        )

    def _entries_with(self, snapshot: IndexReader, words: Sequence[str]) -> dict[str, int]:
        """How many entries have each word itself or in translation; all asked at once."""
        tokens = {
            word: [token for token, _ in self._tokenizer.expand(self._tokenizer.tokens(word))]
            for word in words
        }
        counts = snapshot.entries_with({token for some in tokens.values() for token in some})
        return {
            word: max((counts[token] for token in some), default=0) for word, some in tokens.items()
        }

    # --- candidates ----------------------------------------------------------------------------

    def _candidates(
        self,
        question: _Question,
        snapshot: IndexReader,
        selected: Selection,
        *,
        pool: int,
        limit: int,
    ) -> _Candidates:
        """The chunks that can belong to the best `limit` entries, with their exact likeness."""
        by_words = snapshot.propose_words(question.terms, pool, selected)
        by_lines = snapshot.propose_words(
            question.names, SIGNATURE_POOL, selected, field="signature"
        )
        proposed = [by_words, by_lines]
        if question.vector is not None:
            proposed.append(snapshot.propose_dense(question.vector, pool, selected))
        numbers, first = np.unique(
            np.concatenate([one.numbers for one in proposed]), return_index=True
        )
        owners = np.concatenate([one.entries for one in proposed])[first]
        numbers, owners = numbers[owners >= 0], owners[owners >= 0]
        words, bm25, signed = by_words.numbers, by_words.scores, by_lines.numbers
        # every candidate gets the scores of all routes: which route found it must not matter
        cosine = self._cosines(question.vector, numbers, snapshot)
        lexical = _scores_of(numbers, dict(zip(words.tolist(), bm25.tolist(), strict=True)))
        open_ = lexical < 0
        # a chunk the words did not propose has at most the BM25 of the last one they did
        most = float(bm25[-1]) if len(words) == pool else 0.0
        reachable = question.reachable or 1.0
        lower = text_similarity(cosine, np.maximum(lexical, 0) / reachable)
        upper = text_similarity(cosine, np.where(open_, most, lexical) / reachable)
        is_signed = _among(numbers, signed)
        keep = upper >= _nth_best(lower, owners, self._sought(limit))
        keep |= _among(owners, owners[is_signed])
        unknown = numbers[open_ & keep].tolist() if most else []
        exact = _scores_of(numbers, snapshot.score_words(question.terms, unknown))
        lexical = np.maximum(np.maximum(lexical, exact), 0)
        likeness = text_similarity(cosine, lexical / reachable)
        return _Candidates(
            numbers=numbers[keep],
            owners=owners[keep],
            likeness=likeness[keep],
            signed=is_signed[keep],
        )

    def _cosines(self, vector: Scores | None, numbers: Numbers, snapshot: IndexReader) -> Scores:
        """Exact cosine of every chunk with the question; 0 where there is no vector."""
        cosines = np.zeros(len(numbers), dtype=np.float32)
        if vector is None:
            return cosines
        try:
            held, vectors = snapshot.vectors_of(numbers) or self._store.vectors.get(
                self._embedder.name, numbers.tolist(), self._embedder.dimension
            )
        except UnreachableStoreError:  # words alone answer until the server is back
            return cosines
        cosines[np.searchsorted(numbers, held)] = np.clip(vectors @ vector, -1, 1)
        return cosines

    # --- hits ----------------------------------------------------------------------------------

    def _hits(
        self, question: _Question, snapshot: IndexReader, candidates: _Candidates, limit: int
    ) -> tuple[tuple[Hit, ...], _Look | None]:
        """The best `limit` entries, and the look of the first."""
        ranked = [
            (-self._score(look), look.head.id, look)
            for look in self._looks(question, snapshot, candidates, limit)
        ]
        ranked.sort(key=lambda item: item[:2])
        shown = ranked[:limit]
        chunks = self._passages(candidates, [look.at for _, _, look in shown])
        hits: list[Hit] = []
        for score, _, look in shown:
            head, chunk = look.head, chunks.get(look.at)
            if chunk is None:
                continue
            shown_text, words = snippet(chunk.text, question.compared.weights, self._words)
            hits.append(
                Hit(
                    entry_id=head.id,
                    kind=head.kind,
                    title=head.title,
                    project=head.project,
                    url=head.url,
                    status=head.status,
                    cause=_cause(head),
                    score=-score,
                    chunk_id=chunk.chunk_id,
                    snippet=shown_text,
                    role=chunk.role,
                    snippet_language=chunk.language,
                    why=(
                        *why(
                            question.compared,
                            head,
                            chunk.language,
                            look.line[1],
                            words,
                            salient=self._salient,
                        ),
                        *self._reasons(question, look),
                    ),
                )
            )
        return tuple(hits), ranked[0][2] if ranked else None

    def _reasons(self, question: _Question, look: _Look) -> tuple[str, ...]:
        """What the second look moved the score by."""
        if self._reranker is None or question.mentions is None:
            return ()
        return self._reranker.reasons(question.mentions, look.head, look.features)

    def _looks(
        self, question: _Question, snapshot: IndexReader, candidates: _Candidates, limit: int
    ) -> Iterator[_Look]:
        """The entries that can be shown, each with what the score is made of."""
        best = _best_chunks(candidates)
        ordinals = candidates.owners[best]
        wanted = np.union1d(ordinals[: self._sought(limit)], candidates.owners[candidates.signed])
        heads = self._heads(wanted.tolist())
        looks = [  # others are deleted since, or far below what is shown
            (at, ordinal, head)
            for at, ordinal in zip(best.tolist(), ordinals.tolist(), strict=True)
            if (head := heads.get(ordinal))
        ]
        coverage = snapshot.cover_words(question.choices, [ordinal for _, ordinal, _ in looks])
        for at, ordinal, head in looks:
            line = signature_strength(head.signature, question.compared.names, question.name_idf)
            likeness = float(candidates.likeness[at])
            features: tuple[float, ...] = (likeness,)
            if self._reranker is not None and question.mentions is not None:
                covered = coverage.get(ordinal, 0.0)
                features = self._reranker.features(question.mentions, head, likeness, covered)
            yield _Look(at=at, ordinal=ordinal, head=head, line=line, features=features)

    def _score(self, look: _Look) -> float:
        if self._reranker is None:
            return similarity(look.features[0], look.line[0])
        return similarity(self._reranker.score(look.features), LINE_SHARE * look.line[0])

    def _sought(self, limit: int) -> int:
        """Entries to look at for `limit` hits."""
        return max(limit + SIGNATURE_SLACK, RERANKED if self._reranker else 0)

    def features(self, query: str, limit: int = RERANKED) -> list[tuple[str, tuple[float, ...]]]:
        """The first entries in any order, with what the re-ranker scores them by."""
        snapshot = self._index.snapshot()
        question = self._question(query, snapshot, None, ())
        candidates = self._candidates(
            question, snapshot, snapshot.select(NO_FILTERS), pool=POOL, limit=limit
        )
        looks = self._looks(question, snapshot, candidates, limit)
        return [(look.head.id, look.features) for look in looks]

    def _heads(self, ordinals: Sequence[int]) -> dict[int, EntryHead]:
        """Heads of entries by ordinal, read once for every state of the store."""
        seq = self._store.last_seq()
        if self._known[0] != seq or len(self._known[1]) > CACHED_HEADS:
            self._known = (seq, {})
        known = self._known[1]
        if missing := [ordinal for ordinal in ordinals if ordinal not in known]:
            known.update(self._store.heads(missing))
        return {ordinal: known[ordinal] for ordinal in ordinals if ordinal in known}

    def _passages(self, candidates: _Candidates, shown: Sequence[int]) -> dict[int, ChunkRow]:
        """The chunk to show of each entry, by the position of its best one.

        How a fix is verified tells of a job that runs, and a paraphrase is nobody's account: the
        next best in its language is shown where there is one.
        """
        rows = {row.number: row for row in self._store.chunks(candidates.numbers[shown].tolist())}
        best = {at: row for at in shown if (row := rows.get(int(candidates.numbers[at])))}
        rare = [at for at, row in best.items() if row.role in RARELY_SHOWN]
        if not rare:
            return best
        others = np.isin(candidates.owners, candidates.owners[rare])
        order = np.argsort(-candidates.likeness[others], kind="stable")
        numbers = candidates.numbers[others][order].tolist()
        more = {row.number: row for row in self._store.chunks(numbers)}
        for at in rare:
            fitting = (
                row
                for number in numbers
                if (row := more.get(number)) and row.entry == best[at].entry
                if row.role not in RARELY_SHOWN and row.language == best[at].language
            )
            if row := next(fitting, None) or self._own_words(best[at]):
                best[at] = row
            else:
                del best[at]
        return best

    def _own_words(self, row: ChunkRow) -> ChunkRow | None:
        """The beginning of an entry in place of its paraphrases; another chunk as it is.

        None where the entry was deleted since.
        """
        if row.role != ASKED_ROLE:
            return row
        try:
            entry = self._store.get(row.chunk_id.rpartition("#")[0])
        except NotFoundError:
            return None
        own = [chunk for chunk in entry.chunks if chunk.role != ASKED_ROLE]
        chunk = next((chunk for chunk in own if chunk.language == row.language), own[0])
        return replace(
            row, chunk_id=chunk.id, role=chunk.role, language=chunk.language, text=chunk.text
        )


def _scores_of(numbers: Numbers, known: Mapping[int, float]) -> Scores:
    """The known score of every number, -1 where there is none."""
    return np.array([known.get(number, -1.0) for number in numbers.tolist()], dtype=np.float32)


def _among(values: NDArray[np.int64], few: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which values are one of a few: for a few dozens a fifth of the time `np.isin` takes."""
    return (values[:, None] == few).any(axis=1)  # type: ignore[no-any-return]


def _nth_best(likeness: Scores, owners: NDArray[np.int64], rank: int) -> float:
    """Likeness of the entry at that rank, each by its best chunk; -1 when there are fewer."""
    entries, position = np.unique(owners, return_inverse=True)
    if len(entries) < rank:
        return -1.0
    best = np.full(len(entries), -1.0, dtype=np.float32)
    np.maximum.at(best, position, likeness)
    return float(np.partition(best, len(entries) - rank)[len(entries) - rank])


def _best_chunks(candidates: _Candidates) -> NDArray[np.int64]:
    """Position of the best chunk of every entry, best entry first, ties by chunk number."""
    order = np.lexsort((candidates.numbers, -candidates.likeness))
    _, first = np.unique(candidates.owners[order], return_index=True)
    return order[np.sort(first)].astype(np.int64)


def _cause(head: EntryHead) -> str:
    """The first cause that is not contradicted."""
    return next((claim.id for claim in head.causes if claim.status != "contradicted"), "")


class _EntryIdf(dict[str, float]):
    """Rarity among entries of names of log lines: only one chunk of an entry has its signature.

    That of the question's names is known; of another one it is looked up when it is asked for.
    """

    def __init__(self, snapshot: IndexReader, names: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._shift = math.log(max(snapshot.chunks, 1) / max(snapshot.entries, 1))
        self._look_up(names)

    def __missing__(self, name: str) -> float:
        self._look_up([name])
        return self[name]

    def _look_up(self, names: Sequence[str]) -> None:
        for name, rarity in self._snapshot.idf(names, field="signature").items():
            self[name] = max(rarity - self._shift, 0.0)
