"""Connections to the database: one writer at a time, many readers, errors a person can act on."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kb.errors import StoreError

BUSY_TIMEOUT_S = 30.0  # how long a writer waits for another process; an ingest batch takes seconds
CACHE_KIB = 16 * 1024  # page cache a connection: the tag tables of 100k entries
_FOLDER = "make the folder writable, or set TIMEOUT_KB_HOME to one that is"
_DAMAGED = (
    "move the file away and run `timeout-kb ingest` again over your sources "
    "(`sqlite3 FILE .recover` saves what is readable)"
)
_DISK = "free space on that disk and try again; nothing was changed"
_WAIT = "try again when it is done"
_TODO: dict[int, tuple[str, str, str]] = {  # what is wrong, what to do, the error's reason
    sqlite3.SQLITE_NOTADB: ("is not a database, or is damaged", _DAMAGED, "store_damaged"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _DAMAGED, "store_damaged"),
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", _DISK, "store_full"),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written: the disk is full or failing",
        _DISK,
        "store_full",
    ),
    sqlite3.SQLITE_READONLY: ("cannot be written", _FOLDER, "store_rights"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened or created", _FOLDER, "store_rights"),
    sqlite3.SQLITE_PERM: ("may not be opened", _FOLDER, "store_rights"),
    sqlite3.SQLITE_BUSY: ("is being written by another process", _WAIT, "store_busy"),
    sqlite3.SQLITE_LOCKED: ("is being written by another thread", _WAIT, "store_busy"),
}


class Database:
    """A SQLite file in WAL mode with a pool of connections; safe to use from many threads."""

    def __init__(self, path: Path) -> None:
        """Remember the path; nothing is opened yet."""
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._write_lock = threading.Lock()
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection in a read transaction: every statement sees the same state."""
        with self.errors(), self._connection() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A connection in a write transaction: all of it happens or nothing."""
        with self.errors(), self._write_lock, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise

    def connect(self) -> sqlite3.Connection:
        """A new connection, set up."""
        connection = sqlite3.connect(
            self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # FULL: a reported write survives a power cut; ingest commits per batch, so it is cheap
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA cache_size = {-CACHE_KIB}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close every connection that is not in use; those in use close when they come back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise StoreError(f"{self.path} was closed", todo="open the store again")
        try:
            connection = self._idle.pop()  # atomic: threads never get the same one
        except IndexError:
            connection = self.connect()
        try:
            yield connection
        finally:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn SQLite's failures into `StoreError` with what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise self.explain(error) from error

    def explain(self, error: sqlite3.Error) -> StoreError:
        """The failure in words a person can act on."""
        code = getattr(error, "sqlite_errorcode", None)
        known = _TODO.get(code & 0xFF) if isinstance(code, int) else None
        if known is None:
            return StoreError(f"{self.path}: {error}", todo="please report this as a bug")
        what, todo, reason = known
        values = {"path": str(self.path), "why": str(error)}
        return StoreError(f"{self.path} {what} ({error})", todo=todo, reason=reason, values=values)
