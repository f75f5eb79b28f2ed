"""An index beside a store, and the check that it holds what the store holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kb.index.base import Term
from kb.index.live import SearchIndex
from kb.store import Store
from kb.types.entries import NO_FILTERS
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry

ROOT = Path(__file__).resolve().parents[3]
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def text(number: int) -> str:
    """A text of four words, another one a number."""
    return " ".join([WORDS[number * k % 10] for k in (1, 3, 7)] + [f"w{number}"])


def entries(start: int, stop: int) -> list[object]:
    """Entries with two chunks each."""
    return [make_entry(f"e{n:03}", text(n), text(n + 1)) for n in range(start, stop)]


def open_index(store: Store, **options: object) -> SearchIndex:
    """The index beside the store."""
    index = new_index(store, **options)
    index.catch_up()
    return index


def new_index(store: Store, **options: object) -> SearchIndex:
    """The same, not looked into yet."""
    parts: dict[str, object] = {"embedder": WordEmbedder(), "tokenizer": SplitTokenizer()}
    return SearchIndex(store.path.parent / "index", store=store, **(parts | options))  # type: ignore[arg-type]


def assert_follows(index: SearchIndex, store: Store) -> None:
    """Both halves of the index hold the store's chunks, with the right cosines."""
    embedder = WordEmbedder()
    snapshot = index.snapshot()
    rows = store.chunks(store.chunk_changes_since(-1).chunks)
    vectors = embedder.encode_passages([row.text for row in rows])
    truth = {row.number: vector for row, vector in zip(rows, vectors, strict=True)}
    assert snapshot.manifest.seq == store.last_seq()
    assert snapshot.manifest.chunks == snapshot.lexical.size == snapshot.dense.size == len(truth)
    assert snapshot.catalogue.numbers.tolist() == sorted(truth)
    assert sorted(snapshot.catalogue.ids.tolist()) == store.ids()
    assert snapshot.catalogue.select(NO_FILTERS).facets == store.facets()
    for word in ("alpha", "w3", "w21"):
        query = embedder.encode_queries([word])[0]
        numbers, scores = snapshot.dense.search(query, len(truth) + 5)
        expected = [float(truth[number] @ query) for number in numbers.tolist()]
        assert sorted(numbers.tolist()) == sorted(truth)
        np.testing.assert_allclose(scores, expected, atol=2e-3)  # vectors are stored as float16
        found = set(snapshot.lexical.search([Term(word=word)], 500)[0].tolist())
        assert found == {
            row.number for row in store.chunks(sorted(truth)) if word in row.text.split()
        }
