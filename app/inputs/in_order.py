"""Work on many items by several processes: results in the order of the items, memory bounded."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from kb.errors import KBError

if TYPE_CHECKING:
    from kb.service import Service
    from kb.settings import Settings

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH = 16  # items handed over at once: a log takes a hundredth of a second
AHEAD = 4  # batches a process has waiting

_opened: list[Service] = []  # of a worker: its knowledge base


def in_order(
    work: Callable[[Service, Item], Result],
    items: Iterable[Item],
    *,
    settings: Settings,
    jobs: int,
) -> Iterator[Result]:
    """What `work` makes of each item, in their order, by `jobs` processes.

    Each opens the knowledge base for itself. `items` are taken as results are; `work` is a
    function of a module, and its exceptions come out here.
    """
    waiting: deque[Future[list[Result]]] = deque()
    with ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_open,
        initargs=(settings,),
    ) as pool:
        try:
            for batch in batches(items):
                waiting.append(pool.submit(_work, work, batch))
                if len(waiting) >= AHEAD * jobs:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BrokenProcessPool as error:
            raise KBError(
                "a process ended before its work was done",
                todo="give fewer --jobs if memory is short, and run it again: it goes on",
                reason="worker_ended",
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items, `BATCH` at a time."""
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _open(settings: Settings) -> None:
    from app.server.processes import end_with_parent
    from kb.bootstrap import open_service

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the run
    end_with_parent()
    _opened.append(open_service(settings))


def _work(work: Callable[[Service, Any], Result], batch: list[Any]) -> list[Result]:
    return [work(_opened[0], item) for item in batch]
