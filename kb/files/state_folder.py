"""The state folder: made for its owner alone, and locks that other processes keep to as well."""

from __future__ import annotations

import fcntl
import os
import time
import weakref
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
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Let nobody else into the block, no other thread and no other process.

    With `shared` only those who lock it without. Gives whether it was locked: without `wait` the
    block runs also where it was not. The file stays; the system gives the lock back when the
    process dies.

    Raises:
        StoreError: the file cannot be made or locked.
    """
    with ExitStack() as opened:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(
                opened.enter_context(path.open("a")), kind if wait else kind | fcntl.LOCK_NB
            )
            is_locked = True
        except BlockingIOError:
            is_locked = False
        except OSError as error:
            todo = "make the folder writable, on a file system that has locks"
            raise StoreError(f"{path}: {error.strerror}", todo=todo) from error
        yield is_locked


class UseMark:
    """Says that a folder is in use, for as long as this object and its process live."""

    def __init__(self, path: Path) -> None:
        """Set the mark at `path` beside those of others; its folder is made if missing.

        Raises:
            OSError: it cannot be set.
        """
        descriptor = _shared_lock(path)
        weakref.finalize(self, os.close, descriptor)
        os.utime(descriptor)  # `unused` counts from here


def _shared_lock(path: Path) -> int:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # the folder was deleted as unused just now
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)  # deleted while we waited: another try


@contextmanager
def unused(path: Path, *, for_s: float) -> Iterator[bool]:
    """Whether nobody set the mark at `path` in so many seconds; nobody sets it in the block.

    A folder without a mark gets one, so that its time begins.

    Raises:
        OSError: the mark cannot be read.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield _locked_alone(descriptor) and time.time() - os.fstat(descriptor).st_mtime > for_s
    finally:
        os.close(descriptor)


def _locked_alone(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
