"""A server under steady load for a long time: memory, latency and errors, minute by minute.

Run: ``python -m tests.bench.soak RATE MINUTES OUT.jsonl``. RATE is requests a second, asked for
whether or not earlier ones are answered; four of five logs are new, one is a repeat. Every minute
adds a line to OUT.jsonl, so a run that is cut off keeps what it has.
"""

from __future__ import annotations

import http
import http.client
import json
import os
import queue
import sys
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from tests.bench.bench_diagnose import percentile
from tests.bench.served import Served, served
from tests.bench.short_logs import short_logs

SENDERS = 16  # connections, each kept open
VARIANTS = 240
REPEAT_EVERY = 5
MINUTE_S = 60.0


@dataclass(slots=True)
class Minute:
    """What happened since the last sample; `taken` in milliseconds from the moment it was due."""

    taken: list[float] = field(default_factory=list)
    errors: int = 0


def send(address: str, due: queue.Queue[tuple[float, bytes] | None], now: list[Minute]) -> None:
    """Send what is due until there is None."""
    place = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    while (item := due.get()) is not None:
        moment, body = item
        try:
            connection.request("POST", "/v1/diagnose", body, {"Content-Type": "text/plain"})
            answer = connection.getresponse()
            answer.read()
            failed = answer.status != http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            connection.close()
            failed = True
        minute = now[0]
        minute.taken.append((time.monotonic() - moment) * 1000)
        minute.errors += failed


def sample(number: int, minute: Minute, server: Served, cpu_s: float) -> dict[str, float]:
    """One line of the file."""
    taken = sorted(minute.taken) or [0.0]
    return {
        "minute": number,
        "requests": len(minute.taken),
        "errors": minute.errors,
        "p50_ms": round(percentile(taken, 0.5), 1),
        "p99_ms": round(percentile(taken, 0.99), 1),
        "max_ms": round(taken[-1], 1),
        "rss_mb": round(server.rss_mb(), 1),
        "cpu_ms_a_request": round(cpu_s / max(1, len(minute.taken)) * 1000, 2),
        "load": round(os.getloadavg()[0], 2),
    }


def soak(rate: float, minutes: int, out: Path) -> None:
    """Run the load and write the samples."""
    bodies = [body.encode() for body in short_logs(VARIANTS)]
    due: queue.Queue[tuple[float, bytes] | None] = queue.Queue()
    now = [Minute()]
    with served() as server, out.open("a") as file:
        arguments = (server.address, due, now)
        senders = [threading.Thread(target=send, args=arguments) for _ in range(SENDERS)]
        for sender in senders:
            sender.start()
        started, cpu_s, done = time.monotonic(), server.cpu_s(), 0
        for number in range(int(rate * minutes * MINUTE_S)):
            moment = started + number / rate
            time.sleep(max(0.0, moment - time.monotonic()))
            body = bodies[number % len(bodies)]
            repeat = number % REPEAT_EVERY == 0
            due.put((moment, body if repeat else body + b"run %d\n" % number))
            if time.monotonic() - started >= (done + 1) * MINUTE_S:
                done += 1
                last, now[0] = now[0], Minute()
                used = server.cpu_s()
                write(file, sample(done, last, server, used - cpu_s))
                cpu_s = used
        for _ in senders:
            due.put(None)
        for sender in senders:
            sender.join()
        write(file, sample(done + 1, now[0], server, server.cpu_s() - cpu_s))


def write(file: TextIO, line: dict[str, float]) -> None:
    """Add one line that is there even if the run is cut off after it."""
    file.write(json.dumps(line) + "\n")
    file.flush()


if __name__ == "__main__":
    soak(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
