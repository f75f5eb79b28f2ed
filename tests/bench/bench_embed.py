"""How fast the embedded model starts and encodes: ``python -m tests.bench.bench_embed``.

Promised: import and load ≤ 0.25 s, ≥ 10,000 short texts a second on one thread, ≤ 130 MB.
Each figure comes from a fresh process, the best of `RUNS`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = 5
PROGRAM = """
import json, resource, sys, time
start = time.perf_counter()
from pathlib import Path
from kb.embed.static import StaticEmbedder
model = StaticEmbedder.load(Path("data/model"))
ready = model.encode_queries(["超时 timeout"])
loaded = time.perf_counter() - start
lines = Path("data/lexicon/glossary.tsv").read_text("utf-8").splitlines()[1:]
texts = [f"{line} rank {i}" for i in range(50) for line in lines][:10000]
def seconds(call):
    start = time.perf_counter(); call(); return time.perf_counter() - start
batch = min(seconds(lambda: model.encode_passages(texts)) for _ in range(3))
query = sorted(seconds(lambda: model.encode_queries([text])) for text in texts[:2000])[1000]
print(json.dumps({
    "load_s": loaded, "texts_per_s": len(texts) / batch, "query_ms": query * 1000,
    "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
}))
"""


def main() -> int:
    """Print the figures; exit code 1 if one is out of its promise."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    runs = []
    for _ in range(RUNS):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        runs.append(json.loads(done.stdout))
    load, memory = min(run["load_s"] for run in runs), min(run["rss_mb"] for run in runs)
    rate = max(run["texts_per_s"] for run in runs)
    query = min(run["query_ms"] for run in runs)
    sys.stdout.write(
        f"import and load {load:.3f} s (≤ 0.25)   {rate:,.0f} short texts/s (≥ 10,000)   "
        f"one query {query:.3f} ms   peak memory {memory:.0f} MB (≤ 130)\n"
    )
    return int(load > 0.25 or rate < 10_000 or memory > 130)


if __name__ == "__main__":
    sys.exit(main())
