"""How much is kept of diagnoses and conversations: by key, and in all; the oldest go first."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from kb.store.connection import Connection

MIB = 1024 * 1024
OWNER_BYTES = 256 * MIB  # of one key: some 10,000 diagnoses, or 1,000 long conversations
ALL_BYTES = 1024 * MIB  # of all, those without a key too

# By whose key the work at hand is done, empty without one. Set where a request comes in: what lies
# between, down to the store, does the same for everybody.
OWNER: ContextVar[str] = ContextVar("OWNER", default="")

# Beside the tables themselves, which older programs read as they are.
TABLES = (
    """CREATE TABLE IF NOT EXISTS kept_sizes (
        kind TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, at REAL NOT NULL,
        bytes INTEGER NOT NULL, PRIMARY KEY (kind, id)
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS kept_sizes_owner ON kept_sizes (owner, at, bytes)",
    "CREATE INDEX IF NOT EXISTS kept_sizes_at ON kept_sizes (at, bytes)",
    """CREATE TRIGGER IF NOT EXISTS diagnoses_gone AFTER DELETE ON diagnoses BEGIN
        DELETE FROM kept_sizes WHERE kind = 'diagnoses' AND id = OLD.id;
    END""",
    """CREATE TRIGGER IF NOT EXISTS conversations_gone AFTER DELETE ON conversations BEGIN
        DELETE FROM kept_sizes WHERE kind = 'conversations' AND id = OLD.id;
    END""",
)
_ADOPT = (
    """INSERT INTO kept_sizes
        SELECT 'diagnoses', id, '', created, length(body) FROM diagnoses
        WHERE 1 = 1 ON CONFLICT (kind, id) DO NOTHING""",
    """INSERT INTO kept_sizes
        SELECT 'conversations', id, '', updated, length(body) FROM conversations
        WHERE 1 = 1 ON CONFLICT (kind, id) DO NOTHING""",
)
_ANY = "SELECT (SELECT count(*) FROM diagnoses) + (SELECT count(*) FROM conversations)"
_DELETE = {
    "diagnoses": "DELETE FROM diagnoses WHERE id = ?",
    "conversations": "DELETE FROM conversations WHERE id = ?",
}
# The sum of sizes, and all of them oldest first: of one owner, or of everybody.
_OF_OWNER = (
    "SELECT sum(bytes) FROM kept_sizes WHERE owner = ?",
    "SELECT kind, id, bytes FROM kept_sizes WHERE owner = ? ORDER BY at, kind, id",
)
_OF_ALL = (
    "SELECT sum(bytes) FROM kept_sizes",
    "SELECT kind, id, bytes FROM kept_sizes ORDER BY at, kind, id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSize:
    """How many diagnoses or conversations (`kind`) are kept, and of how many bytes."""

    kind: str
    count: int
    bytes: int


def adopt(connection: Connection) -> None:
    """Note the sizes of what a program kept that knew no quota."""
    if connection.execute("SELECT 1 FROM kept_sizes LIMIT 1").fetchone():
        return
    if connection.execute(_ANY).fetchone()[0]:  # else nothing is written at each start
        for statement in _ADOPT:
            connection.execute(statement)


def note_size(
    connection: Connection, kind: str, identifier: str, *, size: int, at_s: float
) -> None:
    """Note what was just kept, and delete the oldest where it is too much; never what is new.

    What was begun with a key stays that key's, whoever goes on with it.
    """
    connection.execute(
        "INSERT INTO kept_sizes VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE "
        "SET at = excluded.at, bytes = excluded.bytes",
        (kind, identifier, OWNER.get(), at_s, size),
    )
    (owner,) = connection.execute(
        "SELECT owner FROM kept_sizes WHERE kind = ? AND id = ?", (kind, identifier)
    ).fetchone()
    if owner:
        _make_room(connection, _OF_OWNER, (owner,), OWNER_BYTES, (kind, identifier))
    _make_room(connection, _OF_ALL, (), ALL_BYTES, (kind, identifier))


def _make_room(
    connection: Connection,
    statements: tuple[str, str],
    values: tuple[str, ...],
    limit: int,
    newest: tuple[str, str],
) -> None:
    whole, oldest_first = statements
    (total,) = connection.execute(whole, values).fetchone()
    if total <= limit:
        return
    for kind, identifier, size in connection.execute(oldest_first, values).fetchall():
        if total <= limit:
            break
        if (kind, identifier) != newest:
            connection.execute(_DELETE[kind], (identifier,))
            total -= size


def kept_sizes(connection: Connection) -> tuple[KeptSize, ...]:
    """What is kept, by kind."""
    rows = connection.execute(
        "SELECT kind, count(*), sum(bytes) FROM kept_sizes GROUP BY kind ORDER BY kind"
    )
    return tuple(KeptSize(kind=kind, count=count, bytes=int(size)) for kind, count, size in rows)
