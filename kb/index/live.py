"""The index as a running program uses it: opened once, kept up to date, rebuilt beside itself."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kb.embed.base import Embedder
from kb.errors import SearchIndexError
from kb.index import manifest
from kb.index.base import DISK, REPAIR
from kb.index.generations import Generations
from kb.store import Store

if TYPE_CHECKING:
    from kb.index.snapshot import Snapshot

# Later changes are searched exactly and copied with every update; beyond this a rebuild is cheaper.
CHANGES_LIMIT = 5_000
CHANGES_SHARE = 0.1  # of a large index
OPEN_TRIES = 20  # a generation published while one is opened makes another try necessary
_log = logging.getLogger(__name__)


def _silent(stage: str, done: int, total: int) -> None:
    """Progress nobody watches."""


class SearchIndex:
    """The newest generation below a folder; safe to use from many threads and processes."""

    def __init__(
        self,
        folder: Path,
        *,
        store: Store,
        embedder: Embedder,
        tokenizer: manifest.Tokens,
        tokens: str,
        progress: Callable[[str, int, int], None] = _silent,
        exact_limit: int | None = None,
    ) -> None:
        """Use `open`."""
        from kb.index import dense, snapshot

        self._generations = Generations(folder)
        self._sources = snapshot.Sources(
            store=store,
            embedder=embedder,
            tokenizer=tokenizer,
            identity=manifest.identity(
                store=store.id, model=embedder.name, dimension=embedder.dimension, tokens=tokens
            ),
            progress=progress,
            exact_limit=dense.EXACT_LIMIT if exact_limit is None else exact_limit,
        )
        self._snapshot: Snapshot | None = None
        self._stamp: tuple[int, int] | None = None
        self._adopting = threading.Lock()

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        store: Store,
        embedder: Embedder,
        tokenizer: manifest.Tokens,
        lexicon: Path | None = None,
        progress: Callable[[str, int, int], None] = _silent,
        exact_limit: int | None = None,
    ) -> SearchIndex:
        """Open the index below `folder` and bring it up to date; built if there is none.

        Args:
            folder: holds the generations (``<home>/index``).
            store: where entries and vectors come from.
            embedder: makes the vectors that are missing.
            tokenizer: cuts texts into words.
            lexicon: folder with the tokenizer's word lists; a change in it is a mismatch.
            progress: called while the index is built.
            exact_limit: vectors up to which the search is exact; default: `EXACT_LIMIT`.

        Raises:
            SearchIndexError: it was built by another model, tokenizer or version, or is damaged;
                the message names the command that repairs it.
        """
        index = cls(
            folder,
            store=store,
            embedder=embedder,
            tokenizer=tokenizer,
            tokens=manifest.fingerprint(tokenizer, lexicon),
            progress=progress,
            exact_limit=exact_limit,
        )
        index.catch_up()
        return index

    def snapshot(self) -> Snapshot:
        """The newest published state; asks the disk only whether there is a newer one.

        A state that this program cannot use (another model) is not adopted: the last one serves.

        Raises:
            SearchIndexError: there is no usable state at all.
        """
        if self._snapshot is None or self._generations.stamp() != self._stamp:
            self._adopt()
        if self._snapshot is None:
            raise SearchIndexError(
                f"there is no search index in {self._generations.folder}", todo=REPAIR
            )
        return self._snapshot

    def stamp(self) -> tuple[int, int] | None:
        """Something that changes whenever another state is published; cheap to ask."""
        return self._generations.stamp()

    def behind(self) -> bool:
        """Whether the store has changes that searches do not see yet."""
        return self.snapshot().manifest.seq < self._sources.store.last_seq()

    def catch_up(self) -> bool:
        """Bring the index up to the store's last change; whether that changed anything.

        Vectors that are missing are made first. Few changes cost little; many, or a store
        without an index, mean a build of all of it. Searches go on meanwhile.

        Raises:
            SearchIndexError: the index there is unusable, or the disk refuses a new one.
        """
        from kb.index import snapshot

        last = self._usable()
        if last is not None and last.manifest.seq == self._sources.store.last_seq():
            return False
        with self._generations.lock():
            last = self._usable()
            if last is None:
                self._publish(lambda folder: snapshot.build(self._sources, folder))
                return True
            page = last.manifest
            changes = self._sources.store.chunk_changes_since(page.seq)
            if changes.last_seq == page.seq:
                return False
            if changes.last_seq < page.seq or self._many(last, len(changes.chunks)):
                self._publish(lambda folder: snapshot.build(self._sources, folder))
            else:
                self._publish(lambda folder: snapshot.derive(self._sources, folder, last, changes))
            return True

    def rebuild(self) -> None:
        """Build everything anew from the store, whatever is there; the old index serves meanwhile.

        Raises:
            SearchIndexError: the disk refuses; the old index stays in use.
        """
        from kb.index import snapshot

        with self._generations.lock():
            self._publish(lambda folder: snapshot.build(self._sources, folder))

    def _usable(self) -> Snapshot | None:
        """The newest state, strictly: None without an index, an error with an unusable one."""
        if self._generations.current() is None:
            return None
        if self._snapshot is None or self._generations.stamp() != self._stamp:
            self._adopt(strict=True)
        return self._snapshot

    def _many(self, last: Snapshot, added: int) -> bool:
        from kb.index.dense import FaissIndex

        changes = last.dense.changes if isinstance(last.dense, FaissIndex) else 0
        return changes + added > max(CHANGES_LIMIT, CHANGES_SHARE * last.dense.size)

    def _publish(self, make: Callable[[Path], None]) -> None:
        folder = self._generations.start()
        try:
            make(folder)
            self._generations.publish(folder)
        except OSError as error:
            raise SearchIndexError(
                f"the index in {folder.parent} cannot be written: {error.strerror or error}",
                todo=DISK,
            ) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self._adopt(strict=True)

    def _adopt(self, *, strict: bool = False) -> None:
        """Load the newest generation unless it is loaded."""
        from kb.index import snapshot

        with self._adopting:
            missing = ""
            for _ in range(OPEN_TRIES):
                stamp = self._generations.stamp()
                if self._snapshot is not None and stamp == self._stamp:
                    return
                folder = self._generations.current()
                if folder is None:
                    return
                try:
                    self._snapshot = snapshot.load(
                        folder, self._sources.identity, known=self._snapshot
                    )
                except FileNotFoundError as error:
                    missing = error.filename
                    continue  # replaced and deleted while we looked
                except SearchIndexError:
                    if self._generations.stamp() != stamp:
                        continue
                    if strict or self._snapshot is None:
                        raise
                    _log.warning("index_not_adopted", exc_info=True)
                self._stamp = stamp
                return
            raise SearchIndexError(f"{missing} is missing", todo=REPAIR)
