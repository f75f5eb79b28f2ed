"""What people set through a face, by scope, and the deliveries a face has handled already."""

from __future__ import annotations

from kb.store.connect import Database


class Preferences:
    """Settings by scope (a chat channel, say) and keys that may be taken once."""

    def __init__(self, database: Database) -> None:
        """Read and write in `database`."""
        self._database = database

    def get(self, scope: str) -> bytes | None:
        """What was set for `scope` (JSON), or None where nothing was."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT body FROM preferences WHERE scope = ?", (scope,)
            ).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, scope: str, body: bytes, *, now_s: float) -> None:
        """Set (JSON) for `scope`; what was set before is replaced."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO preferences VALUES (?, ?, ?)", (scope, now_s, body)
            )

    def claim(self, *keys: str, now_s: float, keep_s: float) -> bool:
        """Take all of `keys`: True once, False when one of them was taken in the last `keep_s`.

        On return it is on the disk: of several callers, in any process, one gets True. Keys
        older than `keep_s` seconds are forgotten.
        """
        with self._database.write() as connection:
            connection.execute("DELETE FROM handled WHERE at < ?", (now_s - keep_s,))
            before = connection.total_changes
            connection.executemany(
                "INSERT OR IGNORE INTO handled VALUES (?, ?)", [(key, now_s) for key in keys]
            )
            return connection.total_changes - before == len(set(keys))
