"""Jobs: so many at once, none kept by another's wait, and an end that lets them finish."""

from __future__ import annotations

import asyncio

import anyio

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
