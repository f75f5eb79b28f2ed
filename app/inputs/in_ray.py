"""Work on many items by a Ray cluster: the second executor of what `in_order` does here.

Every machine of the cluster needs this program, its state folder's place and the files.
https://docs.ray.io/en/latest/ray-core/patterns/limit-pending-tasks.html
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from app.inputs.in_order import AHEAD, batches
from kb.errors import InputError, KBError, MissingExtraError

if TYPE_CHECKING:
    from kb.service import Service
    from kb.settings import Settings

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = "local"  # in place of an address: Ray on this machine, for this run

_services: list[Service] = []  # of a worker: its knowledge base


def in_ray(
    work: Callable[[Service, Item], Result],
    items: Iterable[Item],
    *,
    settings: Settings,
    address: str,
) -> Iterator[Result]:
    """What `work` makes of each item, in their order, by the workers of the cluster at `address`.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: there is no cluster at `address`.
        KBError: a worker ended before its work was done.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            "--ray needs a package that is not installed (ray)",
            todo="pip install 'timeout-kb[ray]'",
        ) from error
    _connect(address)
    run = ray.remote(_work)
    ahead = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting: deque[Any] = deque()
    try:
        for batch in batches(items):
            waiting.append(run.remote(settings, work, batch))
            if len(waiting) >= ahead:
                yield from ray.get(waiting.popleft())
        while waiting:
            yield from ray.get(waiting.popleft())
    except ray.exceptions.RayError as error:
        raise KBError(
            "a worker ended before its work was done",
            todo="look at Ray's logs, and run it again: it goes on",
            reason="worker_ended",
        ) from error
    finally:
        ray.shutdown()


def _connect(address: str) -> None:
    import ray

    options: dict[str, Any] = {"address": address}
    if address == LOCAL:  # some of Ray's ports listen on all interfaces even so
        options |= {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, configure_logging=False, **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"there is no Ray cluster at {address}",
            todo=f"give the address of its head, or {LOCAL}",
            reason="no_ray",
            values={"text": address},
        ) from error


def _work(
    settings: Settings, work: Callable[[Service, Any], Result], batch: list[Any]
) -> list[Result]:
    from kb.bootstrap import open_service

    if not _services:
        _services.append(open_service(settings))
    return [work(_services[0], item) for item in batch]
