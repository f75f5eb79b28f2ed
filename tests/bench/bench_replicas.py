"""Servers on one PostgreSQL database: ready after how long, how large, and how soon they agree.

``python -m tests.bench.bench_replicas [ENTRIES] [CHUNKS] [ADDITIONS]`` fills a database that it
starts in a temporary folder, lets a first server build the index and publish it, and two others
fetch it. Then entries are added at the first and searched for at the others until they are found.
Vectors are random: making real ones takes a build longer, and nothing else. All on one machine.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np

from kb.bootstrap import load_embedder
from kb.settings import Settings
from kb.store import Store
from tests.bench.bench_index import fill, lines_of_cases, say, timed
from tests.bench.served import Served, served
from tests.crash.operations import CONSONANTS, log_of
from tests.crash.site import is_ready, until
from tests.postgres import postgres_server

REPLICAS = 3
BATCH = 20_000
LIMIT_S = 3_600.0  # a busy machine builds slowly


def fill_vectors(store: Store, model: str, dimension: int) -> None:
    """A random unit vector for every chunk."""
    generator, after = np.random.default_rng(0), 0
    while numbers := store.vectors.missing(model, after=after, limit=BATCH):
        rows = generator.standard_normal((len(numbers), dimension), dtype=np.float32)
        store.vectors.put(model, numbers, rows / np.linalg.norm(rows, axis=1, keepdims=True))
        after = numbers[-1]


def start(stack: contextlib.ExitStack, home: Path, what: str) -> Served:
    """Start a server and say what it took until it was ready."""
    started = time.monotonic()
    server = stack.enter_context(served(home=home))
    until(lambda: is_ready(server.address), f"{what} is ready", LIMIT_S)
    wall_s = time.monotonic() - started
    say(f"ready by {what}", f"{wall_s:8.2f} s   cpu {server.cpu_s():8.2f} s")
    say("  memory", memory(server))
    return server


def memory(server: Served) -> str:
    """Resident memory, now and at most."""
    return f"{server.rss_mb():8.0f} MiB, at most {server.rss_mb('VmHWM'):.0f} MiB"


def delays_of(servers: list[Served], count: int) -> list[float]:
    """Seconds from each acknowledged addition at the first server to its being found elsewhere."""
    rng, delays = random.Random(0), list[float]()

    def look(server: Served, word: str, added_s: float) -> None:
        body = {"query": f"{word} hangs", "limit": 3}
        with httpx.Client(base_url=server.address, timeout=60.0) as client:

            def is_found() -> bool:
                hits = client.post("/v1/search", json=body).raise_for_status().json()["hits"]
                return any(word in str(hit) for hit in hits)

            until(is_found, f"{word} is found", LIMIT_S)
        delays.append(time.monotonic() - added_s)

    with httpx.Client(base_url=servers[0].address, timeout=60.0) as client:
        for _ in range(count):
            word = "zq" + "".join(rng.choice(CONSONANTS) for _ in range(9))
            entry = {"text": log_of(word), "name": f"{word}.log"}
            client.post("/v1/entries", json=entry).raise_for_status()
            added_s = time.monotonic()
            threads = [
                threading.Thread(target=look, args=(server, word, added_s))
                for server in servers[1:]
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    return sorted(delays)


def bench(folder: Path, address: str, count: int, chunks: int, additions: int) -> None:
    """Fill, build, fetch, add; prints as it goes."""
    shared = folder / "shared"
    shared.mkdir()
    os.environ |= {"TIMEOUT_KB_STORE": address, "TIMEOUT_KB_GENERATIONS": str(shared)}
    store, lines = Store.open(address), lines_of_cases()
    embedder = load_embedder(Settings())
    say(
        f"store {count} entries of {chunks} chunks",
        str(timed(lambda: fill(store, count, chunks, lines))),
    )
    say("their vectors", str(timed(lambda: fill_vectors(store, embedder.name, embedder.dimension))))
    with contextlib.ExitStack() as stack:
        servers = [start(stack, folder / "r0", "building")]
        until(lambda: bool(list(shared.glob("*/LATEST"))), "the index is published", LIMIT_S)
        size = sum(path.stat().st_size for path in shared.rglob("*") if path.is_file())
        say("one generation", f"{size / (1 << 20):.0f} MiB")
        servers += [start(stack, folder / f"r{at}", "fetching") for at in range(1, REPLICAS)]
        before = [server.cpu_s() for server in servers]
        delays = delays_of(servers, additions)
        p50, p99 = delays[len(delays) // 2], delays[int(len(delays) * 0.99)]
        say(
            f"found elsewhere after ({additions} additions)",
            f"p50 {1000 * p50:.0f} ms, p99 {1000 * p99:.0f} ms, most {1000 * delays[-1]:.0f} ms",
        )
        for server, used in zip(servers, before, strict=True):
            say(
                "  processor an addition",
                f"{1000 * (server.cpu_s() - used) / additions:.0f} ms; memory {memory(server)}",
            )
    say("load of the machine", f"{os.getloadavg()[0]:.1f}")
    store.close()


def main(count: str = "100000", chunks: str = "5", additions: str = "60") -> None:
    """Run it on a database of its own."""
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        bench(Path(folder), server.address(), int(count), int(chunks), int(additions))


if __name__ == "__main__":
    main(*sys.argv[1:])
