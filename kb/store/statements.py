"""The statements about entries that more than one method needs, each inside a transaction."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from kb.errors import InputError
from kb.knowledge.facets import day_number, day_range, entry_values, fold, wanted_values
from kb.store.connection import Connection
from kb.types.entries import Chunk, Entry, Filters

BATCH = 500  # rows or parameters at once: old SQLite builds allow 999 parameters
NEAREST = 3  # ids named when one is not found
NEAREST_POOL = 200  # ids compared for that, so a large store answers at once
# Fields of entries that the first homes do not have: where empty they are no part of the content,
# or every entry of an old home would count as changed.
_LATER_FIELDS = (
    *("culprits", "labels", "resolved_on", "resolved_by", "merged", "reading_digests"),
    *("own_cause", "corrected_on", "corrected_by", "log_name"),
)
_ENTRY = msgspec.json.Decoder(Entry)


def marks(values: Sequence[object]) -> str:
    """One question mark a value, for ``IN (...)``; nothing is in the list of none."""
    return ",".join("?" * len(values)) or "NULL"


def select_in(
    connection: Connection,
    query: str,
    numbers: Iterable[int] | Iterable[str],
    *parameters: object,
) -> Iterator[Any]:
    """Rows of a query whose last condition is ``IN ({})``, of ascending numbers batch by batch.

    `parameters` are those of the conditions before.
    """
    ordered = sorted(numbers)
    for start in range(0, len(ordered), BATCH):
        part = ordered[start : start + BATCH]
        yield from connection.execute(query.format(marks(part)), (*parameters, *part))


def last_seq(connection: Connection) -> int:
    """Number of the last change."""
    return int(connection.execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()[0])


def set_seq(connection: Connection, seq: int) -> None:
    """Make `seq` the number of the last change."""
    connection.execute("UPDATE meta SET value = ? WHERE key = 'seq'", (str(seq),))


EDITED = "incident:"
"""Begins the source key of an incident that people wrote in: its log no longer replaces it."""
MERGED = "merged:"  # begins the keys of `meta` that lead from a merged incident to the other


def merged_into(connection: Connection, entry_id: str) -> str:
    """The id of the incident that `entry_id` was merged into; empty where it was not."""
    row = connection.execute(
        "SELECT value FROM meta WHERE key = ?", (f"{MERGED}{entry_id}",)
    ).fetchone()
    return row[0] if row else ""


def put(connection: Connection, entry: Entry, seq: int) -> str:
    """Write one entry; returns ``added``, ``updated`` or ``unchanged``.

    An incident that people wrote in, or merged into another, is not written anew from its log.

    Raises:
        InputError: a text of it cannot be written as UTF-8.
    """
    try:
        content = _content_digest(entry)
        entry.source_key.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"entry {entry.id!a} holds a character that is none: {error.object[error.start]!a}",
            todo="read the file with errors='replace'",
        ) from error
    same_id = connection.execute(
        "SELECT content, source_key, body FROM entries WHERE id = ?", (entry.id,)
    ).fetchone()
    # what came from this source before under another id is gone, even if the new content is known
    former = connection.execute(
        "SELECT id FROM entries WHERE source_key = ? AND id <> ?", (entry.source_key, entry.id)
    ).fetchone()
    replaced = remove(connection, former[0], seq) if former else 0
    if same_id is None:
        known = bool(merged_into(connection, entry.id))
    else:
        edited = same_id[1].startswith(EDITED) and not entry.source_key.startswith(EDITED)
        known = edited or same_id[0] == content
    if known:
        return "updated" if replaced else "unchanged"
    replaced += remove(connection, entry.id, seq)
    if entry.kind == "incident":
        earlier = _ENTRY.decode(same_id[2]).added_on if same_id else ""
        entry = replace(entry, added_on=earlier or entry.added_on or utc_now())
    _insert(connection, entry, content, seq)
    return "updated" if replaced else "added"


def utc_now() -> str:
    """This moment in ISO 8601, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _content_digest(entry: Entry) -> bytes:
    values = msgspec.to_builtins(replace(entry, source_key=""))
    del values["added_on"]  # when it came is no part of what it says
    for name in _LATER_FIELDS:
        if not values[name]:
            del values[name]
    return hashlib.sha256(msgspec.json.encode(values)).digest()


