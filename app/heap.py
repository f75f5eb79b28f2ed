"""The C library's heap, of which a server keeps as little as it needs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import CDLL

M_ARENA_MAX = -8  # of mallopt(3)
PR_SET_PDEATHSIG = 1  # of prctl(2)


def one_heap() -> None:
    """Have all threads allocate from one heap: with one a thread, 30 MB more lie unused in them."""
    _call(lambda library: library.mallopt(M_ARENA_MAX, 1))


def give_back() -> None:
    """Give unused pages back to the system: up to 40 ms a hundred megabytes of small holes.

    Tables built at the start and long uploads leave holes that the library keeps by itself.
    """
    _call(lambda library: library.malloc_trim(0))


def run_apart(work: Callable[[], object]) -> None:
    """Do `work`, which leaves its results on disk, in a process with which all its memory goes.

    Where that cannot be or fails nothing is told: the caller finds the results missing.
    """
    if sys.platform != "linux" or threading.active_count() > 1:  # a thread's locks stay shut
        return
    child = os.fork()
    if not child:
        _call(lambda library: library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _call(use: Callable[[CDLL], object]) -> None:
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(AttributeError):  # another C library has neither
            use(ctypes.CDLL(None))
