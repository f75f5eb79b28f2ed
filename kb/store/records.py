"""What faces keep beside the knowledge: diagnoses, feedback, conversations."""

from __future__ import annotations

import math

from kb.errors import NotFoundError
from kb.store.connect import Database
from kb.store.rows import Feedback, Record

LIST_LIMIT = 100  # rows a list returns unless told


class Records:
    """Diagnoses, feedback and conversations by id. Lists are newest first, ties by id."""

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
        """Keep a diagnosis (JSON); one with the same id is replaced, older ones are deleted."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM diagnoses WHERE created < ?", (forget_before_s,))
            connection.execute(
                "INSERT OR REPLACE INTO diagnoses VALUES (?, ?, ?)",
                (diagnosis_id, created_s, body),
            )

    def get_diagnosis(self, diagnosis_id: str) -> Record:
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

    def delete_diagnosis(self, diagnosis_id: str) -> bool:
        """Delete a diagnosis; whether it was there."""
        with self._database.write() as connection:
            return bool(
                connection.execute("DELETE FROM diagnoses WHERE id = ?", (diagnosis_id,)).rowcount
            )

    def list_diagnoses(self, *, limit: int = LIST_LIMIT) -> list[Record]:
        """The newest diagnoses."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id, created, created, NULL, body FROM diagnoses "
                "ORDER BY created DESC, id LIMIT ?",
                (limit,),
            )
            return [_record("diagnosis", row[0], row) for row in rows]

    def put_feedback(self, feedback: Feedback) -> None:
        """Keep a person's feedback; one with the same id is replaced."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO feedback VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    feedback.id,
                    feedback.diagnosis_id,
                    feedback.entry_id,
                    feedback.verdict,
                    feedback.cause,
                    feedback.comment,
                    feedback.created_s,
                    feedback.source,
                    feedback.answered,
                ),
            )

    def get_feedback(self, feedback_id: str) -> Feedback:
        """The feedback with that id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT * FROM feedback WHERE id = ?", (feedback_id,)
            ).fetchone()
        if row is None:
            raise NotFoundError(f"there is no feedback {feedback_id!r}")
        return _feedback(row)

    def list_feedback(self, *, diagnosis_id: str = "", limit: int = LIST_LIMIT) -> list[Feedback]:
        """The newest feedback, of one diagnosis if named; all of it where `limit` is negative."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM feedback WHERE ? IN ('', diagnosis_id) "
                "ORDER BY created DESC, id LIMIT ?",
                (diagnosis_id, limit),
            )
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

    def get_conversation(self, conversation_id: str, *, now_s: float) -> Record:
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

    def list_conversations(self, *, now_s: float, limit: int = LIST_LIMIT) -> list[Record]:
        """The conversations last written to, without the expired ones."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id, created, updated, expires, body FROM conversations "
                "WHERE expires IS NULL OR expires > ? ORDER BY updated DESC, id LIMIT ?",
                (now_s, limit),
            )
            return [_record("conversation", row[0], row) for row in rows]

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


def _record(
    kind: str, record_id: str, row: tuple[str, float, float, float | None, bytes] | None
) -> Record:
    if row is None:
        raise NotFoundError(f"there is no {kind} {record_id!r}")
    return Record(id=row[0], created_s=row[1], updated_s=row[2], expires_s=row[3], body=row[4])


def _feedback(row: tuple[str, str, str, str, str, str, float, str, str]) -> Feedback:
    return Feedback(
        id=row[0],
        diagnosis_id=row[1],
        entry_id=row[2],
        verdict=row[3],
        cause=row[4],
        comment=row[5],
        created_s=row[6],
        source=row[7],
        answered=row[8],
    )
