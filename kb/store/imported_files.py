"""Files that were imported: what was in them then, and which entries they gave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from kb.store.connection import Database
from kb.store.statements import merged_into

_IDS = msgspec.json.Decoder(tuple[str, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """A file as it was read.

    Attributes:
        key: names the file.
        digest: SHA-256 of its content.
        reader: what read it; another reader may see more.
        entries: ids of the entries it gave.
    """

    key: str
    digest: str
    reader: str
    entries: tuple[str, ...]


class ImportedFiles:
    """The files whose import is done, so that the same run again need not read them."""

    def __init__(self, database: Database) -> None:
        """Read and write in `database`."""
        self._database = database

    def put(self, files: Iterable[ImportedFile]) -> None:
        """Note files whose entries are stored."""
        rows = [
            (file.key, file.digest, file.reader, msgspec.json.encode(file.entries))
            for file in files
        ]
        with self._database.write() as connection:
            connection.executemany(
                "INSERT INTO imported_files VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE "
                "SET digest = excluded.digest, reader = excluded.reader, "
                "entries = excluded.entries",
                rows,
            )

    def entries_of(self, key: str, digest: str, reader: str) -> tuple[str, ...] | None:
        """The entries of a file that was imported as it is, by that reader; else None.

        None too where one of its entries is gone: the file gives it anew.
        """
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT entries FROM imported_files WHERE key = ? AND digest = ? AND reader = ?",
                (key, digest, reader),
            ).fetchone()
            if row is None:
                return None
            ids = _IDS.decode(row[0])
            known = "SELECT 1 FROM entries WHERE id = ?"
            for entry_id in ids:
                there = connection.execute(known, (entry_id,)).fetchone()
                if not there and not merged_into(connection, entry_id):
                    return None
        return ids
