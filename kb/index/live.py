"""The index as a running program uses it: opened once, kept up to date, rebuilt beside itself.

Each generation is a folder that is built aside, published by one rename and never changed;
``CURRENT`` names the one in use. A reader that opened a generation keeps it even when its folder is
deleted. One process builds at a time; a crash leaves a folder the next builder removes.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kb.embed.base import Embedder
from kb.errors import DamagedIndexError, SearchIndexError
from kb.files.atomic import publish_folder, write_file
from kb.files.state_folder import locked
from kb.index import snapshot
from kb.index.base import DISK, REPAIR, Tokens
from kb.index.snapshot import Snapshot
from kb.index.vector_index import DEFAULT_VECTOR_INDEX, vector_index
from kb.store import Store

CURRENT = "CURRENT"
LOCK = "LOCK"
# Later changes are searched exactly and copied with every update; beyond this a rebuild is cheaper.
CHANGES_LIMIT = 5_000
CHANGES_SHARE = 0.1  # of a large index
OPEN_TRIES = 20  # a generation published while one is opened makes another try necessary
_GENERATION = re.compile(r"gen-([0-9]+)(\.building)?\Z")
_log = logging.getLogger(__name__)


class SearchIndex:
    """The newest generation below a folder; safe to use from many threads and processes."""

    def __init__(
        self,
        folder: Path,
        *,
        store: Store,
        embedder: Embedder,
        tokenizer: Tokens,
        tokens: str = "",
        vectors: str = DEFAULT_VECTOR_INDEX,
        notify: Callable[[str], None] = _log.warning,
    ) -> None:
        """Nothing is read or built before it is asked for.

        Args:
            folder: holds the generations (``<home>/index``).
            store: where entries and vectors come from.
            embedder: makes the vectors that are missing.
            tokenizer: cuts texts into words.
            tokens: fingerprint of the tokenizer and its word lists; a change is a mismatch.
            vectors: name of the vector index (`kb.index.vector_index.VECTOR_INDEXES`).
            notify: told in one line when a damaged index is built anew.
        """
        self._notify = notify
        self._folder = folder
        self._sources = snapshot.Sources(
            store=store,
            embedder=embedder,
            tokenizer=tokenizer,
            fingerprint=tokens or snapshot.fingerprint(tokenizer),
            vectors=vector_index(vectors),
        )
        self._snapshot: Snapshot | None = None
        self._stamp: tuple[int, int] | None = None
        self._adopting = threading.Lock()

    def snapshot(self) -> Snapshot:
        """The newest published state; asks the disk only whether there is a newer one.

        A state that this program cannot use (another model) is not adopted: the last one serves.

        Raises:
            SearchIndexError: there is no usable state at all.
        """
        self._adopt()
        if self._snapshot is None:
            raise DamagedIndexError(f"there is no search index in {self._folder}", todo=REPAIR)
        return self._snapshot

    def stamp(self) -> tuple[int, int] | None:
        """Something that changes whenever another state is published; cheap to ask."""
        try:
            status = (self._folder / CURRENT).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def catch_up(self) -> bool:
        """Bring the index up to the store's last change; whether that changed anything.

        Vectors that are missing are made first. Few changes cost little; many, or a store
        without an index, mean a build of all of it. So does a damaged one: all of it comes from
        the store. Searches go on meanwhile.

        Raises:
            SearchIndexError: something else built the index there, or the disk refuses a new one.
        """
        try:
            return self._catch_up()
        except DamagedIndexError:
            with locked(self._folder / LOCK):
                try:  # another process may have repaired it while we waited
                    self._usable()
                except DamagedIndexError as error:
                    self._notify(f"{error.what}: building the search index anew from the database")
                    self._build()
            return self._catch_up() or True

    def _catch_up(self) -> bool:
        store = self._sources.store
        last = self._usable()
        if last is not None and last.manifest.seq == store.last_seq():
            return False
        with locked(self._folder / LOCK):
            last = self._usable()
            if last is None:
                self._build()
                return True
            changes = store.chunk_changes_since(last.manifest.seq)
            if changes.last_seq == last.manifest.seq:
                return False
            if changes.last_seq < last.manifest.seq or _many(last, len(changes.chunks)):
                self._build()
            else:
                with self._next_generation() as folder:
                    snapshot.derive(self._sources, folder, last, changes)
            return True

    def rebuild(self) -> None:
        """Build everything anew from the store, whatever is there; the old index serves meanwhile.

        Raises:
            SearchIndexError: the disk refuses; the old index stays in use.
        """
        with locked(self._folder / LOCK):
            self._build()

    # --- reading -------------------------------------------------------------------------------

    def _usable(self) -> Snapshot | None:
        """The newest state, strictly: None without an index, an error with an unusable one."""
        if self._current() is None:
            return None
        self._adopt(strict=True)
        return self._snapshot

    def _current(self) -> Path | None:
        """Folder of the generation in use; None when there is none yet."""
        path = self._folder / CURRENT
        try:
            name = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedIndexError(f"{path} cannot be read: {error}", todo=REPAIR) from error
        match = _GENERATION.match(name)
        if not match or match[2]:
            raise DamagedIndexError(
                f"{path} holds {name[:40]!r}, not the name of a generation", todo=REPAIR
            )
        return self._folder / name

    def _adopt(self, *, strict: bool = False) -> None:
        """Load the newest generation unless it is loaded."""
        if self._snapshot is not None and self.stamp() == self._stamp:
            return
        with self._adopting:
            missing = ""
            for _ in range(OPEN_TRIES):
                stamp = self.stamp()
                if self._snapshot is not None and stamp == self._stamp:
                    return
                folder = self._current()
                if folder is None:
                    return
                try:
                    self._snapshot = snapshot.load(self._sources, folder, known=self._snapshot)
                except FileNotFoundError as error:
                    missing = error.filename
                    continue  # replaced and deleted while we looked
                except SearchIndexError:
                    if self.stamp() != stamp:
                        continue
                    if strict or self._snapshot is None:
                        raise
                    _log.warning("index_not_adopted", exc_info=True)
                self._stamp = stamp
                return
            raise DamagedIndexError(f"{missing} is missing", todo=REPAIR)

    # --- writing; the caller holds the lock ----------------------------------------------------

    def _build(self) -> None:
        with self._next_generation() as folder:
            snapshot.build(self._sources, folder)

    @contextmanager
    def _next_generation(self) -> Iterator[Path]:
        """An empty folder, which becomes the generation in use once the block has filled it.

        Raises:
            SearchIndexError: the disk refuses; the former generation stays in use.
        """
        try:
            self._sweep()
            names = (_GENERATION.match(path.name) for path in self._folder.iterdir())
            last = max((int(match[1]) for match in names if match), default=0)
            final = self._folder / f"gen-{last + 1}"
            built = final.with_suffix(".building")
            try:
                built.mkdir()
                yield built
                publish_folder(built, final)
            finally:
                shutil.rmtree(built, ignore_errors=True)
            write_file(self._folder / CURRENT, f"{final.name}\n".encode(), durable=True)
            self._sweep()
        except OSError as error:
            raise SearchIndexError(
                f"the index in {self._folder} cannot be written: {error.strerror or error}",
                todo=DISK,
            ) from error
        self._adopt(strict=True)

    def _sweep(self) -> None:
        """Delete what no new reader can find: unfinished and former generations."""
        try:
            current = self._current()
        except SearchIndexError:
            current = None  # a damaged name is what a rebuild repairs
        if (self._folder / CURRENT).is_dir():
            shutil.rmtree(self._folder / CURRENT)  # damage: it is a file
        for path in sorted(self._folder.iterdir()):
            if _GENERATION.match(path.name) and path != current:
                shutil.rmtree(path, ignore_errors=True)
            elif path.name.startswith(f"{CURRENT}."):
                path.unlink(missing_ok=True)


def _many(last: Snapshot, added: int) -> bool:
    return last.dense.changes + added > max(CHANGES_LIMIT, CHANGES_SHARE * last.dense.size)
