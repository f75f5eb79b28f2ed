"""The database's shape: migrations, in order, never changed once released.

`PRAGMA user_version` counts the migrations applied; `PRAGMA application_id` marks the file as
ours. A migration is a tuple of statements run in one transaction.
"""

from __future__ import annotations

import sqlite3
import uuid

from kb.errors import StoreError

APPLICATION_ID = 0x544B4231  # "TKB1"

_ENTRIES = (
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
    "INSERT INTO meta VALUES ('seq', '0')",
)

_RECORDS = (
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
        source TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX feedback_diagnosis ON feedback (diagnosis_id)",
    "CREATE INDEX feedback_created ON feedback (created)",
    """CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        expires REAL,
        body BLOB NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX conversations_updated ON conversations (updated)",
)

_ANSWERED = ("ALTER TABLE feedback ADD COLUMN answered TEXT NOT NULL DEFAULT ''",)

_PREFERENCES = (
    """CREATE TABLE preferences (
        scope TEXT PRIMARY KEY, updated REAL NOT NULL, body BLOB NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE handled (key TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX handled_at ON handled (at)",
)

# hardware became a facet: entries written before get theirs out of their own content
_HARDWARE = (
    """INSERT OR IGNORE INTO tags (facet, value, entry, label)
    SELECT 'hardware', lower(trim(item.value)), entries.ordinal, trim(item.value)
    FROM entries, json_each(CAST(entries.body AS TEXT), '$.tags.hardware') AS item
    WHERE trim(item.value) <> ''""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _ENTRIES,
    _RECORDS,
    _ANSWERED,
    _PREFERENCES,
    _HARDWARE,
)


def migrate(connection: sqlite3.Connection, path: object) -> None:
    """Bring the database to the newest shape; a new file gets all of it.

    Raises:
        StoreError: the file belongs to another program or to a newer version of this one.
    """
    if _version(connection, path) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # another process may have migrated while we waited for the lock
        for number in range(_version(connection, path), len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('store_id', ?)", (uuid.uuid4().hex,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _version(connection: sqlite3.Connection, path: object) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if owner != APPLICATION_ID and (tables or version or owner):
        raise StoreError(
            f"{path} is a database of another program",
            todo="set TIMEOUT_KB_HOME to a folder of its own",
        )
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} has schema version {version}, this program knows {len(MIGRATIONS)}",
            todo="update timeout-kb, or set TIMEOUT_KB_HOME to another folder",
        )
    return version
