"""Entries that people deleted: for some days they can be brought back."""

from __future__ import annotations

import msgspec

from kb.store.connection import Database
from kb.types.entries import Entry

RESTORABLE_DAYS = 30
_DAY_S = 86_400.0
_ENTRY = msgspec.json.Decoder(Entry)


class DeletedEntries:
    """The last version of deleted entries by id; nothing else reads them.

    Times are seconds since the epoch.
    """

    def __init__(self, database: Database) -> None:
        """Read and write in `database`."""
        self._database = database

    def put(self, entry: Entry, *, now_s: float) -> None:
        """Keep an entry that is being deleted; an earlier one with its id is replaced."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO deleted_entries VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
                "SET at = excluded.at, body = excluded.body",
                (entry.id, now_s, msgspec.json.encode(entry)),
            )

    def get(self, entry_id: str, *, now_s: float) -> Entry | None:
        """The entry as it was; None where it was not deleted in the last `RESTORABLE_DAYS`."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT body FROM deleted_entries WHERE id = ? AND at >= ?",
                (entry_id, _oldest_s(now_s)),
            ).fetchone()
        return _ENTRY.decode(row[0]) if row else None

    def forget(self, *entry_ids: str, now_s: float) -> None:
        """Delete these for good, and those that can be brought back no longer."""
        with self._database.read() as connection:
            old = connection.execute(
                "SELECT id FROM deleted_entries WHERE at < ?", (_oldest_s(now_s),)
            )
            ids = {*entry_ids, *(row[0] for row in old)}
        if not ids:  # the usual case, which writes nothing
            return
        with self._database.write() as connection:
            connection.executemany(
                "DELETE FROM deleted_entries WHERE id = ?", [(entry_id,) for entry_id in ids]
            )


def _oldest_s(now_s: float) -> float:
    return now_s - RESTORABLE_DAYS * _DAY_S
