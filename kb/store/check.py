"""Whether a database file is whole, down to what stands in its entries."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kb.store.database import SqliteDatabase, damaged, require_ours
from kb.store.statements import BATCH, read_entries

CHECK_TIMEOUT_MS = 2_000  # who asks whether all is well does not wait for a writer


def check_database(path: Path) -> None:
    """Whether the database at `path` is whole, of this version, and can be written.

    Raises:
        StoreError: it is not; the message says what to do.
    """
    database = SqliteDatabase(path)
    with database.errors():
        connection = database.connect()
        try:
            connection.execute(f"PRAGMA busy_timeout = {CHECK_TIMEOUT_MS}")
            if require_ours(connection, path):
                check_connection(connection, path)
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
        finally:
            connection.close()


def check_connection(connection: sqlite3.Connection, path: Path, *, thorough: bool = False) -> int:
    """Count the entries of a database, each read; `path` names the file in errors.

    `thorough` compares indexes and references with their tables as well.

    Raises:
        StoreError: the file is damaged.
        msgspec.DecodeError: an entry is.
    """
    (first,) = connection.execute(
        "PRAGMA integrity_check(1)" if thorough else "PRAGMA quick_check(1)"
    ).fetchone()
    if first == "ok" and thorough and connection.execute("PRAGMA foreign_key_check").fetchone():
        first = "a reference leads nowhere"
    if first != "ok":
        raise damaged(path, str(first))
    count, after = 0, 0
    while rows := connection.execute(
        "SELECT ordinal, body FROM entries WHERE ordinal > ? ORDER BY ordinal LIMIT ?",
        (after, BATCH),
    ).fetchall():
        count += len(list(read_entries(connection, rows)))
        after = rows[-1][0]
    return count
