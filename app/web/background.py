"""Work beside a page's runs, which come and go meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def begin(work: Callable[[], T], *, otherwise: T) -> Future[T]:
    """Do `work` in a thread of its own; where it fails, `otherwise` is what comes of it.

    Whatever happens, nobody waits for ever.
    """
    result: Future[T] = Future()

    def run() -> None:
        came = otherwise
        try:
            came = work()
        finally:
            result.set_result(came)

    threading.Thread(target=run, name="beside-page", daemon=True).start()
    return result
