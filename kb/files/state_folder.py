"""The state folder: made for its owner alone, and locks that other processes keep to as well."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kb.errors import StoreError


def make_state_folder(folder: Path) -> None:
    """Make the state folder, its owner's alone: others' logs lie in it.

    A folder made beforehand keeps its rights: a group may share one.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let nobody else into the block, no other thread and no other process.

    The file stays; the system gives the lock back when the process dies.

    Raises:
        StoreError: the file cannot be made or locked.
    """
    with ExitStack() as opened:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(opened.enter_context(path.open("a")), fcntl.LOCK_EX)
        except OSError as error:
            todo = "make the folder writable, on a file system that has locks"
            raise StoreError(f"{path}: {error.strerror}", todo=todo) from error
        yield
