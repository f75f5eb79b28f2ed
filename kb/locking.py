"""A lock that other processes on the same state folder keep to as well."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kb.errors import StoreError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let nobody else into the block, no other thread and no other process.

    The file stays; the system gives the lock back when the process dies.

    Raises:
        StoreError: the file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", todo="make the folder writable") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
