"""Generations of the index in a folder that several servers reach, so that one builds for all.

Below the folder every identity has one of its own, with immutable generations (``gen-<seq>-…``),
each written aside and renamed, and `LATEST`, which names the newest. Locks lie in the store: one
server publishes at a time, and nothing is deleted while anybody fetches. What is fetched is
checked against its manifest byte by byte, and trusted no further than the index on this disk.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import threading
import uuid
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from kb.errors import DamagedIndexError, KBError
from kb.files.atomic import publish_folder, write_file
from kb.index.base import REPAIR
from kb.index.snapshot import (
    MANIFEST,
    READ_BYTES,
    Manifest,
    Snapshot,
    Sources,
    read_manifest,
    write_manifest,
)

LATEST = "LATEST"
KEEP = 2  # the earlier one serves where the latest is damaged
_GENERATION = re.compile(r"gen-([0-9]+)-[0-9a-f]{8}\Z")
_UNFINISHED = ".building"
_PATH = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\Z")
_log = logging.getLogger(__name__)


class SharedGenerations:
    """The published generations of one identity; safe to use from many machines."""

    def __init__(self, folder: Path, sources: Sources) -> None:
        """Use `folder`, which holds those of all identities; nothing is read yet."""
        self._all, self._sources = folder, sources

    @cached_property
    def _name(self) -> str:
        return self._sources.identity().folder_name()

    @property
    def _folder(self) -> Path:
        return self._all / self._name

    def latest(self) -> Manifest | None:
        """The manifest of the latest generation; None where there is none that can be used.

        Raises:
            OSError: the folder cannot be read.
        """
        self._all.stat()  # gone is another thing than empty
        for folder in self._newest_first():
            try:
                return self._checked_manifest(folder)
            except (KBError, OSError):
                continue
        return None

    # --- fetching ------------------------------------------------------------------------------

    def fetch(self, target: Path, *, after: int) -> bool:
        """Copy the latest whole generation into the empty folder `target`; whether there is one.

        Those that cannot be used are passed over, with a line of the log each.

        Args:
            target: holds nothing afterwards where there is none.
            after: only one whose last change is later than this helps.

        Raises:
            StoreError: the store's lock cannot be had.
        """
        with self._sources.store.lock(f"locks/fetch-{self._name}", shared=True):
            try:
                self._all.stat()
                folders = list(self._newest_first())
            except OSError as error:
                _log.warning("generations_not_read: %s", error)
                return False
            for folder in folders:
                try:
                    if self._fetched(folder, target, after):
                        return True
                except (KBError, OSError) as error:
                    what = error.what if isinstance(error, KBError) else error
                    _log.warning("generation_not_fetched: %s", what)
                    for path in target.iterdir():
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return False

    def _fetched(self, folder: Path, target: Path, after: int) -> bool:
        manifest = self._checked_manifest(folder)
        if not after < manifest.seq <= self._sources.store.last_seq():
            return False
        _copy(folder, target, manifest)
        return True

    def _checked_manifest(self, folder: Path) -> Manifest:
        _open(folder / MANIFEST).close()  # a file, and no pipe that nobody writes into
        manifest = read_manifest(folder)
        if manifest.identity != self._sources.identity():
            raise DamagedIndexError(f"{folder} was built by another program", todo=REPAIR)
        names = [*manifest.files, manifest.base]
        below = all(_PATH.match(name) and ".." not in name.split("/") for name in names)
        if not manifest.checksum or not below:
            raise DamagedIndexError(f"the manifest in {folder} is damaged", todo=REPAIR)
        return manifest

    def _newest_first(self) -> Iterator[Path]:
        """Whole generations: that which `LATEST` names, then the others by their last change."""
        try:
            latest = (self._folder / LATEST).read_text(encoding="ascii").strip()
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return
        except UnicodeDecodeError:
            latest, names = "", [path.name for path in self._folder.iterdir()]
        numbers = {name: int(match[1]) for name in names if (match := _GENERATION.match(name))}
        for name in sorted(numbers, key=lambda name: (name != latest, -numbers[name], name)):
            yield self._folder / name

    # --- publishing ----------------------------------------------------------------------------

    def publish(self, snapshot: Snapshot, *, stopped: threading.Event) -> bool:
        """Put a copy of `snapshot` there as the latest; whether that was done.

        It is not where another server publishes, or `stopped` is set meanwhile. The folder of all
        identities is not made: one that is not mounted stays away.

        Raises:
            OSError: the folder cannot be written; what was there is as it was.
            DamagedIndexError: the snapshot's files are not as they were written.
            StoreError: the store's lock cannot be had.
        """
        lock = self._sources.store.lock
        with lock(f"locks/publish-{self._name}", wait=False) as elected:
            if not elected:
                return False
            self._folder.mkdir(exist_ok=True)
            for path in self._folder.glob(f"gen-*{_UNFINISHED}"):
                shutil.rmtree(path, ignore_errors=True)  # of a publisher that died
            final = self._folder / f"gen-{snapshot.manifest.seq}-{uuid.uuid4().hex[:8]}"
            built = final.with_name(final.name + _UNFINISHED)
            try:
                built.mkdir()
                _copy(snapshot.folder, built, snapshot.manifest, stopped)
                if stopped.is_set():
                    return False
                publish_folder(built, final)
            finally:
                shutil.rmtree(built, ignore_errors=True)
            write_file(self._folder / LATEST, f"{final.name}\n".encode(), durable=True)
            with lock(f"locks/fetch-{self._name}", wait=False) as unread:
                for path in list(self._newest_first())[KEEP:] if unread else ():
                    shutil.rmtree(path, ignore_errors=True)
            return True


def _copy(
    source: Path, target: Path, manifest: Manifest, stopped: threading.Event | None = None
) -> None:
    """Copy the files of a generation, each checked on the way, and its manifest at the end.

    Raises:
        OSError: a file cannot be read or written.
        DamagedIndexError: a file is not what the manifest says.
    """
    with ExitStack() as opened:  # all first: they stay readable when their folder is deleted
        files = {name: opened.enter_context(_open(source / name)) for name in manifest.files}
        for name, file in sorted(files.items()):
            size, checksum = manifest.files[name]
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            done = found = 0
            with path.open("xb") as copy:
                while piece := file.read(min(READ_BYTES, size + 1 - done)):
                    if stopped is not None and stopped.is_set():
                        return
                    copy.write(piece)
                    done, found = done + len(piece), zlib.crc32(piece, found)
            if (done, found) != (size, checksum):
                raise DamagedIndexError(f"{source / name} is damaged", todo=REPAIR)
    write_manifest(target, manifest)


def _open(path: Path) -> BinaryIO:
    """A file to read; no link, pipe or device.

    Raises:
        OSError: it cannot be opened.
        DamagedIndexError: it is something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedIndexError(f"{path} is no file", todo=REPAIR)
    return os.fdopen(descriptor, "rb")
