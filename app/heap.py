"""The C library's heap, of which a server keeps as little as it needs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctypes import CDLL

M_ARENA_MAX = -8  # of mallopt(3)


def one_heap() -> None:
    """Have all threads allocate from one heap: with one a thread, 30 MB more lie unused in them."""
    _call(lambda library: library.mallopt(M_ARENA_MAX, 1))


def give_back() -> None:
    """Give unused pages back to the system, in less than a millisecond a hundred megabytes.

    Tables built at the start and long uploads leave holes that the library keeps by itself.
    """
    _call(lambda library: library.malloc_trim(0))


def _call(use: Callable[[CDLL], object]) -> None:
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(AttributeError):  # another C library has neither
            use(ctypes.CDLL(None))
