"""Entries in and out of the database."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from kb.errors import NotFoundError, UnreachableStoreError
from kb.settings import Settings
from kb.store.connection import Connection, Database
from kb.store.database import DATABASE, SqliteDatabase
from kb.store.deleted import DeletedEntries
from kb.store.imported_files import ImportedFiles
from kb.store.local_copy import LocalCopy
from kb.store.records import Preferences, Records
from kb.store.rows import ChunkChanges, ChunkRow, EntryHead
from kb.store.statements import (
    BATCH,
    conditions,
    last_seq,
    merged_into,
    nearest,
    put,
    read_entries,
    remove,
    select_in,
    set_seq,
)
from kb.store.vectors import Vectors
from kb.types.entries import NO_FILTERS, Entry, Filters

_HEAD = msgspec.json.Decoder(EntryHead)


class Store:
    """The knowledge base as it is; safe to use from many threads and processes.

    Attributes:
        name: of the database in messages: its file, or the server's address without a password.
        path: the database file; None where a server has it.
        database: reads and writes it, one transaction at a time.
        id: identity of this database; a copy has the same, a new one never.
        vectors: the chunks' vectors, per model.
        records: diagnoses, feedback, conversations.
        preferences: settings people made through a face, and what was handled already.
        deleted: entries that can be brought back.
        imported_files: files that were imported.
    """

    def __init__(self, database: Database, store_id: str) -> None:
        """Use `open`."""
        self.database = database
        self.name, self.path = database.name, database.path
        self.lock = database.lock
        self.wait = database.wait
        self._is_closed = False
        self._copy: LocalCopy | None = None
        self.id = store_id
        self.vectors = Vectors(database)
        self.records = Records(database)
        self.preferences = Preferences(database)
        self.deleted = DeletedEntries(database)
        self.imported_files = ImportedFiles(database)

    @classmethod
    def open(cls, place: Path | str) -> Store:
        """Open the file at a path or the PostgreSQL database at an address, made if missing.

        Raises:
            StoreError: the database is damaged, newer or another program's, cannot be reached or
                written, or the file lies on a network file system; the message says what to do.
        """
        database: Database
        if isinstance(place, Path):
            database = SqliteDatabase(place)
        else:
            from kb.store.postgres import PostgresDatabase

            database = PostgresDatabase(place)
        store = cls(database, database.prepare())
        store.deleted.forget(now_s=time.time())
        return store

    @classmethod
    def of(cls, settings: Settings, *, keep_copy: bool = True) -> Store:
        """Open the database that the settings name.

        Of a server's entries the state folder keeps a copy, unless it is not to; with it the store
        opens while the server is gone.

        Raises:
            StoreError: as `open`.
        """
        if not settings.shared_store:
            return cls.open(settings.home / DATABASE)
        if not keep_copy:
            return cls.open(settings.store)
        copy = LocalCopy.of(settings.store, settings.home / "cache")
        try:
            store = cls.open(settings.store)
            copy.belong_to(store.id)
        except UnreachableStoreError:
            from kb.store.postgres import PostgresDatabase

            if not (origin := copy.origin()):
                raise
            store = cls(PostgresDatabase(settings.store), origin)
        store.keep_copy(copy)
        return store

    def keep_copy(self, copy: LocalCopy) -> None:
        """Read entries from `copy` while the server cannot be reached."""
        self._copy = copy

    def refresh_copy(self) -> None:
        """Bring the copy up to the database.

        Raises:
            StoreError: one of both cannot be read or written.
        """
        if self._copy is not None:
            self._copy.follow(self.database)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def is_reachable(self) -> bool:
        """Whether the database answers, and not the copy alone."""
        try:
            with self.database.read():
                return True
        except UnreachableStoreError:
            return False

    def close(self) -> None:
        """Close the connections."""
        self._is_closed = True
        self.database.close()
        if self._copy is not None:
            self._copy.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A connection that entries are read from: of the copy while the server is gone."""
        with ExitStack() as entered:
            try:
                connection = entered.enter_context(self.database.read())
            except UnreachableStoreError:
                if self._copy is None:
                    raise
                connection = entered.enter_context(self._copy.read())
            yield connection

    # --- writing -------------------------------------------------------------------------------

    def upsert(self, entries: Sequence[Entry]) -> dict[str, int]:
        """Write entries in one transaction: all of them or, on any error, none.

        An entry whose source key is known replaces what came from there, whatever its id. One
        that is there already, content and all, changes nothing; neither does known content under
        another source key.

        Returns:
            Counts under ``added``, ``updated`` and ``unchanged``.

        Raises:
            InputError: a text cannot be written as UTF-8 (a lone surrogate).
            StoreError: the database cannot be written.
        """
        counts = {"added": 0, "updated": 0, "unchanged": 0}
        with self.database.write() as connection:
            seq = last_seq(connection) + 1
            for entry in entries:
                counts[put(connection, entry, seq)] += 1
            if counts["added"] or counts["updated"]:
                set_seq(connection, seq)
        return counts

    def merge(self, entry: Entry, merged: Iterable[str]) -> None:
        """Write `entry` and delete the incidents merged into it, in one transaction.

        `Store.get` leads from the ids in `entry.merged` to it.

        Raises:
            StoreError: the database cannot be written.
        """
        with self.database.write() as connection:
            seq = last_seq(connection) + 1
            for entry_id in sorted(set(merged)):
                remove(connection, entry_id, seq)
            put(connection, entry, seq)
            set_seq(connection, seq)

    def put_back(self, former: Iterable[Entry], *, instead_of: Iterable[Entry]) -> None:
        """Undo a writing of `instead_of` that replaced `former`.

        Raises:
            StoreError: the database cannot be written.
        """
        with self.database.write() as connection:
            seq = last_seq(connection) + 1
            for entry in instead_of:
                remove(connection, entry.id, seq)
            for entry in former:
                put(connection, entry, seq)
            set_seq(connection, seq)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete entries by id in one transaction; unknown ids are passed over.

        Returns:
            How many were there.
        """
        deleted = 0
        with self.database.write() as connection:
            seq = last_seq(connection) + 1
            for entry_id in sorted(set(ids)):
                deleted += remove(connection, entry_id, seq)
            if deleted:
                set_seq(connection, seq)
        return deleted

    # --- reading -------------------------------------------------------------------------------

    def get(self, entry_id: str) -> Entry:
        """The entry with that id, or the incident it was merged into.

        Raises:
            NotFoundError: there is none; the nearest ids are named.
        """
        with self._reading() as connection:
            query = "SELECT ordinal, body FROM entries WHERE id = ?"
            row = connection.execute(query, (entry_id,)).fetchone()
            if row is None and (other := merged_into(connection, entry_id)):
                row = connection.execute(query, (other,)).fetchone()
            if row is None:
                near = nearest(connection, entry_id)
                todo = f"did you mean {', '.join(near)}?" if near else "search for it instead"
                raise NotFoundError(
                    f"there is no entry {entry_id!r}",
                    todo=todo,
                    reason="no_entry_near" if near else "no_entry",
                    values={"id": entry_id, "near": ", ".join(near)},
                )
            return next(read_entries(connection, [row]))

    def replaced_by(self, entries: Sequence[Entry], *, also: Iterable[str] = ()) -> list[Entry]:
        """The stored entries whose id or source one of `entries` has, and those with ids `also`."""
        ids = {entry.id for entry in entries} | set(also)
        query = "SELECT ordinal, body FROM entries WHERE {} IN ({{}})"
        with self._reading() as connection:
            rows = {
                *select_in(connection, query.format("id"), ids),
                *select_in(
                    connection, query.format("source_key"), [entry.source_key for entry in entries]
                ),
            }
            return list(read_entries(connection, sorted(rows)))

    def iter_entries(self, filters: Filters = NO_FILTERS, *, batch: int = BATCH) -> Iterator[Entry]:
        """Entries that pass, in id order; each batch is read from the then current state."""
        where, parameters = conditions(filters)
        after = ""
        while True:
            with self._reading() as connection:
                rows = connection.execute(
                    f"SELECT ordinal, body, id FROM entries WHERE id > ? AND {where} "  # noqa: S608 - made of constants
                    "ORDER BY id LIMIT ?",
                    (after, *parameters, min(batch, BATCH)),
                ).fetchall()
                entries = list(read_entries(connection, rows))
            yield from entries
            if not rows:
                return
            after = rows[-1][2]

    def ids(self, filters: Filters = NO_FILTERS) -> list[str]:
        """Ids of the entries that pass, sorted."""
        where, parameters = conditions(filters)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT id FROM entries WHERE {where} ORDER BY id",  # noqa: S608
                parameters,
            )
            return [row[0] for row in rows]

    def holds(self, filters: Filters) -> bool:
        """Whether any entry passes."""
        where, parameters = conditions(filters)
        with self._reading() as connection:
            query = f"SELECT 1 FROM entries WHERE {where} LIMIT 1"  # noqa: S608 - made of constants
            return connection.execute(query, parameters).fetchone() is not None

    def count(self) -> int:
        """Number of entries."""
        with self._reading() as connection:
            return int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])

    def digests(self) -> dict[str, str]:
        """Digest of every entry's source by source key."""
        with self._reading() as connection:
            return dict(connection.execute("SELECT source_key, digest FROM entries"))

    def facets(self, filters: Filters = NO_FILTERS) -> dict[str, dict[str, int]]:
        """How many entries that pass have each value, per facet, the most frequent first."""
        where, parameters = conditions(filters)
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT facet, min(label), count(*) FROM tags "  # noqa: S608
                f"WHERE entry IN (SELECT ordinal FROM entries WHERE {where}) "
                "GROUP BY facet, value ORDER BY facet, count(*) DESC, value",
                parameters,
            ).fetchall()
        counts: dict[str, dict[str, int]] = {}
        for facet, label, number in rows:
            counts.setdefault(facet, {})[label] = number
        return counts

    # --- what changed --------------------------------------------------------------------------

    def last_seq(self) -> int:
        """Number of the last change; it grows by one with every changing transaction."""
        with self._reading() as connection:
            return last_seq(connection)

    def chunk_changes_since(self, seq: int) -> ChunkChanges:
        """Chunk numbers and entry ordinals that appeared and vanished after change `seq`."""
        with self._reading() as connection:

            def changed(table: str, key: str) -> tuple[int, ...]:
                query = f"SELECT {key} FROM {table} WHERE seq > ? ORDER BY {key}"  # noqa: S608
                return tuple(row[0] for row in connection.execute(query, (seq,)))

            return ChunkChanges(
                chunks=changed("chunks", "number"),
                removed_chunks=changed("removed_chunks", "number"),
                entries=changed("entries", "ordinal"),
                removed_entries=changed("removed_entries", "ordinal"),
                last_seq=last_seq(connection),
            )

    def chunks(self, numbers: Sequence[int]) -> list[ChunkRow]:
        """Chunks by number, ascending; numbers that are gone are left out."""
        query = (
            "SELECT number, entry, id, role, language, text FROM chunks "
            "WHERE number IN ({}) ORDER BY number"
        )
        with self._reading() as connection:
            return [ChunkRow(*row) for row in select_in(connection, query, numbers)]

    def heads(self, ordinals: Sequence[int]) -> dict[int, EntryHead]:
        """Heads of entries by ordinal; those that are gone are left out."""
        query = "SELECT ordinal, body FROM entries WHERE ordinal IN ({})"
        with self._reading() as connection:
            rows = select_in(connection, query, ordinals)
            return {ordinal: _HEAD.decode(body) for ordinal, body in rows}

    def catalogue_rows(
        self, ordinals: Sequence[int]
    ) -> tuple[list[tuple[int, str, int]], list[tuple[int, str, str]], NDArray[np.int64]]:
        """What filters need of entries, each part in ordinal order.

        Returns:
            (ordinal, id, day number), then (ordinal, facet, label), then the chunks as an array
            of shape (n, 2): number and the entry's ordinal, in number order.
        """
        entries = "SELECT ordinal, id, day FROM entries WHERE ordinal IN ({}) ORDER BY ordinal"
        tags = (
            "SELECT entry, facet, label FROM tags WHERE entry IN ({}) ORDER BY entry, facet, value"
        )
        chunks = "SELECT number, entry FROM chunks WHERE entry IN ({})"
        with self._reading() as connection:
            numbers = sorted(select_in(connection, chunks, ordinals))
            return (
                list(select_in(connection, entries, ordinals)),
                list(select_in(connection, tags, ordinals)),
                np.array(numbers, dtype=np.int64).reshape(-1, 2),
            )
