"""Folders of an index: each generation is built aside, published by one rename, never changed.

``CURRENT`` names the generation in use. A reader that opened a generation keeps it even when its
folder is deleted. One process builds at a time; a crash leaves a folder the next builder removes.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kb.errors import SearchIndexError
from kb.index.base import DISK, REPAIR

CURRENT = "CURRENT"
LOCK = "LOCK"
_GENERATION = re.compile(r"gen-(\d+)\Z")
_BUILDING = re.compile(r"gen-\d+\.building\Z")


class Generations:
    """The generations below one folder."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, made when first written to."""
        self.folder = folder

    def current(self) -> Path | None:
        """Folder of the generation in use; None when there is none yet."""
        try:
            name = (self.folder / CURRENT).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise SearchIndexError(
                f"{self.folder / CURRENT} cannot be read: {error}",
                todo=REPAIR,
            ) from error
        if not _GENERATION.match(name):
            raise SearchIndexError(
                f"{self.folder / CURRENT} holds {name[:40]!r}, not the name of a generation",
                todo=REPAIR,
            )
        return self.folder / name

    def stamp(self) -> tuple[int, int] | None:
        """Something that changes whenever another generation is published; cheap to ask."""
        try:
            status = (self.folder / CURRENT).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The right to build; the system takes it back when the process dies."""
        with self._errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def start(self) -> Path:
        """A new empty folder beside the generations; the caller holds the lock."""
        with self._errors():
            self._sweep()
            numbers = [int(found[1]) for found in self._matching(_GENERATION)]
            folder = self.folder / f"gen-{max(numbers, default=0) + 1}.building"
            folder.mkdir()
            return folder

    def publish(self, built: Path) -> Path:
        """Make what was built the generation in use; the caller holds the lock."""
        with self._errors():
            for path in sorted(built.rglob("*")):
                _sync(path)
            _sync(built)
            final = built.with_suffix("")
            built.rename(final)
            pending = self.folder / f"{CURRENT}.new"
            pending.write_text(final.name + "\n", encoding="utf-8")
            _sync(pending)
            _sync(self.folder)
            pending.replace(self.folder / CURRENT)
            _sync(self.folder)
            self._sweep()
            return final

    def _sweep(self) -> None:
        """Delete what no new reader can find: unfinished and former generations."""
        try:
            current = self.current()
        except SearchIndexError:
            current = None  # a damaged name is what a rebuild repairs
        for found in [*self._matching(_BUILDING), *self._matching(_GENERATION)]:
            if current is None or found.string != current.name:
                shutil.rmtree(self.folder / found.string, ignore_errors=True)

    def _matching(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        names = sorted(path.name for path in self.folder.iterdir())
        return [found for name in names if (found := pattern.match(name))]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SearchIndexError(
                f"the index in {self.folder} cannot be written: {error.strerror or error}",
                todo=DISK,
            ) from error


def link_tree(source: Path, target: Path) -> None:
    """Give every file below `source` a second name below `target`, a copy where it must be."""
    target.mkdir(exist_ok=True)
    for path in sorted(source.rglob("*")):
        if path.suffix == ".lock":
            continue  # held in the old place, it would block the new one
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(exist_ok=True)
        else:
            try:
                os.link(path, copy)
            except OSError:  # a file system without second names
                shutil.copy2(path, copy)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
