"""The API under load: different 200-line logs, one log again and again, a gigabyte beside them.

Run: ``python -m tests.bench.bench_api [SECONDS] [--workers N] [--no-stream]``. The baseline of
each rate is an empty FastAPI endpoint that reads the same bodies, measured before and after.
Needs wrk. "Different" logs have a line of their own each, so that no answer is given twice.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.bench_diagnose import percentile
from tests.bench.make_log import write_log
from tests.bench.served import Served, empty, served
from tests.bench.short_logs import short_logs
from tests.bench.wrk import Load, load

VARIANTS = 240
CONNECTIONS = 16
WARM_S = 3
GIGABYTE_MB = 1024
SMALL_EVERY_S = 0.2
PIECE_BYTES = 1 << 20


def say(name: str, text: str) -> None:
    """One row, with the machine's load: other programs' work is in all times."""
    print(f"{name:34} {text}   (load {os.getloadavg()[0]:.1f})", flush=True)


def measured(server: Served, bodies: Sequence[str], seconds: int, *, unique: bool) -> Load:
    """Load a warmed-up server and say what it used."""
    options = {"connections": CONNECTIONS, "unique": unique}
    load(server.address, bodies, seconds=WARM_S, **options)  # type: ignore[arg-type]
    before = server.cpu_s()
    found = load(server.address, bodies, seconds=seconds, **options)  # type: ignore[arg-type]
    cpu_ms = (server.cpu_s() - before) / max(1, found.requests) * 1000
    print(f"{'':34} {cpu_ms:.2f} ms processor a request, RSS {server.rss_mb():.0f} MB")
    return found


def rates(seconds: int, options: Sequence[str]) -> None:
    """Requests a second, beside the empty endpoint."""
    bodies = short_logs(VARIANTS)
    size = statistics.mean(len(body.encode()) for body in bodies)
    print(
        f"{VARIANTS} logs of 200 lines, {size / 1000:.1f} kB in the mean, {CONNECTIONS} connections"
    )
    with empty() as nothing, served(*options) as server:
        first = measured(nothing, bodies, max(5, seconds // 4), unique=True)
        say("empty endpoint (baseline)", str(first))
        different = measured(server, bodies, seconds, unique=True)
        say("different logs", str(different))
        same = measured(server, bodies[:1], seconds, unique=False)
        say("the same log again and again", str(same))
        last = measured(nothing, bodies, max(5, seconds // 4), unique=True)
        say("empty endpoint (baseline)", str(last))
    nothing_rate = (first.rate + last.rate) / 2
    for name, found in (("different logs", different), ("the same log", same)):
        print(f"{name}: {found.rate / nothing_rate:.0%} of the empty endpoint's throughput")


def chunks(path: Path) -> Iterator[bytes]:
    """A file piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def post(address: str, body: bytes | Iterator[bytes]) -> int:
    """Send one body; the status of the answer, which is read whole."""
    place = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=600)
    try:
        connection.request(
            "POST", "/v1/diagnose", body=body, headers={"Content-Type": "application/octet-stream"}
        )
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def stream(options: Sequence[str]) -> None:
    """One gigabyte streamed while small requests go on."""
    bodies = [body.encode() for body in short_logs(VARIANTS)]
    with tempfile.TemporaryDirectory() as folder, served(*options) as server:
        path = Path(folder, "job.log")
        write_log(path, GIGABYTE_MB << 20)
        post(server.address, bodies[0])
        seconds: list[float] = []

        def send() -> None:
            started = time.perf_counter()
            post(server.address, chunks(path))
            seconds.append(time.perf_counter() - started)

        quiet = [_one(server, body) for body in bodies[1:21]]
        sender = threading.Thread(target=send)
        sender.start()
        small = []
        for number in range(21, len(bodies) * 50):
            if not sender.is_alive():
                break
            small.append(_one(server, bodies[number % len(bodies)] + b"run %d\n" % number))
            time.sleep(SMALL_EVERY_S)
        sender.join()
        size = path.stat().st_size / 1e9
        say("stream alone with small ones", f"{size:.2f} GB in {seconds[0]:.1f} s")
        say("small requests before", f"p50 {statistics.median(quiet):.0f} ms")
        say(
            "small requests beside it",
            f"p50 {percentile(small, 0.5):.0f} ms, p99 {percentile(small, 0.99):.0f} ms "
            f"of {len(small)}",
        )
        say("memory", f"RSS {server.rss_mb():.0f} MB, highest {server.rss_mb('VmHWM'):.0f} MB")


def _one(server: Served, body: bytes) -> float:
    started = time.perf_counter()
    if post(server.address, body) != http.HTTPStatus.OK:
        raise RuntimeError("a small request failed")
    return (time.perf_counter() - started) * 1000


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=int, default=60)
    parser.add_argument("--workers", default="")
    parser.add_argument("--no-rates", action="store_true")
    parser.add_argument("--no-stream", action="store_true")
    asked = parser.parse_args()
    options = ["--workers", asked.workers] if asked.workers else []
    if not asked.no_rates:
        rates(asked.seconds, options)
    if not asked.no_stream:
        stream(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
