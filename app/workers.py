"""Several server processes on one port: each computes on a core of its own, the system shares out.

Every process listens on a socket of its own (SO_REUSEPORT). The first process keeps all of them
open, so connections to a process that died wait for the next one instead of being refused.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.commands.common import EXIT_FAILURE, note

QUICK_S = 5.0  # a process that dies sooner did not serve
QUICK_DEATHS = 3  # so many in a row: it will not get better by itself
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What a server process gets: its socket, and whom to tell that it answers."""

    listening: socket.socket
    ready: Callable[[], None]
    first: bool


@dataclass(slots=True)
class _Running:
    """The processes by id, and whether they are to end."""

    places: dict[int, int] = field(default_factory=dict)
    started: dict[int, float] = field(default_factory=dict)
    stopping: bool = False

    def stop(self) -> None:
        """Ask every process to finish what it does and to end."""
        self.stopping = True
        for pid in self.places:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def supervised(sockets: list[socket.socket]) -> Worker:
    """Become the parent of one process a socket; returns in those processes only.

    A process that ends is started again. SIGTERM and Ctrl-C end all of them and the parent, with
    exit code 0; so many quick deaths that another try is useless end them with 1.
    """
    running = _Running()
    kept = {
        number: signal.signal(number, lambda *_: running.stop())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    # The first one builds what is missing; the others find it.
    reading, writing = os.pipe()
    worker = _fork(0, sockets, running, kept, writing)
    if worker is not None:
        os.close(reading)
        return worker
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    for place in range(1, len(sockets)):
        if running.stopping:
            break
        worker = _fork(place, sockets, running, kept)
        if worker is not None:
            return worker
    return _watch(sockets, running, kept)


def _watch(
    sockets: list[socket.socket], running: _Running, kept: Mapping[signal.Signals, object]
) -> Worker:
    """Start ended processes again until all are to end; returns in the new processes only."""
    quick = 0
    while running.places:
        pid, status = os.wait()
        place = running.places.pop(pid, None)
        if place is None or running.stopping:
            continue
        code = os.waitstatus_to_exitcode(status)
        quick = quick + 1 if time.monotonic() - running.started.pop(pid) < QUICK_S else 0
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if quick >= QUICK_DEATHS:
            note(f"worker {place} ended with {how} {quick} times in a row: giving up")
            running.stop()
            continue
        note(f"worker {place} ended with {how}: starting it again")
        worker = _fork(place, sockets, running, kept)
        if worker is not None:
            return worker
    sys.exit(EXIT_FAILURE if quick >= QUICK_DEATHS else 0)


def _fork(
    place: int,
    sockets: list[socket.socket],
    running: _Running,
    kept: Mapping[signal.Signals, object],
    telling: int | None = None,
) -> Worker | None:
    """Start one process: what it is in the process itself, None in the parent."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        running.places[pid] = place
        running.started[pid] = time.monotonic()
        if running.stopping:
            running.stop()  # the signal came while this one was started
        return None
    for number, handler in kept.items():
        signal.signal(number, handler)  # type: ignore[arg-type]
    _end_with(parent)
    for other, one in enumerate(sockets):
        if other != place:
            one.close()

    def ready() -> None:
        if telling is not None:
            os.write(telling, b".")
            os.close(telling)

    return Worker(listening=sockets[place], ready=ready, first=telling is not None)


def _end_with(parent: int) -> None:
    """Have the system end this process with its parent, however that one dies."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
