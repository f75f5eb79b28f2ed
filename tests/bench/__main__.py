"""All benchmarks, one after the other: `make bench`.

Each prints its figures beside a baseline of the same run; none is a test, machines are noisy.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCHES = (
    ("the embedded model", ["tests.bench.bench_embed"]),
    ("reading logs", ["tests.bench.bench_scan"]),
    ("store, index and search", ["tests.bench.bench_index"]),
    ("one diagnosis", ["tests.bench.bench_diagnose"]),
    ("the API under load", ["tests.bench.bench_api"]),
    ("the Slack bot", ["tests.bench.bench_slack"]),
)


def main() -> int:
    """Run every benchmark in a process of its own; the number that failed."""
    failed = 0
    for title, arguments in BENCHES:
        print(f"\n== {title}: python -m {' '.join(arguments)}", flush=True)
        done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False)
        failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
