"""Speed and size of store, index and search: ``python -m tests.bench.bench_index``.

Entries are made of lines of the shipped cases, shuffled; a million vectors are made of the
embedded model's vectors of such texts, each with noise around it. BM25 alone and brute force
stand beside in the same run. One compute thread.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.embed.static import StaticEmbedder
from kb.index.base import Term
from kb.index.faiss_index import FaissIndex
from kb.index.live import SearchIndex
from kb.index.sources import fingerprint
from kb.index.vector_index import VectorIndex
from kb.knowledge.cases import load_case
from kb.search.searcher import Searcher
from kb.store import Store
from kb.text.tokenizer import Tokenizer
from kb.types.entries import CauseClaim, Chunk, Entry, Filters, Tags
from kb.types.knowledge import Bilingual

ROOT = Path(__file__).resolve().parents[2]
LINES_PER_CHUNK = 4  # about 300 characters, as the chunks of the cases
CAUSES = ("rank-crash", "uneven-data", "checkpoint-io", "network-fault", "rendezvous")
NOISE = 0.55  # a vector's cosine with the text it was made from is then about .87
MIB = 1024 * 1024


def say(name: str, value: str) -> None:
    """One line of the report."""
    sys.stdout.write(f"{name:52}{value}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds on the clock and on the processor: a busy machine lengthens only the first."""

    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.wall_s:8.2f} s   cpu {self.cpu_s:8.2f} s"


def timed(call: Callable[[], object]) -> Took:
    """How long one call takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


def percentiles(calls: list[Callable[[], object]]) -> str:
    """Median and 95th percentile of the calls on the clock, and the median on the processor."""
    took = [timed(call) for call in calls]
    wall = np.percentile([one.wall_s * 1000 for one in took], [50, 95])
    cpu = np.median([one.cpu_s * 1000 for one in took])
    return f"p50 {wall[0]:7.2f} ms   p95 {wall[1]:7.2f} ms   cpu p50 {cpu:7.2f} ms"


def resident() -> float:
    """Resident memory of this process now, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def lines_of_cases() -> list[str]:
    """Lines of the shipped cases, both languages."""
    found = []
    for path in sorted((ROOT / "data" / "cases").glob("*.md")):
        for chunk in load_case(path).chunks:
            found += [line for line in chunk.text.splitlines() if len(line) > 20]
    return found


def entries(count: int, chunks: int, lines: list[str]) -> Iterator[list[Entry]]:
    """Entries in batches."""
    generator = np.random.default_rng(0)
    batch: list[Entry] = []
    for number in range(count):
        picks = generator.integers(0, len(lines), (chunks, LINES_PER_CHUNK))
        entry_id = f"thread-{number:07}"
        batch.append(
            Entry(
                id=entry_id,
                kind="thread",
                language="en",
                title=Bilingual(zh=f"第 {number} 例", en=f"case {number}"),
                project=f"owner/p{number % 500}",
                url=f"https://example.org/{number}",
                date=f"20{15 + number % 10}-06-01",
                status="reported",
                causes=(CauseClaim(id=CAUSES[number % len(CAUSES)], status="reported"),),
                fixes=(),
                tags=Tags(backend=("nccl", "gloo")[number % 2], ops=("ALLREDUCE",)),
                signature=(lines[int(picks[0, 0])],) if number % 5 == 0 else (),
                sections=(),
                chunks=tuple(
                    Chunk(
                        id=f"{entry_id}#{n}",
                        entry_id=entry_id,
                        role="symptoms",
                        language="en",
                        text="\n".join([*(lines[int(i)] for i in row), f"host{number}"]),
                    )
                    for n, row in enumerate(picks)
                ),
                source_key=f"bench/{number}",
                digest=str(number),
            )
        )
        if len(batch) == 2000:
            yield batch
            batch = []
    yield batch


