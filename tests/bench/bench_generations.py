"""A server that is ready by fetching the index against one that builds it.

``python -m tests.bench.bench_generations [ENTRIES] [CHUNKS]`` starts a PostgreSQL server in a
temporary folder; entries as in `bench_index`. Three homes: one builds everything and publishes,
one builds from the stored vectors, one fetches. Then what adding changes costs.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from kb.embed.static import StaticEmbedder
from kb.index.generation_places import generation_place
from kb.index.live import SearchIndex
from kb.index.sources import fingerprint
from kb.store import Store
from kb.text.tokenizer import Tokenizer
from tests.bench.bench_index import MIB, ROOT, entries, fill, lines_of_cases, say, timed
from tests.postgres import postgres_server


def bench(folder: Path, address: str, count: int, chunks: int) -> None:
    """Print all figures; `folder` is empty."""
    lines = lines_of_cases()
    for name in ("model", "lexicon"):
        shutil.copytree(ROOT / "data" / name, folder / name)  # nobody changes them meanwhile
    (folder / "shared").mkdir()
    store = Store.open(address)
    say(
        f"store {count} entries of {chunks} chunks",
        str(timed(lambda: fill(store, count, chunks, lines))),
    )

    def new_index(home: str, *, shared: bool = True) -> SearchIndex:
        tokenizer = Tokenizer(folder / "lexicon")
        return SearchIndex(
            folder / home / "index",
            store=store,
            embedder=StaticEmbedder.load(folder / "model"),
            tokenizer=tokenizer,
            tokens=fingerprint(tokenizer, folder / "lexicon"),
            generations=generation_place(str(folder / "shared")) if shared else None,
        )

    first = new_index("first")
    say("build, vectors too", str(timed(first.catch_up)))
    say("build from stored vectors", str(timed(new_index("second", shared=False).catch_up)))
    shared, stopped = first.shared, threading.Event()
    if shared is None:
        raise ValueError("the index has no folder to share")
    say("publish", str(timed(lambda: shared.publish(first.published(), stopped=stopped))))
    third = new_index("third")
    say("fetch", str(timed(third.catch_up)))
    size = sum(path.stat().st_size for path in (folder / "shared").rglob("*") if path.is_file())
    say("one generation", f"{size / MIB:.0f} MiB")
    more = [one for batch in entries(2_000, chunks, lines[::-1]) for one in batch]
    for changed in (100, 1_000, 2_000):
        store.upsert(
            [
                replace(
                    one,
                    id=f"{changed}-{one.id}",
                    source_key=f"{changed}-{one.id}",
                    chunks=tuple(
                        replace(chunk, id=f"{changed}-{chunk.id}") for chunk in one.chunks
                    ),
                )
                for one in more[: changed // chunks]
            ]
        )
        first.catch_up()  # makes the vectors
        say(f"add {changed} chunks to a fetched index", str(timed(third.catch_up)))
    store.close()


def main() -> None:
    """Run it on a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entries", type=int, nargs="?", default=20_000)
    parser.add_argument("chunks", type=int, nargs="?", default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        bench(Path(folder), server.address(), arguments.entries, arguments.chunks)


if __name__ == "__main__":
    main()
