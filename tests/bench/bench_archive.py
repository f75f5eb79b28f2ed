"""Many logs through ``diagnose-archive``, killed in the middle and run again.

``python -m tests.bench.bench_archive [LOGS] [JOBS] [FOLDER]`` writes that many different logs of 40
lines into a folder, runs the command, kills it and its processes (-9) once half of the logs have a
line, runs it again, and compares the lines with the files. Prints logs a second of the two runs,
processor time a log (the command's own and that of its processes) and the memory of the command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.bench.short_logs import short_log
from tests.crash.site import MAIN

LENGTH = 40  # lines of a log
A_FOLDER = 1_000
FIRST_DAY_S, DAY_S, DAYS = 1_767_225_600, 86_400, 180  # of the files' times: from 2026-01-01 on
LOOK_S = 0.5
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Use:
    """What a run took, of the command and its processes together; memory is the command's."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mib: float = 0.0


def write_logs(folder: Path, count: int) -> None:
    """Logs 0 to `count` - 1, those that are there already left as they are."""
    for number in range(count):
        path = folder / f"{number // A_FOLDER:03d}" / f"{number:06d}.log"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(short_log(number, seed=19, length=LENGTH))
        written_s = FIRST_DAY_S + number % DAYS * DAY_S
        os.utime(path, (written_s, written_s))


def run(logs: Path, out: Path, home: Path, jobs: int, kill_at: int = 0) -> Use:
    """Run the command to its end, or kill all of it once `kill_at` lines are written."""
    words = ["diagnose-archive", str(logs), "--out", str(out), "--jobs", str(jobs)]
    use, started = Use(), time.monotonic()
    command = [sys.executable, "-c", MAIN, *words, "--group", "--lang", "en"]
    environment = os.environ | {"TIMEOUT_KB_HOME": str(home)}
    with (out.parent / "report.txt").open("wb") as report:
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, stdout=report, stderr=report
        )
        while process.poll() is None:
            time.sleep(LOOK_S)
            use.cpu_s = max(use.cpu_s, _cpu_s(process.pid))
            use.peak_mib = max(use.peak_mib, _peak_mib(process.pid))
            if kill_at and out.exists() and out.read_bytes().count(b"\n") >= kill_at:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    use.wall_s = time.monotonic() - started
    return use


def _cpu_s(group: int) -> float:
    """Processor seconds of the living processes of a group, with those they have waited for."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def _peak_mib(process: int) -> float:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(peaks[0]) / 1024 if peaks else 0.0


def main(logs: str = "2000", jobs: str = "2", folder: str = "") -> int:
    """Write, run, kill, run again, compare; 1 where a log has no line, or two."""
    count = int(logs)
    place = Path(folder or tempfile.mkdtemp(prefix="timeout-kb-archive-"))
    write_logs(place / "logs", count)
    (place / "home").mkdir(exist_ok=True)
    run(place / "logs" / "none", place / "none.jsonl", place / "home", 1)  # builds the index
    out = place / f"out-{count}-{jobs}.jsonl"
    first = run(place / "logs", out, place / "home", int(jobs), count // 2)
    kept = out.read_bytes().count(b"\n")
    print(f"killed after {kept} of {count} logs: {_rate(first, kept)}", flush=True)
    second = run(place / "logs", out, place / "home", int(jobs))
    print(f"gone on with: {_rate(second, count - kept)}")
    files = sorted(str(path) for path in (place / "logs").rglob("*.log"))
    written = Counter(json.loads(line)["path"] for line in out.read_bytes().splitlines())
    twice = sum(1 for lines in written.values() if lines > 1)
    lost = len(set(files) - set(written))
    print(f"{len(files)} logs, {written.total()} lines, {lost} lost, {twice} twice")
    print((place / "report.txt").read_text()[-3000:])
    return int(bool(lost or twice or written.total() != len(files)))


def _rate(use: Use, logs: int) -> str:
    return (
        f"{logs / use.wall_s:.0f} logs/s, {1000 * use.cpu_s / max(logs, 1):.2f} ms of processor"
        f" a log, the command {use.peak_mib:.0f} MiB"
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
