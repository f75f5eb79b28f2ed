"""Processes of a server: their memory, their end, work done in another one."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import CDLL

M_ARENA_MAX = -8  # of mallopt(3)
PR_SET_PDEATHSIG = 1  # of prctl(2)


def use_one_arena() -> None:
    """Have all threads allocate from one arena: with one a thread, 30 MB lie unused."""
    _call_libc(lambda library: library.mallopt(M_ARENA_MAX, 1))


def return_unused_memory() -> None:
    """Give unused pages back to the system: up to 40 ms a hundred megabytes of small holes.

    Tables built at the start and long uploads leave holes that the library keeps by itself.
    """
    _call_libc(lambda library: library.malloc_trim(0))


def end_with_parent() -> None:
    """Have the system end this process (SIGTERM) with its parent, however that one dies."""
    _call_libc(lambda library: library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))


def run_apart(work: Callable[[], object]) -> None:
    """Do `work`, which leaves its results on disk, in a process with which all its memory goes.

    Where that cannot be or fails nothing is told: the caller finds the results missing.
    """
    if sys.platform != "linux" or threading.active_count() > 1:  # a thread's locks stay shut
        return
    child = os.fork()
    if not child:
        end_with_parent()
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


@contextlib.contextmanager
def stop_signals_end_quietly() -> Iterator[None]:
    """Let SIGTERM, SIGHUP and Ctrl-C leave the block with exit code 0.

    A server finishes running requests, then raises the signal again; its usual effect would end
    the process before the knowledge base is closed.
    """

    def leave(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    stops = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, leave) for number in stops}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _call_libc(use: Callable[[CDLL], object]) -> None:
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(AttributeError):  # another C library has neither
            use(ctypes.CDLL(None))
