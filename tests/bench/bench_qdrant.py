"""Qdrant beside FAISS and tantivy over the same store: ``python -m tests.bench.bench_qdrant``.

Entries as in `bench_index`. The engine of Qdrant runs as a library in the process that asks (Qdrant
Edge), so a server adds the way of a request. Each index is built, opened and asked in a process of
its own; compare seconds of the processor, and those as ratios.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kb.embed.static import StaticEmbedder
from kb.index.live import SearchIndex
from kb.index.qdrant_connection import QdrantConnection, read_address
from kb.index.qdrant_index import QdrantIndex
from kb.index.sources import ChunkSources, fingerprint
from kb.search.searcher import Searcher
from kb.store import Store
from kb.text.tokenizer import Tokenizer
from kb.types.entries import NO_FILTERS, Filters
from tests.bench.bench_index import MIB, ROOT, fill, lines_of_cases, resident, say, timed
from tests.qdrant import EdgeClient

KINDS = ("faiss+tantivy", "qdrant")
NARROW = Filters(causes=("rank-crash",), backends=("nccl",), since="2018")
Index = SearchIndex | QdrantIndex


def sources_of(home: Path) -> ChunkSources:
    """The store of a folder with a model and word lists of its own."""
    tokenizer = Tokenizer(home / "lexicon")
    return ChunkSources(
        store=Store.open(home / "kb.sqlite3"),
        embedder=StaticEmbedder.load(home / "model"),
        tokenizer=tokenizer,
        fingerprint=fingerprint(tokenizer, home / "lexicon"),
    )


def index_of(kind: str, home: Path, sources: ChunkSources) -> Index:
    """The index of that kind, not built yet."""
    if kind == "qdrant":
        (home / "qdrant").mkdir()
        connection = QdrantConnection(read_address("qdrant://nowhere"), EdgeClient(home / "qdrant"))
        return QdrantIndex(connection, sources, lambda _: None)
    return SearchIndex(
        home / "index",
        store=sources.store,
        embedder=sources.embedder,
        tokenizer=sources.tokenizer,
        tokens=sources.fingerprint,
    )


def percentiles(calls: list[Callable[[], object]]) -> str:
    """Median and 99th percentile on the clock, and the median on the processor."""
    took = [timed(call) for call in calls]
    wall = np.percentile([one.wall_s * 1000 for one in took], [50, 99])
    cpu = np.median([one.cpu_s * 1000 for one in took])
    return f"p50 {wall[0]:7.2f} ms   p99 {wall[1]:7.2f} ms   cpu p50 {cpu:7.2f} ms"


def measure(kind: str, home: Path, queries: int) -> None:
    """Build one index and print its figures."""
    sources = sources_of(home)
    index = index_of(kind, home, sources)
    before = resident()
    say("build from stored vectors", str(timed(index.catch_up)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
    say("memory: now, at most", f"{resident() - before:.0f} MiB, {peak:.0f} MiB")
    folder = home / ("qdrant" if kind == "qdrant" else "index")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    say("disk", f"{size / MIB:.0f} MiB")
    ask(index, sources, queries)
    sources.store.close()


def ask(index: Index, sources: ChunkSources, queries: int) -> None:
    """Latency of the search and of its verbs, and how many of the nearest are found."""
    lines, generator = lines_of_cases(), np.random.default_rng(1)
    picks = generator.integers(0, len(lines), (queries, 2))
    texts = ["\n".join(lines[int(at)] for at in row) for row in picks]
    searcher = Searcher(sources.store, index, sources.embedder, sources.tokenizer)
    for text in texts[:5]:
        searcher.search(text)
    say("hybrid", percentiles([lambda t=t: searcher.search(t) for t in texts]))  # type: ignore[misc]
    say(
        "hybrid, three filters",
        percentiles([lambda t=t: searcher.search(t, filters=NARROW) for t in texts]),  # type: ignore[misc]
    )
    state = index.snapshot()
    every = state.select(NO_FILTERS)
    questions = [searcher._question(text, state, None, ()) for text in texts]
    say(
        "word candidates, 100 of 96 terms",
        percentiles([lambda q=q: state.propose_words(q.terms, 100, every) for q in questions]),  # type: ignore[misc]
    )
    rows = sources.embedder.encode_queries(texts)
    say(
        "dense candidates, 100",
        percentiles([lambda r=r: state.propose_dense(r, 100, every) for r in rows]),  # type: ignore[misc]
    )
    say("facets of a filter", str(timed(lambda: state.select(Filters(since="2017")))))
    numbers = sources.store.chunk_changes_since(-1).chunks
    held, vectors = sources.store.vectors.get(
        sources.embedder.name, numbers, sources.embedder.dimension
    )
    shares = []
    for row in rows:
        scores = vectors @ row
        tenth = np.partition(scores, -10)[-10]
        found = state.propose_dense(row, 10, every).numbers
        shares.append(float(np.mean(scores[np.searchsorted(held, found)] >= tenth - 1e-6)))
    say("recall@10 of the vectors", f"{np.mean(shares):.3f}")
    say(
        "brute force over the vectors",
        percentiles([lambda r=r: np.argpartition(vectors @ r, -10) for r in rows[:20]]),  # type: ignore[misc]
    )


def prepare(home: Path, count: int, chunks: int) -> None:
    """A store with vectors."""
    for name in ("model", "lexicon"):
        shutil.copytree(ROOT / "data" / name, home / name)  # nobody changes them meanwhile
    sources = sources_of(home)
    say(
        f"store {count} entries of {chunks} chunks",
        str(timed(lambda: fill(sources.store, count, chunks, lines_of_cases()))),
    )
    say("embed", str(timed(sources.embed_missing)))
    sources.store.close()


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entries", type=int, nargs="?", default=20_000)
    parser.add_argument("chunks", type=int, nargs="?", default=5)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--kind", choices=KINDS, help="only measure this one, over --home")
    parser.add_argument("--home", type=Path)
    options = parser.parse_args()
    if options.kind:
        measure(options.kind, options.home, options.queries)
        return
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), options.entries, options.chunks)
        for kind in KINDS:
            say(f"--- {kind}", time.strftime("%H:%M:%S"))
            again = [sys.executable, "-m", "tests.bench.bench_qdrant", "--kind", kind]
            again += ["--home", name, "--queries", str(options.queries)]
            subprocess.run(again, check=True)


if __name__ == "__main__":
    main()
