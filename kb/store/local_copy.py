"""The entries of a shared database once more, in a file of this machine.

What a search and a diagnosis read of entries is read here while the server cannot be reached. The
copy follows the changes by their numbers; it holds no vectors, diagnoses or conversations.
"""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager
from pathlib import Path

from kb.store.connection import Connection, Database
from kb.store.database import SqliteDatabase
from kb.store.statements import BATCH, MERGED, last_seq, marks, select_in, set_seq

_ORIGIN = "copy_of"  # key of `meta`
_STORE_ID = "SELECT value FROM meta WHERE key = 'store_id'"
_ENTRIES = "ordinal, id, source_key, digest, day, seq, content, body"
_TAGS = "facet, value, entry, label"
_CHUNKS = "number, id, entry, seq, role, language, text"


class LocalCopy:
    """A copy of the entries of a database; safe for several threads and processes."""

    def __init__(self, path: Path) -> None:
        """Use the file at `path`, made if missing.

        Raises:
            StoreError: it cannot be written.
        """
        self._file = SqliteDatabase(path)
        self._file.prepare()

    @classmethod
    def of(cls, address: str, folder: Path) -> LocalCopy:
        """The copy in `folder` of the database at an address, which no name in it gives away."""
        digest = hashlib.sha256(address.encode()).hexdigest()[:16]
        return cls(folder / f"entries-{digest}.sqlite3")

    def origin(self) -> str:
        """The identity of the database it was made of; empty where it holds nothing yet."""
        with self._file.read() as copy:
            row = copy.execute("SELECT value FROM meta WHERE key = ?", (_ORIGIN,)).fetchone()
        return str(row[0]) if row else ""

    def belong_to(self, origin: str) -> None:
        """Hold entries of the database `origin`; those of another one go."""
        if self.origin() in ("", origin):
            return
        with self._file.write() as copy:
            copy.execute("DELETE FROM entries")
            copy.execute("DELETE FROM meta WHERE key = ?", (_ORIGIN,))
            set_seq(copy, 0)

    def read(self) -> AbstractContextManager[Connection]:
        """A connection to the copy in a read transaction."""
        return self._file.read()

    def follow(self, database: Database) -> None:
        """Bring it up to the last change of `database`.

        Raises:
            StoreError: one of both cannot be read or written; the copy is as it was.
        """
        with self._file.write() as copy, database.read() as source:
            seq, newest = last_seq(copy), last_seq(source)
            if seq == newest:
                return
            if seq > newest:  # an earlier state was put back there
                copy.execute("DELETE FROM entries")
                seq = -1
            gone = source.execute("SELECT ordinal FROM removed_entries WHERE seq > ?", (seq,))
            copy.executemany("DELETE FROM entries WHERE ordinal = ?", gone.fetchall())
            _add_entries(source, copy, seq)
            copy.execute("DELETE FROM meta WHERE substr(key, 1, ?) = ?", (len(MERGED), MERGED))
            merged = "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ?"
            rows = source.execute(merged, (len(MERGED), MERGED)).fetchall()
            copy.executemany("INSERT INTO meta VALUES (?, ?)", rows)
            set_seq(copy, newest)
            copy.execute("DELETE FROM meta WHERE key = ?", (_ORIGIN,))
            copy.execute(
                "INSERT INTO meta VALUES (?, ?)",
                (_ORIGIN, *source.execute(_STORE_ID).fetchone()),
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _add_entries(source: Connection, copy: Connection, seq: int) -> None:
    """Copy the entries that came after change `seq`, batch by batch."""
    query = f"SELECT {_ENTRIES} FROM entries WHERE seq > ? AND ordinal > ? ORDER BY ordinal LIMIT ?"  # noqa: S608 - constants
    after = 0
    while rows := source.execute(query, (seq, after, BATCH)).fetchall():
        ordinals = [row[0] for row in rows]
        after = ordinals[-1]
        for table, columns, found in (
            ("entries", _ENTRIES, rows),
            ("tags", _TAGS, select_in(source, _of("tags", _TAGS), ordinals)),
            ("chunks", _CHUNKS, select_in(source, _of("chunks", _CHUNKS), ordinals)),
        ):
            width = columns.split(", ")
            copy.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks(width)})", found)  # noqa: S608 - constants


def _of(table: str, columns: str) -> str:
    return f"SELECT {columns} FROM {table} WHERE entry IN ({{}})"  # noqa: S608 - constants
