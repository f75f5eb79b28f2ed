"""Where work is done after the acknowledgement: so many jobs at once, so many waiting, no more."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import structlog

from app.slack.patience import Places, taking_place
from kb.logs.redact import redact

T = TypeVar("T")
Compute = Callable[[Callable[[], Any]], Awaitable[Any]]

JOBS = 48  # at once: a job mostly waits for Slack; in a long wait another takes its place
MAX_WAITING = 500  # beyond: told to try again; at ten answers a second that is a minute of work
STORE_THREADS = 2  # for short reads and writes that must not wait behind a diagnosis
GRACE_S = 10.0  # running jobs may finish this long when the bot stops


class Pool:
    """Bounded jobs on the event loop, with threads for what blocks."""

    def __init__(self, threads: int, *, compute: Compute | None = None) -> None:
        """`compute` runs diagnoses in somebody else's threads instead of `threads` own ones."""
        self._own = None if compute else ThreadPoolExecutor(threads, "slack-compute")
        self._given = compute
        self._store = ThreadPoolExecutor(STORE_THREADS, "slack-store")
        self._places = Places(JOBS)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def full(self) -> bool:
        """Whether no further job is taken."""
        return len(self._tasks) >= JOBS + MAX_WAITING

    def start(self, job: Callable[[], Awaitable[None]]) -> bool:
        """Take a job, which runs when a place is free; False where too many wait already."""
        if self.full:
            structlog.get_logger().warning("slack job refused", waiting=len(self._tasks))
            return False
        task = asyncio.get_running_loop().create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _run(self, job: Callable[[], Awaitable[None]]) -> None:
        async with taking_place(self._places):
            try:
                await job()
            except Exception as error:  # noqa: BLE001 - the outermost call of this face
                # Redacted: an error of a library may quote what it was called with.
                told = redact("".join(traceback.format_exception(error)))[0]
                structlog.get_logger().error("slack job failed", exception=told)

    async def compute(self, work: Callable[[], T]) -> T:
        """Do `work` in a compute thread."""
        if self._given is not None:
            done: T = await self._given(work)
            return done
        return await asyncio.get_running_loop().run_in_executor(self._own, work)

    async def quick(self, work: Callable[[], T]) -> T:
        """Do a short read or write of the store in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._store, work)

    async def close(self) -> None:
        """Let running jobs finish for a while, then stop."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=GRACE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for executor in (self._own, self._store):
            if executor is not None:
                executor.shutdown(wait=True, cancel_futures=True)
