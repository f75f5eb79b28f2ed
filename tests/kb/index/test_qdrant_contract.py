"""FAISS + tantivy and Qdrant answer the same questions alike: the seam's contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb.index.sources import ChunkSources, fingerprint
from kb.search.rerank import FOLDER, load_reranker
from kb.search.searcher import Searcher
from kb.service import Service
from kb.types.entries import Filters, SearchResult

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed (extra qdrant)")
pytest.importorskip("qdrant_edge", reason="qdrant-edge-py is not installed (extra dev)")

from qdrant_client import QdrantClient

from kb.embed.base import Embedder
from kb.index.qdrant_connection import QdrantConnection, read_address
from kb.index.qdrant_index import QdrantIndex
from kb.knowledge.framework_names import framework_names
from kb.text.tokenizer import Tokenizer
from tests.qdrant import EdgeClient

FILTERS = (
    Filters(),
    Filters(backends=("nccl",), since="2022"),
    Filters(kinds=("case",), exclude_ids=("nowhere",), until="2025-06"),
)
SAME = 0.95  # of the best ten: what a graph, 8-bit vectors and rounded lengths may cost
EDGE_STEP, MEMORY_STEP = 4, 20  # every such question; the copy in memory takes long over each


def _searcher(service: Service, client: Any) -> Searcher:
    tokenizer = Tokenizer(service.settings.data / "lexicon")
    embedder: Embedder = service.searcher._embedder
    sources = ChunkSources(
        store=service.store,
        embedder=embedder,
        tokenizer=tokenizer,
        fingerprint=fingerprint(tokenizer),
    )
    index = QdrantIndex(QdrantConnection(read_address("qdrant://nowhere"), client), sources)
    index.catch_up()
    names = framework_names(service.knowledge.framework_names)
    reranker = load_reranker(service.settings.data / FOLDER, names)
    return Searcher(service.store, index, embedder, tokenizer, reranker=reranker)


def _ids(result: SearchResult) -> list[str]:
    return [hit.entry_id for hit in result.hits]


def _questions(data_dir: Path, step: int) -> list[str]:
    lines = (data_dir / "golden" / "queries.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines[::step]]


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
@pytest.mark.filterwarnings("ignore:Local mode performs exact")
@pytest.mark.parametrize(
    ("knowledge", "new_client", "step"),
    [
        ("shipped", EdgeClient, EDGE_STEP),
        ("small", lambda _folder: QdrantClient(":memory:"), MEMORY_STEP),
    ],
    ids=["the engine", "the client in memory"],
)
def test_both_find_the_same(
    request: pytest.FixtureRequest,
    data_dir: Path,
    tmp_path: Path,
    knowledge: str,
    new_client: Callable[[Path], Any],
    step: int,
) -> None:
    """At least .95 of the best ten are the same, with any filter; facets and filters entirely."""
    service: Service = request.getfixturevalue(knowledge)
    ours, theirs = service.searcher, _searcher(service, new_client(tmp_path))
    common = asked = 0
    for number, question in enumerate(_questions(data_dir, step)):
        filters = FILTERS[number % len(FILTERS)]
        first, second = (one.search(question, filters=filters) for one in (ours, theirs))
        assert second.facets == first.facets
        assert len(second.hits) == len(first.hits)
        common += len({*_ids(first)} & {*_ids(second)})
        asked += len(first.hits)
        passing = service.store.ids(filters)
        assert {*_ids(second)} <= {*passing}
    assert common / asked >= SAME
