"""How long one diagnosis takes: cold as a command, warm inside a process, by stage.

Run: ``python -m tests.bench.bench_diagnose``. The baseline of the cold start is an interpreter
that imports numpy and FAISS and does nothing; that of a warm diagnosis is the search alone.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kb.bootstrap import open_service
from kb.settings import Settings

RUNS = 200
COLD_RUNS = 5
BEFORE = "2024-06-01 10:00:00,123 - INFO - step {n} loss 1.23 lr 1e-5\n"
LOG = (
    "Training hangs in the middle of the second epoch, one GPU works.\n"
    + "".join(BEFORE.format(n=n) for n in range(190))
    + "[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.\n"
    + "".join(
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=25165824, "
        "NumelOut=25165824, Timeout(ms)=600000) ran for 600068 milliseconds before timing out.\n"
        for rank in (0, 1, 3, 4, 5, 6, 7)
    )
)


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def timed(call: Callable[[], object], runs: int) -> list[float]:
    """Milliseconds of each of `runs` calls."""
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        call()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def cold(command: list[str], home: Path) -> float:
    """Median wall milliseconds of a command in a process of its own."""
    environment = os.environ | {"TIMEOUT_KB_HOME": str(home)}

    def run() -> None:
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)

    run()
    return statistics.median(timed(run, COLD_RUNS))


def main() -> int:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        log = Path(folder) / "run.log"
        log.write_text(LOG)
        service = open_service(Settings(home=home))
        reading = service.reader.read_text(LOG)
        found, query = service.similar(reading), service.engine.query_text(reading)
        entries = service.entries_of(found)
        stages = {
            "read the log": lambda: service.reader.read_text(LOG),
            "search alone (baseline)": lambda: service.searcher.search(query),
            "weigh the evidence": lambda: service.engine.judge(reading, found.hits, entries),
            "whole diagnosis": lambda: service.diagnose_text(LOG),
        }
        for name, call in stages.items():
            taken = timed(call, RUNS)
            p50, p99 = percentile(taken, 0.5), percentile(taken, 0.99)
            print(f"{name:28} p50 {p50:7.2f} ms   p99 {p99:7.2f} ms")
        service.close()
        bare = cold([sys.executable, "-c", "import numpy, faiss"], home)
        tool = str(Path(sys.executable).with_name("timeout-kb"))
        whole = cold([tool, "diagnose", str(log)], home)
        print(f"{'cold: import numpy, faiss':28} {bare:7.0f} ms (baseline)")
        print(f"{'cold: timeout-kb diagnose':28} {whole:7.0f} ms, {whole / bare:.1f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
