"""What faces keep beside the knowledge: diagnoses, feedback, conversations, settings by scope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

from kb.errors import NotFoundError
from kb.store.connection import Database
from kb.store.quota import KeptSize, kept_sizes, note_size
from kb.store.rows import FeedbackRow, StoredJson

_FEEDBACK = [field.name for field in fields(FeedbackRow)]  # the table's columns in their order


class Records:
    """Diagnoses, feedback and conversations by id."""

    def __init__(self, database: Database) -> None:
        """Read and write in `database`."""
        self._database = database

    def put_diagnosis(
        self,
        diagnosis_id: str,
        body: bytes,
        *,
        created_s: float,
        forget_before_s: float = -math.inf,
    ) -> None:
        """Keep a diagnosis (JSON); one with the same id is replaced, older ones are deleted.

        So are the oldest of all where a quota is used up (`kb.store.quota`).
        """
        with self._database.write() as connection:
            connection.execute("DELETE FROM diagnoses WHERE created < ?", (forget_before_s,))
            connection.execute(
                "INSERT INTO diagnoses VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
                "SET created = excluded.created, body = excluded.body",
                (diagnosis_id, created_s, body),
            )
            note_size(connection, "diagnoses", diagnosis_id, size=len(body), at_s=created_s)

    def get_diagnosis(self, diagnosis_id: str) -> StoredJson:
        """The diagnosis with that id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT id, created, created, NULL, body FROM diagnoses WHERE id = ?",
                (diagnosis_id,),
            ).fetchone()
        return _record("diagnosis", diagnosis_id, row)

    def kept_sizes(self) -> tuple[KeptSize, ...]:
        """How much is kept of diagnoses and conversations, by kind."""
        with self._database.read() as connection:
            return kept_sizes(connection)

    def delete_diagnosis(self, diagnosis_id: str) -> bool:
        """Delete a diagnosis; whether it was there."""
        with self._database.write() as connection:
            return bool(
                connection.execute("DELETE FROM diagnoses WHERE id = ?", (diagnosis_id,)).rowcount
            )

    def put_feedback(self, feedback: FeedbackRow) -> None:
        """Keep a person's feedback; one with the same id is replaced."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM feedback WHERE id = ?", (feedback.id,))
            connection.execute(
                "INSERT INTO feedback VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(feedback)
            )

    def get_feedback(self, feedback_id: str) -> FeedbackRow | None:
        """The feedback with that id, or None."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT * FROM feedback WHERE id = ?", (feedback_id,)
            ).fetchone()
        return _feedback(row) if row else None

    def delete_feedback(self, feedback_id: str) -> bool:
        """Delete feedback; whether it was there."""
        with self._database.write() as connection:
            return bool(
                connection.execute("DELETE FROM feedback WHERE id = ?", (feedback_id,)).rowcount
            )

    def list_feedback(self) -> list[FeedbackRow]:
        """All feedback, newest first, ties by id."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM feedback ORDER BY created DESC, id")
            return [_feedback(row) for row in rows]

    def put_conversation(
        self,
        conversation_id: str,
        body: bytes,
        *,
        now_s: float,
        expires_s: float | None = None,
    ) -> None:
        """Keep a conversation (JSON); its time of creation stays that of the first write."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO conversations VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
                "SET updated = excluded.updated, expires = excluded.expires, body = excluded.body",
                (conversation_id, now_s, now_s, expires_s, body),
            )
            note_size(connection, "conversations", conversation_id, size=len(body), at_s=now_s)

    def get_conversation(self, conversation_id: str, *, now_s: float) -> StoredJson:
        """The conversation with that id.

        Raises:
            NotFoundError: there is none, or it has expired by `now_s`.
        """
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT id, created, updated, expires, body FROM conversations "
                "WHERE id = ? AND (expires IS NULL OR expires > ?)",
                (conversation_id, now_s),
            ).fetchone()
        return _record("conversation", conversation_id, row)

    def delete_conversation(self, conversation_id: str) -> bool:
        """Delete a conversation; whether it was there."""
        with self._database.write() as connection:
            return bool(
                connection.execute(
                    "DELETE FROM conversations WHERE id = ?", (conversation_id,)
                ).rowcount
            )

    def delete_expired(self, *, now_s: float) -> int:
        """Delete the conversations that expired by `now_s`; returns how many."""
        with self._database.write() as connection:
            return connection.execute(
                "DELETE FROM conversations WHERE expires <= ?", (now_s,)
            ).rowcount


def _feedback(row: Sequence[Any]) -> FeedbackRow:
    return FeedbackRow(**dict(zip(_FEEDBACK, row, strict=True)))


def _record(
    kind: str, record_id: str, row: tuple[str, float, float, float | None, bytes] | None
) -> StoredJson:
    if row is None:
        raise NotFoundError(f"there is no {kind} {record_id!r}")
    return StoredJson(id=row[0], created_s=row[1], updated_s=row[2], expires_s=row[3], body=row[4])


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
                "INSERT INTO preferences VALUES (?, ?, ?) ON CONFLICT (scope) DO UPDATE "
                "SET updated = excluded.updated, body = excluded.body",
                (scope, now_s, body),
            )

    def claim(self, *keys: str, now_s: float, keep_s: float) -> bool:
        """Take all of `keys`: True once, False when one of them was taken in the last `keep_s`.

        On return it is on the disk: of several callers, in any process, one gets True. Keys
        older than `keep_s` seconds are forgotten.
        """
        with self._database.write() as connection:
            connection.execute("DELETE FROM handled WHERE at < ?", (now_s - keep_s,))
            taken = connection.executemany(
                "INSERT INTO handled VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
                [(key, now_s) for key in sorted(set(keys))],
            )
            return taken.rowcount == len(set(keys))
