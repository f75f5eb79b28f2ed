"""The index as a running program uses it: opened once, kept up to date, rebuilt beside itself.

Each generation is a folder that is built aside, published by one rename and never changed;
``CURRENT`` names the one in use. A reader that opened a generation keeps it even when its folder is
deleted. One process builds at a time; a crash leaves a folder the next builder removes.

Programs that build differently (another release, another model) share the database, and each
identity has a folder of generations of its own: none makes another's index stale.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from kb.embed.base import Embedder
from kb.errors import DamagedIndexError, SearchIndexError
from kb.files.atomic import publish_folder, write_file
from kb.files.state_folder import UseMark, locked, unused
from kb.index import snapshot
from kb.index.base import DISK, REPAIR, Tokens
from kb.index.generation_places import GenerationPlace
from kb.index.shared_generations import SharedGenerations
from kb.index.snapshot import Snapshot
from kb.index.sources import fingerprint
from kb.index.upkeep import IndexUpkeep
from kb.index.vector_index import DEFAULT_VECTOR_INDEX, vector_index
from kb.store import Store

CURRENT = "CURRENT"
LOCK = "LOCK"
IN_USE = "IN_USE"  # marked by every process that has an index of this folder open
UNUSED_S = 30 * 86_400  # after a release is replaced, long enough to go back to it without a build
# Later changes are searched exactly and copied with every update; beyond this a rebuild is cheaper.
CHANGES_LIMIT = 5_000
CHANGES_SHARE = 0.1  # of a large index
# With fewer to add, adding them is as quick as fetching what has them: 0.6 s for so many, and to
# fetch 100,000 chunks 0.3 s and the way of 121 MiB (tests/bench/bench_generations.py).
FETCH_CHUNKS = 2_000
OPEN_TRIES = 20  # a generation published while one is opened makes another try necessary
_GENERATION = re.compile(r"gen-([0-9]+)(\.building)?\Z")
_IDENTITY = re.compile(r"[0-9a-f]{16}\Z")
_log = logging.getLogger(__name__)


class SearchIndex(IndexUpkeep):
    """The newest generation below a folder; safe to use from many threads and processes.

    Attributes:
        shared: generations of several servers; None where each builds its own.
    """

    def __init__(
        self,
        folder: Path,
        *,
        store: Store,
        embedder: Embedder,
        tokenizer: Tokens,
        tokens: str = "",
        vectors: str = DEFAULT_VECTOR_INDEX,
        generations: GenerationPlace | None = None,
        notify: Callable[[str], None] = _log.warning,
    ) -> None:
        """Nothing is read or built before it is asked for.

        Args:
            folder: holds a folder of generations for every identity (``<home>/index``).
            store: where entries and vectors come from.
            embedder: makes the vectors that are missing.
            tokenizer: cuts texts into words.
            tokens: fingerprint of the tokenizer and its word lists; a change is a mismatch.
            vectors: name of the vector index (`kb.index.vector_index.VECTOR_INDEXES`).
            generations: where servers share what they built; None: each builds its own.
            notify: told in one line when a damaged index is built anew.
        """
        super().__init__(store)
        self._notify = notify
        self._all = folder
        self._sources = snapshot.Sources(
            store=store,
            embedder=embedder,
            tokenizer=tokenizer,
            fingerprint=tokens or fingerprint(tokenizer),
            vectors=vector_index(vectors),
        )
        self.shared = SharedGenerations(generations, self._sources) if generations else None
        self._snapshot: Snapshot | None = None
        self._stamp: tuple[int, int] | None = None
        self._unusable: tuple[int, int] | None = None  # stamp of a state that is damaged
        self._adopting = threading.Lock()
        self._use: UseMark | None = None

    @cached_property
    def _folder(self) -> Path:
        return self._all / self._sources.identity().folder_name()

    def snapshot(self) -> Snapshot:
        """The newest published state; asks the disk only whether there is a newer one.

        A damaged state is not adopted: the last one serves. When the store has changed since, say
        by another release, the index is brought up to it beside the search, for later ones.

        Raises:
            SearchIndexError: there is no usable state at all.
        """
        published = self.published()
        self.follow()
        return published

    def published(self) -> Snapshot:
        """The same, and nothing is brought up to date.

        Raises:
            SearchIndexError: there is no usable state at all.
        """
        self._adopt()
        if self._snapshot is None:
            raise DamagedIndexError(f"there is no search index in {self._folder}", todo=REPAIR)
        return self._snapshot

    def exists(self) -> bool:
        """Whether a program like this one has built an index here."""
        return (self._folder / CURRENT).exists()

    def _last_seq(self) -> int:
        return self._snapshot.manifest.seq if self._snapshot else 0

    def has_others(self) -> bool:
        """Whether there is an index here, and it is of other programs only."""
        return self._all.exists() and not self.exists() and any(self._others())

    def close(self) -> None:
        """Nothing to let go of: files are closed with what they are read by."""

    def stamp(self) -> tuple[int, int] | None:
        """Something that changes whenever another state is published; cheap to ask."""
        try:
            status = (self._folder / CURRENT).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def _bring_up(self) -> bool:
        """Apply what changed, with the vectors that are missing made first.

        Few changes cost little; many, or a store without an index, mean to fetch what another
        server shares, or a build of all of it. A damaged one is built too: all of it comes from
        the store. Searches go on meanwhile.
        """
        self._mark_use()
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
            last, fetched = self._usable(), False
            if last is None:
                fetched = self._fetch(after=-1)
                last = self._usable()
            if last is None:
                self._build()
                return True
            changes = store.chunk_changes_since(last.manifest.seq)
            if len(changes.chunks) >= FETCH_CHUNKS and self._fetch(after=last.manifest.seq):
                fetched, last = True, self._usable() or last
                changes = store.chunk_changes_since(last.manifest.seq)
            if changes.last_seq == last.manifest.seq:
                return fetched
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
        self._mark_use()
        with locked(self._folder / LOCK):
            self._build()

    def _mark_use(self) -> None:
        """Let nobody delete this identity's folder while this process lives."""
        if self._use is None:
            try:
                self._use = UseMark(self._folder / IN_USE)
            except OSError as error:
                raise _cannot_write(self._folder, error) from error

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
        """Load the newest generation unless it is loaded; `strict`: one that is damaged raises."""
        if self._is_newest(self.stamp(), strict=strict):
            return
        with self._adopting:
            missing = ""
            for _ in range(OPEN_TRIES):
                stamp = self.stamp()
                if self._is_newest(stamp, strict=strict):
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
                    self._unusable = stamp
                    return
                self._stamp, self._unusable = stamp, None
                return
            raise DamagedIndexError(f"{missing} is missing", todo=REPAIR)

    def _is_newest(self, stamp: tuple[int, int] | None, *, strict: bool) -> bool:
        if self._snapshot is None:
            return False
        return stamp == self._stamp or (not strict and stamp == self._unusable)

    # --- writing; the caller holds the lock ----------------------------------------------------

    def _build(self) -> None:
        with self._next_generation() as folder:
            snapshot.build(self._sources, folder)

    def _fetch(self, *, after: int) -> bool:
        """Take over what another server shares, where it has later changes; whether it had."""
        if self.shared is None:
            return False
        try:
            with self._next_generation() as folder:
                if not self.shared.fetch(folder, after=after):
                    raise _NothingSharedError
        except _NothingSharedError:
            return False
        return True

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
            raise _cannot_write(self._folder, error) from error
        self._adopt(strict=True)
        with suppress(OSError):  # what cannot be deleted now can be later
            self._forget_others()

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

    def _others(self) -> Iterator[Path]:
        """Folders of other identities, and the one above them that earlier releases build in."""
        if (self._all / CURRENT).exists():
            yield self._all
        for path in sorted(self._all.iterdir()):
            if path != self._folder and _IDENTITY.match(path.name) and path.is_dir():
                yield path

    def _forget_others(self) -> None:
        """Delete what no program has used for long."""
        for folder in self._others():
            with unused(folder / IN_USE, for_s=UNUSED_S) as deletable:
                if deletable and folder != self._all:
                    shutil.rmtree(folder, ignore_errors=True)
                elif deletable:
                    for path in folder.glob("gen-*"):
                        shutil.rmtree(path, ignore_errors=True)
                    for name in (CURRENT, LOCK, IN_USE):
                        (folder / name).unlink(missing_ok=True)


class _NothingSharedError(Exception):
    """No other server shares a generation that helps; the folder made for it goes."""


def _cannot_write(folder: Path, error: OSError) -> SearchIndexError:
    what = f"the index in {folder} cannot be written: {error.strerror or error}"
    return SearchIndexError(what, todo=DISK)


def _many(last: Snapshot, added: int) -> bool:
    return last.dense.changes + added > max(CHANGES_LIMIT, CHANGES_SHARE * last.dense.size)
