"""Running a coroutine in a test, also where a browser's event loop runs in the test's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result; it runs in a thread with an event loop of its own.

    Playwright's synchronous interface leaves a running loop in the thread of the browser tests, and
    tests of other files may follow there.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
