"""The database as a SQLite file: one writer at a time, many readers, errors people can act on.

`PRAGMA user_version` states the version of the shape; `PRAGMA application_id` marks the file as
ours.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import msgspec

from kb.errors import StoreError
from kb.files.file_system import check_local
from kb.files.state_folder import locked, make_state_folder
from kb.store import quota
from kb.store.connection import Connection

DATABASE = "kb.sqlite3"  # in the state folder
APPLICATION_ID = 0x544B4231  # "TKB1"
VERSION = 1  # raise it with every change below

STATEMENTS = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # AUTOINCREMENT: a number is never used twice, so whoever knows it knows what stands there
    """CREATE TABLE entries (
        ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        source_key TEXT NOT NULL UNIQUE,
        digest TEXT NOT NULL,
        day INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        content BLOB NOT NULL,
        body BLOB NOT NULL
    )""",
    "CREATE INDEX entries_seq ON entries (seq)",
    """CREATE TABLE tags (
        facet TEXT NOT NULL,
        value TEXT NOT NULL,
        entry INTEGER NOT NULL REFERENCES entries (ordinal) ON DELETE CASCADE,
        label TEXT NOT NULL,
        PRIMARY KEY (facet, value, entry)
    ) WITHOUT ROWID""",
    "CREATE INDEX tags_entry ON tags (entry)",
    """CREATE TABLE chunks (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        entry INTEGER NOT NULL REFERENCES entries (ordinal) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        role TEXT NOT NULL,
        language TEXT NOT NULL,
        text TEXT NOT NULL
    )""",
    "CREATE INDEX chunks_entry ON chunks (entry)",
    "CREATE INDEX chunks_seq ON chunks (seq)",
    "CREATE TABLE models (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE vectors (
        model INTEGER NOT NULL REFERENCES models (number) ON DELETE CASCADE,
        chunk INTEGER NOT NULL REFERENCES chunks (number) ON DELETE CASCADE,
        vector BLOB NOT NULL,
        PRIMARY KEY (model, chunk)
    ) WITHOUT ROWID""",
    "CREATE INDEX vectors_chunk ON vectors (chunk)",
    # what an index built earlier has to forget
    "CREATE TABLE removed_entries (ordinal INTEGER PRIMARY KEY, id TEXT, seq INTEGER NOT NULL)",
    "CREATE INDEX removed_entries_seq ON removed_entries (seq)",
    "CREATE TABLE removed_chunks (number INTEGER PRIMARY KEY, seq INTEGER NOT NULL)",
    "CREATE INDEX removed_chunks_seq ON removed_chunks (seq)",
    """CREATE TABLE diagnoses (
        id TEXT PRIMARY KEY, created REAL NOT NULL, body BLOB NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX diagnoses_created ON diagnoses (created)",
    """CREATE TABLE feedback (
        id TEXT PRIMARY KEY,
        diagnosis_id TEXT NOT NULL,
        entry_id TEXT NOT NULL,
        verdict TEXT NOT NULL,
        cause TEXT NOT NULL,
        comment TEXT NOT NULL,
        created REAL NOT NULL,
        source TEXT NOT NULL,
        answered TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX feedback_created ON feedback (created)",
    """CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        expires REAL,
        body BLOB NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX conversations_updated ON conversations (updated)",
    """CREATE TABLE preferences (
        scope TEXT PRIMARY KEY, updated REAL NOT NULL, body BLOB NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE handled (key TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX handled_at ON handled (at)",
    "INSERT INTO meta VALUES ('seq', '0')",
)

# Tables that files of this version may lack: made when such a file is opened.
LATER_TABLES = (
    """CREATE TABLE IF NOT EXISTS deleted_entries (
        id TEXT PRIMARY KEY, at REAL NOT NULL, body BLOB NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS imported_files (
        key TEXT PRIMARY KEY, digest TEXT NOT NULL, reader TEXT NOT NULL, entries BLOB NOT NULL
    ) WITHOUT ROWID""",
    *quota.TABLES,
)

# The last number an entry or a chunk ever had, by table.
LAST_NUMBERS = {
    "entries": "SELECT coalesce(max(n), 0) FROM (SELECT max(ordinal) AS n FROM entries "
    "UNION ALL SELECT max(ordinal) FROM removed_entries) AS used",
    "chunks": "SELECT coalesce(max(n), 0) FROM (SELECT max(number) AS n FROM chunks "
    "UNION ALL SELECT max(number) FROM removed_chunks) AS used",
}

BUSY_TIMEOUT_S = 30.0  # how long a writer waits for another process; an ingest batch takes seconds
CACHE_KIB = 16 * 1024  # page cache a connection: the tag tables of 100k entries
_FOLDER = "make the folder writable, or set TIMEOUT_KB_HOME to one that is"
DAMAGED = (
    "put the latest backup in its place with `timeout-kb doctor --repair` (`timeout-kb backup` "
    "makes backups); without one move the file away and run `timeout-kb ingest` again over your "
    "sources (`sqlite3 FILE .recover` saves what is readable)"
)
_DISK = "free space on that disk and try again; nothing was changed"
_WAIT = "try again when it is done"
_TODO: dict[int, tuple[str, str, str]] = {  # what is wrong, what to do, the error's reason
    sqlite3.SQLITE_NOTADB: ("is not a database, or is damaged", DAMAGED, "store_damaged"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", DAMAGED, "store_damaged"),
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


class SqliteDatabase:
    """A SQLite file in WAL mode with a pool of connections; safe to use from many threads."""

    def __init__(self, path: Path) -> None:
        """Remember the path; nothing is opened yet."""
        self.path = path
        self.name = str(path)
        self._idle: list[sqlite3.Connection] = []
        self._write_lock = threading.Lock()
        self._closed = False

    def prepare(self) -> str:
        """Make the file and its tables, or those that it lacks; returns its identity.

        Raises:
            StoreError: the file is damaged, newer or another program's, the folder cannot be
                written or lies on a network file system; the message says what to do.
        """
        check_local(self.path.parent)
        try:
            make_state_folder(self.path.parent)
        except OSError as error:
            raise StoreError(
                f"{self.path.parent}: {error.strerror}",
                todo="make the folder writable, or set TIMEOUT_KB_HOME to one that is",
            ) from error
        with self.errors(), closing(self.connect()) as connection:
            prepare(connection, self.path)
            query = "SELECT value FROM meta WHERE key = 'store_id'"
            row = connection.execute(query).fetchone()
            if row is None:
                raise damaged(self.path, "it has lost its id")
            return str(row[0])

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
    def write(self, *, alone: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection in a write transaction: all of it happens or nothing."""
        with self.errors(), self._write_lock, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise

    def lock(
        self, name: str, *, shared: bool = False, wait: bool = True
    ) -> AbstractContextManager[bool]:
        """A lock on the file of that name below the state folder."""
        return locked(self.path.parent / name, shared=shared, wait=wait)

    def wait(self, limit_s: float) -> None:
        """So many seconds: who shares the file sees every change with the next search."""
        time.sleep(limit_s)

    def keep_numbers(self, connection: Connection) -> None:
        """Use no number again that was written or removed."""
        for table, query in LAST_NUMBERS.items():
            (last,) = connection.execute(query).fetchone()
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last))

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
        except (sqlite3.Error, msgspec.DecodeError, UnicodeDecodeError) as error:
            known = _TODO.get(_error_code(error))
            if known is None:
                todo = "please report this as a bug"
                raise StoreError(f"{self.path}: {error}", todo=todo) from error
            what, todo, reason = known
            values = {"path": str(self.path), "why": str(error)}
            message = f"{self.path} {what} ({error})"
            raise StoreError(message, todo=todo, reason=reason, values=values) from error


def damaged(path: Path, why: str) -> StoreError:
    """The refusal of a database that is not as it was written."""
    values = {"path": str(path), "why": why}
    message = f"{path} is damaged ({why})"
    return StoreError(message, todo=DAMAGED, reason="store_damaged", values=values)


def _error_code(error: Exception) -> int:
    """SQLite's code of a failure; what was written as text or JSON and is none is damage, too."""
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return code & 0xFF
    damage = not isinstance(error, sqlite3.Error) or "decode to UTF-8" in str(error)
    return sqlite3.SQLITE_CORRUPT if damage else sqlite3.SQLITE_ERROR


def prepare(connection: sqlite3.Connection, path: object) -> None:
    """Give a new file its tables, and an older one those that it lacks.

    Raises:
        StoreError: the file belongs to another program or to another version of this one.
    """
    if not require_ours(connection, path):
        _make_tables(connection, path)
    for statement in LATER_TABLES:
        connection.execute(statement)
    quota.adopt(connection)


def _make_tables(connection: sqlite3.Connection, path: object) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # another process may have made them while we waited for the lock
        if not require_ours(connection, path):
            for statement in STATEMENTS:
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (uuid.uuid4().hex,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def require_ours(connection: sqlite3.Connection, path: object) -> bool:
    """Whether the file has its tables; False for an empty one.

    Raises:
        StoreError: the file belongs to another program or to another version of this one.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if owner != APPLICATION_ID and (tables or version or owner):
        raise StoreError(
            f"{path} is a database of another program",
            todo="set TIMEOUT_KB_HOME to a folder of its own",
        )
    if owner == APPLICATION_ID and version != VERSION:
        raise StoreError(
            f"{path} has schema version {version}, this program has {VERSION}",
            todo="run the timeout-kb that made it, or set TIMEOUT_KB_HOME to another folder "
            "and run `timeout-kb ingest` over your sources",
            reason="store_version",
            values={"path": str(path), "version": str(version), "wanted": str(VERSION)},
        )
    return version == VERSION