def bench_search(home: Path, count: int, chunks: int, queries: int) -> None:
    """Hybrid search over `count` entries, from an empty folder to the p95."""
    lines = lines_of_cases()
    for name in ("model", "lexicon"):
        shutil.copytree(ROOT / "data" / name, home / name)  # nobody changes them meanwhile
    embedder, tokenizer = StaticEmbedder.load(home / "model"), Tokenizer(home / "lexicon")
    store = Store.open(home / "kb.sqlite3")
    took = timed(lambda: fill(store, count, chunks, lines))
    say(f"store {count} entries of {chunks} chunks", str(took))
    made: list[SearchIndex] = []
    whole = timed(lambda: made.append(open_index(home, store, embedder, tokenizer)))
    index = made[0]
    rest = timed(index.rebuild)
    say("embed", str(Took(whole.wall_s - rest.wall_s, whole.cpu_s - rest.cpu_s)))
    say("build from stored vectors", str(rest))
    again = [sys.executable, "-m", "tests.bench.bench_index", "--reopen", str(home)]
    printed = subprocess.run(again, check=True, capture_output=True, text=True).stdout.split()
    say("open, in a new process", f"{float(printed[0]):.2f} s")
    say("memory per entry", f"{float(printed[1]) * MIB / count:.0f} bytes")
    size = sum(path.stat().st_size for path in index.snapshot().folder.rglob("*"))
    say("kind of the vector index", index.snapshot().dense.kind)
    say("disk per entry, index", f"{size / count:.0f} bytes")
    stored = sum(path.stat().st_size for path in home.glob("kb.sqlite3*"))
    say("disk per entry, store", f"{stored / count:.0f} bytes")
    measure_queries(store, index, embedder, tokenizer, lines, queries)
    one = next(entries(1, chunks, lines[::-1]))
    store.upsert([replace(one[0], id="new", source_key="new")])
    say("make one new entry searchable", str(timed(index.catch_up)))
    store.close()


def open_index(
    home: Path,
    store: Store,
    embedder: StaticEmbedder,
    tokenizer: Tokenizer,
) -> SearchIndex:
    """The index below `home`, built if there is none."""
    index = SearchIndex(
        home / "index",
        store=store,
        embedder=embedder,
        tokenizer=tokenizer,
        tokens=fingerprint(tokenizer, home / "lexicon"),
    )
    index.catch_up()
    return index


def reopen(home: Path) -> None:
    """Print how long opening takes and the memory it needs, MiB."""
    embedder, tokenizer = StaticEmbedder.load(home / "model"), Tokenizer(home / "lexicon")
    store = Store.open(home / "kb.sqlite3")
    before = resident()
    kept: list[SearchIndex] = []
    took = timed(lambda: kept.append(open_index(home, store, embedder, tokenizer)))
    sys.stdout.write(f"{took.wall_s} {resident() - before}")


def fill(store: Store, count: int, chunks: int, lines: list[str]) -> None:
    """Write the entries."""
    for batch in entries(count, chunks, lines):
        store.upsert(batch)


def measure_queries(
    store: Store,
    index: SearchIndex,
    embedder: StaticEmbedder,
    tokenizer: Tokenizer,
    lines: list[str],
    queries: int,
) -> None:
    """Latency of hybrid search, with filters, of its parts alone, and of brute force."""
    generator = np.random.default_rng(1)
    texts = [
        "\n".join(lines[int(i)] for i in generator.integers(0, len(lines), 2))
        for _ in range(queries)
    ]
    searcher = Searcher(store, index, embedder, tokenizer)
    searcher.search(texts[0])
    narrow = Filters(causes=("rank-crash",), backends=("nccl",), since="2018")
    say("hybrid", percentiles([lambda t=t: searcher.search(t) for t in texts]))  # type: ignore[misc]
    say(
        "hybrid, three filters",
        percentiles([lambda t=t: searcher.search(t, filters=narrow) for t in texts]),  # type: ignore[misc]
    )
    snapshot = index.snapshot()
    terms = [[Term(word=token) for token in dict.fromkeys(tokenizer.tokens(t))] for t in texts]
    say(
        "BM25 alone",
        percentiles([lambda q=q: snapshot.lexical.search(q, 10) for q in terms]),  # type: ignore[misc]
    )
    rows = embedder.encode_queries(texts)
    say(
        "vectors alone",
        percentiles([lambda r=r: snapshot.dense.search(r, 10) for r in rows]),  # type: ignore[misc]
    )
    numbers, vectors = store.vectors.get(
        embedder.name, snapshot.catalogue.numbers.tolist(), embedder.dimension
    )
    say(
        "brute force over the vectors",
        percentiles([lambda r=r: np.argpartition(vectors @ r, -10) for r in rows[:20]]),  # type: ignore[misc]
    )
    say("recall@10 of the vectors", f"{recall(snapshot.dense, numbers, vectors, rows):.3f}")


