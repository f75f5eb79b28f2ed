"""How fast a log becomes an incident, beside what else reads logs.

Run: ``python tests/bench/bench_scan.py [MEGABYTES] [REPEATS] [--no-rg]``. Writes a multi-rank log
and a storm of errors to a temporary folder, reads each in a process of its own (so the resident
set is that of the reader alone) and prints wall and processor time, speed and resident set; then
`cat`, ``wc -l``, ripgrep with the same patterns (minutes), Python's `re` and, where installed,
Drain3 on a sample.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from kb.knowledge.load import load_knowledge
from kb.logs import LogReader
from kb.logs.event_log import EventVocabulary
from kb.logs.scan.scanner import regex_flags
from kb.settings import shipped_data
from kb.types.knowledge import Pattern
from tests.bench.make_log import write_log

STORM_MB = 100
SAMPLE_MB = 4  # for what is too slow to read all
_CHILD = """
import json, re, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.bench.bench_scan import vocabulary
from kb.logs import LogReader
reader = LogReader(vocabulary(), cache=Path(sys.argv[2]))
runs = []
for _ in range(int(sys.argv[4])):
    wall, cpu = time.perf_counter(), time.process_time()
    incident = reader.read_paths([Path(sys.argv[3])]).incident
    runs.append((time.perf_counter() - wall, time.process_time() - cpu))
print(json.dumps({
    "wall": min(r[0] for r in runs), "cpu": min(r[1] for r in runs),
    "rss": int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024,
    "op": incident.op, "seq": incident.seq, "lines": incident.lines,
    "culprits": [c.rank for c in incident.culprit_ranks],
    "first": incident.first_error.kind if incident.first_error else None,
}))
"""


def vocabulary() -> EventVocabulary:
    """The shipped patterns and kinds of events."""
    return EventVocabulary.of(load_knowledge(shipped_data()))


def say(name: str, size: float, wall: float, note: str = "") -> None:
    """One row of the table; `size` in bytes, `wall` in seconds."""
    print(f"{name:28s} {wall:8.2f} s {size / wall / 1e9:8.3f} GB/s  {note}")


def ours(path: Path, cache: Path, repeats: int) -> None:
    """The reader, in a process of its own."""
    root = str(Path(__file__).resolve().parent.parent.parent)
    command = [sys.executable, "-c", _CHILD, root, str(cache), str(path), str(repeats)]
    out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    note = f"cpu {out['cpu']:.2f} s, RSS {out['rss']:.0f} MB, {out['lines']} lines, first error "
    note += f"{out['first']}, culprits {out['culprits']}, {out['op']} {out['seq']}"
    say(f"timeout-kb {path.name}", path.stat().st_size, out["wall"], note)


def command(name: str, arguments: list[str], path: Path) -> None:
    """A program over the whole log, its output thrown away."""
    start = time.perf_counter()
    subprocess.run([*arguments, str(path)], check=False, stdout=subprocess.DEVNULL)
    say(name, path.stat().st_size, time.perf_counter() - start)


def sample(name: str, data: bytes, read: Callable[[list[str]], None]) -> None:
    """Something slow over the first megabytes."""
    lines = data.decode("utf-8", "replace").split("\n")
    start = time.perf_counter()
    read(lines)
    say(name, len(data), time.perf_counter() - start, f"on {len(data) >> 20} MB")


def by_re(patterns: tuple[Pattern, ...]) -> Callable[[list[str]], None]:
    """Line by line through all expressions."""
    expressions = [re.compile(p.regex, regex_flags(p)) for p in patterns]

    def read(lines: list[str]) -> None:
        for line in lines:
            for expression in expressions:
                expression.search(line)

    return read


def drain(lines: list[str]) -> None:
    """Template mining."""
    from drain3 import TemplateMiner  # type: ignore[import-not-found]

    miner = TemplateMiner()
    for line in lines:
        miner.add_log_message(line)


def main(megabytes: int, repeats: int) -> None:
    """Print the table."""
    patterns = vocabulary().patterns
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        mixed, storm, rules = home / "mixed.log", home / "storm.log", home / "rules.txt"
        write_log(mixed, megabytes << 20)
        write_log(storm, STORM_MB << 20, "storm")
        LogReader(vocabulary(), cache=home)
        rules.write_text("\n".join(p.regex for p in patterns if p.kind != "noise") + "\n")
        command("cat (warms the cache)", ["cat"], mixed)
        command("cat", ["cat"], mixed)
        command("wc -l", ["wc", "-l"], mixed)
        ours(mixed, home, repeats)
        ours(storm, home, repeats)
        if shutil.which("rg") and "--no-rg" not in sys.argv:
            command("ripgrep, same patterns", ["rg", "-c", "-j1", "-a", "-f", str(rules)], mixed)
        with mixed.open("rb") as stream:
            head = stream.read(SAMPLE_MB << 20)
        sample("Python re, same patterns", head[: 1 << 20], by_re(patterns))
        try:
            sample("Drain3", head, drain)
        except ImportError:
            print("Drain3 is not installed: pip install drain3")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    main(*(numbers + [1024, 3][len(numbers) :]))