def _insert(connection: Connection, entry: Entry, content: bytes, seq: int) -> None:
    # chunks have a table of their own, so they are not written twice
    body = msgspec.json.encode(replace(entry, chunks=()))
    connection.execute(
        "INSERT INTO entries (id, source_key, digest, day, seq, content, body) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (entry.id, entry.source_key, entry.digest, day_number(entry.date), seq, content, body),
    )
    query = "SELECT ordinal FROM entries WHERE id = ?"
    (ordinal,) = connection.execute(query, (entry.id,)).fetchone()
    connection.executemany(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [(f"{MERGED}{merged}", entry.id) for merged in entry.merged],
    )
    connection.executemany(
        "INSERT INTO tags (facet, value, entry, label) VALUES (?, ?, ?, ?)",
        [(facet, fold(value), ordinal, value) for facet, value in entry_values(entry)],
    )
    connection.executemany(
        "INSERT INTO chunks (id, entry, seq, role, language, text) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (chunk.id, ordinal, seq, chunk.role, chunk.language, chunk.text)
            for chunk in entry.chunks
        ],
    )


def remove(connection: Connection, entry_id: str, seq: int) -> int:
    """Delete an entry with its chunks and vectors and note what an index has to forget."""
    row = connection.execute("SELECT ordinal FROM entries WHERE id = ?", (entry_id,)).fetchone()
    if row is None:
        return 0
    connection.execute(
        "INSERT INTO removed_chunks SELECT number, ? FROM chunks WHERE entry = ?", (seq, row[0])
    )
    connection.execute("INSERT INTO removed_entries VALUES (?, ?, ?)", (row[0], entry_id, seq))
    connection.execute("DELETE FROM entries WHERE ordinal = ?", (row[0],))
    connection.execute(
        "DELETE FROM meta WHERE value = ? AND substr(key, 1, ?) = ?",
        (entry_id, len(MERGED), MERGED),
    )
    return 1


def read_entries(connection: Connection, rows: Sequence[Sequence[object]]) -> Iterator[Entry]:
    """Entries of (ordinal, body, …) rows, in their order, with their chunks."""
    entries: dict[Any, Entry] = {row[0]: _ENTRY.decode(row[1]) for row in rows}  # type: ignore[arg-type]
    chunks: dict[object, list[Chunk]] = {ordinal: [] for ordinal in entries}
    query = "SELECT entry, id, role, language, text FROM chunks WHERE entry IN ({}) ORDER BY number"
    for ordinal, chunk_id, role, language, text in select_in(connection, query, entries):
        entry_id = entries[ordinal].id
        chunks[ordinal].append(
            Chunk(id=chunk_id, entry_id=entry_id, role=role, language=language, text=text)
        )
    for ordinal, entry in entries.items():
        yield replace(entry, chunks=tuple(chunks[ordinal]))


def conditions(filters: Filters) -> tuple[str, list[object]]:
    """The filter as an SQL condition on `entries`, made of constants, and its parameters.

    Raises:
        InputError: a date of the filter cannot be read.
    """
    parts = ["1 = 1"]
    parameters: list[object] = []
    for facet, values in wanted_values(filters):
        parts.append(
            "ordinal IN (SELECT entry FROM tags "  # noqa: S608 - question marks only
            f"WHERE facet = ? AND value IN ({marks(values)}))"
        )
        parameters += [facet, *values]
    days = day_range(filters)
    if days is not None:
        parts.append("day BETWEEN ? AND ?")
        parameters += days
    if filters.exclude_ids:
        parts.append(f"id NOT IN ({marks(filters.exclude_ids)})")
        parameters += filters.exclude_ids
    return " AND ".join(parts), parameters


def nearest(connection: Connection, entry_id: str) -> list[str]:
    """Ids that look like one that is not there, the nearest first."""
    words = sorted(set(re.findall(r"\w{3,}", entry_id)), key=lambda word: (-len(word), word))
    pool: set[str] = set()
    for word in words[:NEAREST]:
        rows = connection.execute(
            "SELECT id FROM entries WHERE replace(id, ?, '') <> id ORDER BY id LIMIT ?",
            (word, NEAREST_POOL),
        )
        pool.update(row[0] for row in rows)
    if not pool:
        rows = connection.execute("SELECT id FROM entries ORDER BY id LIMIT ?", (NEAREST_POOL,))
        pool.update(row[0] for row in rows)
    return difflib.get_close_matches(entry_id, sorted(pool), n=NEAREST)
