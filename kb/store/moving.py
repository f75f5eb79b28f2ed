"""A knowledge base copied from one database to another, whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kb.errors import StoreError
from kb.store.connection import Connection, Database
from kb.store.statements import BATCH, marks

# Table, columns, and its key as the first so many of them; those referred to come first.
_TABLES = (
    ("meta", "key, value", 1),
    ("entries", "ordinal, id, source_key, digest, day, seq, content, body", 1),
    ("tags", "facet, value, entry, label", 3),
    ("chunks", "number, id, entry, seq, role, language, text", 1),
    ("models", "number, name", 1),
    ("vectors", "model, chunk, vector", 2),
    ("removed_entries", "ordinal, id, seq", 1),
    ("removed_chunks", "number, seq", 1),
    ("diagnoses", "id, created, body", 1),
    ("conversations", "id, created, updated, expires, body", 1),
    (
        "feedback",
        "id, diagnosis_id, entry_id, verdict, cause, comment, created, source, answered",
        1,
    ),
    ("preferences", "scope, updated, body", 1),
    ("handled", "key, at", 1),
    ("deleted_entries", "id, at, body", 1),
    ("imported_files", "key, digest, reader, entries", 1),
    ("kept_sizes", "kind, id, owner, at, bytes", 2),
)
_OWN = frozenset(
    {"store_id", "schema_version", "seq"}
)  # keys of `meta` that are not copied as such
_WRITTEN = ("entries", "diagnoses", "conversations", "feedback", "preferences", "removed_entries")
_MODULUS = 1 << 256


@dataclass(slots=True)
class _TableDigest:
    """How many rows there are, and a digest of them in any order."""

    rows: int = 0
    digest: int = field(default=0, repr=False)

    def add(self, row: Sequence[object]) -> None:
        """Count a row: the digest is the sum of its rows' hashes."""
        self.rows += 1
        values = [value.hex() if isinstance(value, bytes) else value for value in row]
        content = hashlib.sha256(msgspec.json.encode(values)).digest()
        self.digest = (self.digest + int.from_bytes(content, "big")) % _MODULUS


def move_store(
    source: Database,
    target: Database,
    *,
    without: Sequence[str] = (),
    finish: Callable[[Connection], None] = lambda _connection: None,
) -> dict[str, int]:
    """Copy all that `source` holds into the empty `target`, in one transaction; both are prepared.

    Every table is compared by its number of rows and a digest before anything counts; ended
    before, the target is as empty as it was. The target keeps its own identity.

    Args:
        source: is left as it is.
        target: an empty database.
        without: scopes of preferences that stay behind.
        finish: done last, in the transaction of the target.

    Returns:
        The number of rows by table.

    Raises:
        StoreError: the target is not empty, one of both cannot be read or written, or what was
            written is not what was read.
    """
    with source.read() as reading, target.write() as writing:
        if any(writing.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in _WRITTEN):  # noqa: S608 - constants
            raise StoreError(
                f"{target.name} is not empty",
                todo="name an empty database, or move its knowledge base away first",
                reason="store_not_empty",
                values={"path": target.name},
            )
        counts: dict[str, int] = {}
        for table, columns, keys in _TABLES:
            counts[table] = _copied(reading, writing, (table, columns, keys), without, target.name)
        seq = reading.execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()
        writing.execute("UPDATE meta SET value = ? WHERE key = 'seq'", seq)
        target.keep_numbers(writing)
        finish(writing)
    return counts


def _copied(
    reading: Connection,
    writing: Connection,
    table: tuple[str, str, int],
    without: Sequence[str],
    name: str,
) -> int:
    """Copy a table; returns its number of rows."""
    read, written = _TableDigest(), _TableDigest()
    place = marks(table[1].split(", "))
    insert = f"INSERT INTO {table[0]} ({table[1]}) VALUES ({place})"  # noqa: S608 - constants
    for rows in _batches(reading, table, without):
        for row in rows:
            read.add(row)
        writing.executemany(insert, rows)
    for rows in _batches(writing, table, without):
        for row in rows:
            written.add(row)
    if read != written:
        raise StoreError(
            f"{name} did not take {table[0]} as it was: {read.rows} rows, then {written.rows}",
            todo="nothing was moved; please report this as a bug",
            reason="store_not_moved",
            values={"path": name, "table": table[0]},
        )
    return read.rows


def _batches(
    connection: Connection, table: tuple[str, str, int], without: Sequence[str]
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a table in the order of its key, without those that stay behind."""
    name, columns, width = table
    keys = columns.split(", ")[:width]
    order = f"ORDER BY {', '.join(keys)} LIMIT {BATCH}"
    query = f"SELECT {columns} FROM {name} "  # noqa: S608 - constants
    rows = connection.execute(f"{query} {order}").fetchall()
    later = f"{query} WHERE ({', '.join(keys)}) > ({marks(keys)}) {order}"
    behind = {"meta": _OWN, "preferences": frozenset(without)}.get(name, frozenset())
    while rows:
        last = rows[-1][:width]
        yield [tuple(map(_value, row)) for row in rows if row[0] not in behind]
        rows = connection.execute(later, last).fetchall()


def _value(value: object) -> object:
    """A value as every database keeps it: without NUL in a text."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