def recall(
    index: VectorIndex,
    numbers: NDArray[np.int64],
    vectors: NDArray[np.float32],
    rows: NDArray[np.float32],
) -> float:
    """Share of the true ten nearest that are found; equal scores count as found."""
    shares = []
    for row in rows:
        scores = vectors @ row
        tenth = np.partition(scores, -10)[-10]
        found, _ = index.search(row, 10)
        at = np.searchsorted(numbers, found)
        shares.append(float(np.mean(scores[at] >= tenth - 1e-6)))
    return float(np.mean(shares))


def bench_vectors(count: int, queries: int) -> None:
    """The vector index alone over `count` vectors."""
    lines = lines_of_cases()
    embedder = StaticEmbedder.load(ROOT / "data" / "model")
    generator = np.random.default_rng(2)
    texts = [
        "\n".join(lines[int(i)] for i in generator.integers(0, len(lines), LINES_PER_CHUNK))
        for _ in range(50_000)
    ]
    centres = embedder.encode_passages(texts)
    vectors = np.empty((count, embedder.dimension), dtype=np.float32)
    for start in range(0, count, 50_000):
        vectors[start : start + 50_000] = noisy(centres, generator)[: count - start]
    numbers = np.arange(count, dtype=np.int64)

    def batches() -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        for start in range(0, count, 20_000):
            yield numbers[start : start + 20_000], vectors[start : start + 20_000]

    made: list[FaissIndex] = []

    def build() -> None:
        made.append(FaissIndex.build(batches, size=count, dimension=embedder.dimension))

    say(f"build of {count} vectors", str(timed(build)))
    index = made[0]
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder), "base.faiss")
        size = (Path(folder) / "base.faiss").stat().st_size
        say("open", str(timed(lambda: FaissIndex.load(Path(folder), "base.faiss"))))
    say("kind, bytes per vector", f"{index.kind}, {size / count:.0f}")
    rows = noisy(centres, generator)[:queries]
    index.search(rows[0], 10)
    say("vectors alone", percentiles([lambda r=r: index.search(r, 10) for r in rows]))  # type: ignore[misc]
    say(
        "brute force",
        percentiles([lambda r=r: np.argpartition(vectors @ r, -10) for r in rows[:20]]),  # type: ignore[misc]
    )
    say("recall@10", f"{recall(index, numbers, vectors, rows):.3f}")


def noisy(centres: NDArray[np.float32], generator: np.random.Generator) -> NDArray[np.float32]:
    """One unit vector around each centre."""
    noise = generator.standard_normal(centres.shape, dtype=np.float32)
    rows = centres + NOISE / centres.shape[1] ** 0.5 * noise
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def main() -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_index")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--chunks", type=int, default=2, help="chunks an entry")
    parser.add_argument("--vectors", type=int, default=1_000_000, help="0 leaves that part out")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--reopen", type=Path, help="only open what another run built there")
    options = parser.parse_args()
    if options.reopen:
        reopen(options.reopen)
        return 0
    if options.entries:
        with tempfile.TemporaryDirectory() as home:
            bench_search(Path(home), options.entries, options.chunks, options.queries)
    if options.vectors:
        bench_vectors(options.vectors, options.queries)
    return 0


if __name__ == "__main__":
    sys.exit(main())
