"""How long Slack may have the bot wait, and who works meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

MAX_WAIT_S = 300.0  # Slack asks for a minute at most times; after five nobody waits any longer
LONG_WAIT_S = 5.0  # from here on a job lends its place; shorter waits hold back further bursts
NOT_SAID_S = 1.0  # where Slack does not say how long


class Places(asyncio.Semaphore):
    """So many places of jobs. Who lent one has it back at once: the next job to leave pays.

    So for a while more jobs than places run, and who was told to wait five seconds does not queue
    behind all who came meanwhile.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._owed = 0

    def release(self) -> None:
        """Leave a place to the next job, or to the one that took its own back."""
        if self._owed:
            self._owed -= 1
        else:
            super().release()

    async def take_back(self) -> None:
        """Have a lent place again, without waiting for it."""
        if self.locked():
            self._owed += 1
        else:
            await self.acquire()


_places: ContextVar[Places | None] = ContextVar("places", default=None)


@asynccontextmanager
async def taking_place(places: Places) -> AsyncIterator[None]:
    """Hold one of the places of jobs while the block runs."""
    async with places:
        _places.set(places)
        yield


@asynccontextmanager
async def lending_place() -> AsyncIterator[None]:
    """Let another job have this one's place while the block runs."""
    places = _places.get()
    if places is None:  # nobody waits for the place: this is no job
        yield
        return
    places.release()
    try:
        yield
    finally:
        await places.take_back()


def wait_s(retry_after: str) -> float:
    """Seconds a Retry-After header asks for; infinite where it says no number."""
    if not retry_after:
        return NOT_SAID_S
    return float(retry_after) if retry_after.isdecimal() else float("inf")


async def wait(seconds: float) -> None:
    """Wait; for long only with the place lent to another job."""
    if seconds < LONG_WAIT_S:
        await asyncio.sleep(seconds)
        return
    async with lending_place():
        await asyncio.sleep(seconds)
