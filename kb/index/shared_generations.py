"""Generations of the index in a place that several servers reach, so that one builds for all.

In the place every identity has immutable generations of its own (``gen-<seq>-…``), each there whole
or not at all, and `LATEST`, which names the newest. Locks lie in the store: one server publishes at
a time, and nothing is deleted while anybody fetches. What is fetched is checked against its
manifest byte by byte, and trusted no further than the index on this disk.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from kb.errors import DamagedIndexError, KBError
from kb.index.base import REPAIR
from kb.index.generation_places import GenerationPlace, WriteFile, file_pieces, open_regular
from kb.index.snapshot import (
    MANIFEST,
    Manifest,
    Snapshot,
    Sources,
    decode_manifest,
    encode_manifest,
    write_manifest,
)

LATEST = "LATEST"
KEEP = 2  # the earlier one serves where the latest is damaged
MANIFEST_BYTES = 1 << 20  # it names a few dozen files
_GENERATION = re.compile(r"gen-([0-9]+)-[0-9a-f]{8}\Z")
_PATH = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\Z")
_log = logging.getLogger(__name__)


class SharedGenerations:
    """The published generations of one identity; safe to use from many machines."""

    def __init__(self, place: GenerationPlace, sources: Sources) -> None:
        """Use `place`, which holds those of all identities; nothing is read yet."""
        self._place, self._sources = place, sources

    @cached_property
    def name(self) -> str:
        """Under which the generations lie in the place."""
        return self._sources.identity().folder_name()

    def latest(self) -> Manifest | None:
        """The manifest of the latest generation; None where there is none that can be used.

        Raises:
            OSError: the place cannot be read.
        """
        for path in self._newest_first():
            try:
                return self._checked_manifest(path)
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
        with self._sources.store.lock(f"locks/fetch-{self.name}", shared=True):
            try:
                paths = self._newest_first()
            except OSError as error:
                _log.warning("generations_not_read: %s", error)
                return False
            for path in paths:
                try:
                    if self._fetched(path, target, after):
                        return True
                except (KBError, OSError) as error:
                    what = error.what if isinstance(error, KBError) else error
                    _log.warning("generation_not_fetched: %s", what)
                    for each in target.iterdir():
                        shutil.rmtree(each) if each.is_dir() else each.unlink()
        return False

    def _fetched(self, path: str, target: Path, after: int) -> bool:
        manifest = self._checked_manifest(path)
        if not after < manifest.seq <= self._sources.store.last_seq():
            return False
        for name in sorted(manifest.files):
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with copy.open("xb") as file:
                pieces = self._place.pieces(f"{path}/{name}")
                file.writelines(_checked(pieces, f"{path}/{name}", manifest.files[name]))
        write_manifest(target, manifest)
        return True

    def _checked_manifest(self, path: str) -> Manifest:
        manifest = decode_manifest(self._small(f"{path}/{MANIFEST}"), path)
        if manifest.identity != self._sources.identity():
            raise DamagedIndexError(f"{path} was built by another program", todo=REPAIR)
        names = [*manifest.files, manifest.base]
        below = all(_PATH.match(name) and ".." not in name.split("/") for name in names)
        if not manifest.checksum or not below:
            raise DamagedIndexError(f"the manifest in {path} is damaged", todo=REPAIR)
        return manifest

    def _small(self, path: str) -> bytes:
        content = b""
        for piece in self._place.pieces(path):
            content += piece
            if len(content) > MANIFEST_BYTES:
                raise DamagedIndexError(f"{path} is too large", todo=REPAIR)
        return content

    def _newest_first(self) -> list[str]:
        """Whole generations: that which `LATEST` names, then the others by their last change."""
        names = self._place.names(self.name)
        numbers = {name: int(match[1]) for name in names if (match := _GENERATION.match(name))}
        try:
            latest = self._small(f"{self.name}/{LATEST}").decode("ascii").strip() if numbers else ""
        except (FileNotFoundError, UnicodeDecodeError):
            latest = ""
        ordered = sorted(numbers, key=lambda name: (name != latest, -numbers[name], name))
        return [f"{self.name}/{name}" for name in ordered]

    # --- publishing ----------------------------------------------------------------------------

    def publish(self, snapshot: Snapshot, *, stopped: threading.Event) -> bool:
        """Put a copy of `snapshot` there as the latest; whether that was done.

        It is not where another server publishes, or `stopped` is set meanwhile.

        Raises:
            OSError: the place cannot be written; what was there is as it was.
            DamagedIndexError: the snapshot's files are not as they were written.
            StoreError: the store's lock cannot be had.
        """
        lock = self._sources.store.lock
        with lock(f"locks/publish-{self.name}", wait=False) as elected:
            if not elected:
                return False
            self._place.delete_unfinished(self.name)
            generation = f"gen-{snapshot.manifest.seq}-{uuid.uuid4().hex[:8]}"
            try:
                with self._place.building(f"{self.name}/{generation}") as write:
                    _copy(snapshot, write, stopped)
            except _StoppedError:
                return False
            self._place.put(f"{self.name}/{LATEST}", f"{generation}\n".encode())
            with lock(f"locks/fetch-{self.name}", wait=False) as unread:
                for path in self._newest_first()[KEEP:] if unread else ():
                    self._place.delete(path)
            return True


class _StoppedError(Exception):
    """The server ends: what was written of a generation goes."""


def _copy(snapshot: Snapshot, write: WriteFile, stopped: threading.Event) -> None:
    """Write the files of a generation, each checked on the way, and its manifest at the end."""
    files = snapshot.manifest.files
    with ExitStack() as opened:  # all first: they stay readable when their folder is deleted
        sources = {
            name: opened.enter_context(open_regular(snapshot.folder / name)) for name in files
        }
        for name, file in sorted(sources.items()):
            pieces = _until(stopped, file_pieces(file))
            write(name, _checked(pieces, f"{snapshot.folder / name}", files[name]))
    write(MANIFEST, _until(stopped, [encode_manifest(snapshot.manifest)]))


def _until(stopped: threading.Event, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces; an error instead of the next once `stopped` is set."""
    for piece in pieces:
        if stopped.is_set():
            raise _StoppedError
        yield piece


def _checked(pieces: Iterable[bytes], path: str, expected: tuple[int, int]) -> Iterator[bytes]:
    """The pieces; an error at their end unless they have this size and CRC-32.

    Raises:
        DamagedIndexError: they have not.
    """
    done = found = 0
    for piece in pieces:
        done, found = done + len(piece), zlib.crc32(piece, found)
        if done > expected[0]:
            break
        yield piece
    if (done, found) != expected:
        raise DamagedIndexError(f"{path} is damaged", todo=REPAIR)
