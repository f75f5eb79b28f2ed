"""Jobs: so many at once, none kept by another's wait, and an end that lets them finish."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import anyio
import pytest

from app.slack.bot import MAX_JOBS, Jobs
from tests.event_loop import run_coroutine


def test_so_many_jobs_are_taken_and_no_more() -> None:
    """Full is full; all that were taken run, however many of them wait, and then there is room."""

    async def run() -> tuple[int, int, bool]:
        jobs, gate, done = Jobs(anyio.CapacityLimiter(1)), asyncio.Event(), []

        async def waits() -> None:
            await gate.wait()
            done.append(1)

        async def opens() -> None:
            gate.set()

        taken = 0
        while taken < MAX_JOBS - 1 and jobs.start(waits):
            taken += 1
        assert jobs.start(opens)
        assert not jobs.start(opens)
        await jobs.close()
        return taken, len(done), jobs.full

    assert run_coroutine(run()) == (MAX_JOBS - 1, MAX_JOBS - 1, False)


def test_compute_runs_so_many_at_once() -> None:
    """No more threads compute than the limiter says."""
    running: list[int] = []
    most: list[int] = []

    def work() -> None:
        running.append(1)
        most.append(len(running))
        running.pop()

    async def run() -> None:
        jobs = Jobs(anyio.CapacityLimiter(1))
        await asyncio.gather(*(jobs.compute(work) for _ in range(20)))

    run_coroutine(run())
    assert max(most) == 1
    assert len(most) == 20


def test_waiting_in_a_thread_keeps_no_end_from_coming() -> None:
    """A job that waits for another server is left behind when its grace is over."""
    gate, cancelled = threading.Event(), []

    async def run() -> list[threading.Thread]:
        jobs = Jobs(anyio.CapacityLimiter(1))

        async def waits() -> None:
            try:
                await jobs.wait_for(gate.wait)
            except asyncio.CancelledError:
                cancelled.append(gate.is_set())
                raise

        assert jobs.start(waits)
        await jobs.close(grace_s=0.05)
        return [item for item in threading.enumerate() if item.name == "slack-wait"]

    (thread,) = run_coroutine(run())
    gate.set()
    thread.join(10)
    assert cancelled == [False]
    assert thread.daemon
    assert not thread.is_alive()


def test_waiting_gives_what_comes_or_raises_it() -> None:
    """So many wait at once as the limiter says; the others' turn comes."""

    def fails() -> None:
        raise LookupError("gone")

    async def run() -> list[int]:
        jobs = Jobs(anyio.CapacityLimiter(1))
        with pytest.raises(LookupError, match="gone"):
            await jobs.wait_for(fails)
        return list(await asyncio.gather(*(jobs.wait_for(partial(abs, n)) for n in range(3))))

    assert run_coroutine(run()) == [0, 1, 2]
