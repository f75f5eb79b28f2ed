"""Server-sent events out of a worker thread: sent as they come, with a sign of life between.

Format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kb.errors import KBError

EVENTS = "text/event-stream"
HEARTBEAT_S = 10.0  # proxies close what is silent for a minute, some for less
HEARTBEAT = b": waiting\n\n"

T = TypeVar("T")
Work = Callable[[], Iterator[T]]


def event(name: str, data: bytes) -> bytes:
    """One event; every line of `data` gets a field of its own, so that any text survives."""
    text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
    fields = "".join(f"data: {line}\n" for line in text.split("\n"))
    return f"event: {name}\n{fields}\n".encode()


class Gone(Exception):  # noqa: N818 - a fact about the caller, no failure
    """The caller went away."""


async def collect(work: Work[T], receive: Receive, limiter: anyio.CapacityLimiter) -> list[T]:
    """All that `work` gives, read in a thread; stops where the caller goes away.

    Raises:
        Gone: the caller went away.
    """
    found: list[T] = []

    async def keep(item: T | None) -> None:
        if item is not None:
            found.append(item)

    if not await _deliver(work, receive, limiter, keep):
        raise Gone
    return found


class EventStream(Response):
    """A response that sends what `work` gives, as encoded by the caller, while it is made.

    `work` runs in a thread and yields encoded events. When the caller goes away it is closed
    before it makes another one. A failure before the first byte is raised, for the handlers of
    errors; a later one becomes the event that `failed` makes of it.
    """

    media_type = EVENTS

    def __init__(
        self,
        work: Work[bytes],
        limiter: anyio.CapacityLimiter,
        failed: Callable[[KBError], bytes],
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._work = work
        self._limiter = limiter
        self._failed = failed
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events and, where there are none for a while, a comment."""

        async def pass_on(item: bytes | None) -> None:
            await self._send(send, HEARTBEAT if item is None else item)

        try:
            stayed = await _deliver(self._work, receive, self._limiter, pass_on)
        except KBError as error:
            if not self._begun:
                raise
            stayed = True
            await self._send(send, self._failed(error))
        if stayed:
            await self._send(send, b"", more=False)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        if not self._begun:
            self._begun = True
            status, headers = self.status_code, self.raw_headers
            await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def _deliver(
    work: Work[T],
    receive: Receive,
    limiter: anyio.CapacityLimiter,
    deliver: Callable[[T | None], object],
) -> bool:
    """Hand on what `work` gives, None for a pause; False where the caller went away."""
    outbox, inbox = anyio.create_memory_object_stream[T](math.inf)
    finished = False
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch, receive, tasks.cancel_scope)
            tasks.start_soon(_work_in_thread, work, outbox, limiter)
            with inbox:
                await _hand_on(inbox, deliver)
                finished = True
                tasks.cancel_scope.cancel()
    except ExceptionGroup as group:
        (error, *others) = group.exceptions
        raise group if others else error from None  # the handlers know single errors
    return finished


async def _hand_on(
    inbox: MemoryObjectReceiveStream[T], deliver: Callable[[T | None], object]
) -> None:
    while True:
        item: T | None = None
        with anyio.move_on_after(HEARTBEAT_S):
            try:
                item = await inbox.receive()
            except anyio.EndOfStream:
                return
        await deliver(item)  # type: ignore[misc]


async def _watch(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel when the caller hangs up."""
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.cancel()


async def _work_in_thread(
    work: Work[T], outbox: MemoryObjectSendStream[T], limiter: anyio.CapacityLimiter
) -> None:
    with outbox:
        # Waited for even when nobody else does: a thread at work keeps its place. It ends at the
        # next item, for its box is closed then, or where it asks whether it was cancelled.
        await anyio.to_thread.run_sync(partial(_pump, work, outbox), limiter=limiter)


def _pump(work: Work[T], outbox: MemoryObjectSendStream[T]) -> None:
    """In the thread: put every item in the box until there are no more or nobody waits."""
    items = work()
    try:
        for item in items:
            anyio.from_thread.run_sync(outbox.send_nowait, item)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return
    finally:
        if isinstance(items, Generator):
            items.close()
