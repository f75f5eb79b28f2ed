"""Write aside, then one rename: a reader sees the old file or folder or the new one, never half."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def write_file(path: Path, content: bytes, *, mode: int = 0o666, durable: bool = False) -> None:
    """Put a file of `content` at `path`, in place of one that is there.

    Args:
        path: its folder exists.
        content: all of it.
        mode: rights of the file, less the process's umask.
        durable: return only when it survives a power cut.

    Raises:
        OSError: it cannot be written; what was there is as it was.
    """
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        aside.touch(mode=mode)
        aside.write_bytes(content)
        if durable:
            sync(aside)
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def publish_folder(built: Path, final: Path) -> None:
    """Rename the folder `built` to `final`, which is not there, once all of it is on the disk.

    Raises:
        OSError: the disk refuses.
    """
    for path in sorted(built.rglob("*")):
        sync(path)
    sync(built)
    built.rename(final)
    sync(final.parent)


def link_tree(source: Path, target: Path) -> None:
    """Give every file below `source` a second name below `target`, a copy where it must be.

    Locks stay: held in the old place, they would block the new one.
    """

    def link(path: str, copy: str) -> None:
        try:
            os.link(path, copy)
        except OSError:  # a file system without second names
            shutil.copy2(path, copy)

    shutil.copytree(source, target, copy_function=link, ignore=shutil.ignore_patterns("*.lock"))


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
