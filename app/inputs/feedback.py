"""What people say of an answer: was it right, and what was it instead. Kept in the store."""

from __future__ import annotations

import difflib
import hashlib
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from kb.errors import InputError, NotFoundError
from kb.text.redact import redact
from kb.types.vocabulary import UNKNOWN

if TYPE_CHECKING:
    from kb.service import Service
    from kb.store import FeedbackRow

ID_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a person says of an answer: right or wrong, and what it was."""

    verdict: Literal["right", "wrong"]
    cause: str  # the cause the answer named
    actual: str = ""  # the cause it was, where known
    comment: str = ""
    entry: str = ""  # the entry it is about, if one
    diagnosis: str = ""  # id of the kept diagnosis or the conversation it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFeedback:
    """Feedback with its time (UTC, ISO 8601), its id, and the face it came through."""

    at: str
    feedback: Feedback
    id: str = ""
    source: str = "api"


def add_feedback(
    service: Service, feedback: Feedback, *, source: str, by: str = ""
) -> StoredFeedback:
    """Keep feedback; on return it is on the disk. `source` is the face it came through.

    `by` says who speaks of what, where that is known: of the same the last word replaces others.

    Raises:
        InputError: a cause is not known.
        StoreError: the store cannot be written.
    """
    identifier = _identifier(by) if by else secrets.token_hex(ID_BYTES)
    return _put(service, feedback, identifier=identifier, source=source)


def find_feedback(service: Service, by: str) -> StoredFeedback | None:
    """What `by` said last, as `add_feedback` names who speaks of what; None where nothing."""
    row = service.store.records.get_feedback(_identifier(by))
    return _stored(row) if row else None


def change_feedback(service: Service, identifier: str, feedback: Feedback) -> StoredFeedback:
    """Replace the feedback of that id; its face stays, its time is that of the change.

    Raises:
        InputError: a cause is not known.
        NotFoundError: there is no such feedback, or it was taken back.
        StoreError: the store cannot be written.
    """
    row = service.store.records.get_feedback(identifier)
    if row is None:
        raise _no_feedback(identifier)
    return _put(service, feedback, identifier=identifier, source=row.source)


def delete_feedback(service: Service, identifier: str) -> None:
    """Take feedback back: it counts nowhere from now on.

    Raises:
        NotFoundError: there is no such feedback, or it was taken back already.
        StoreError: the store cannot be written.
    """
    if not service.store.records.delete_feedback(identifier):
        raise _no_feedback(identifier)


def _no_feedback(identifier: str) -> NotFoundError:
    return NotFoundError(
        f"there is no feedback {identifier!r}",
        todo="check the id, or give the feedback again",
        reason="no_feedback",
        values={"id": identifier},
    )


def no_such_cause(identifier: str, known: Collection[str]) -> InputError:
    """The error of a cause that is none, with the ids that look like it, or all of them."""
    near = difflib.get_close_matches(identifier, known)
    return InputError(
        f"{identifier!r} is not a cause",
        todo=f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(known)}",
        reason="unknown_cause",
        values={"id": identifier, "near": ", ".join(near or known)},
    )


def _identifier(by: str) -> str:
    return hashlib.sha256(by.encode()).hexdigest()[: 2 * ID_BYTES]


def _put(service: Service, feedback: Feedback, *, identifier: str, source: str) -> StoredFeedback:
    known = service.knowledge.cause_by_id
    for value in (feedback.cause, feedback.actual):
        if value and value != UNKNOWN and value not in known:
            raise no_such_cause(value, known)
    redacted = replace(
        feedback,
        comment=redact(feedback.comment)[0],
        entry=redact(feedback.entry)[0],  # callers say what they like for an id
        diagnosis=redact(feedback.diagnosis)[0],
    )
    row = _row(redacted, identifier=identifier, at_s=time.time(), source=source)
    service.store.records.put_feedback(row)
    return _stored(row)


def read_feedback(service: Service) -> tuple[StoredFeedback, ...]:
    """All feedback, oldest first."""
    newest_first = service.store.records.list_feedback()
    return tuple(_stored(row) for row in reversed(newest_first))


def _row(feedback: Feedback, *, identifier: str, at_s: float, source: str) -> FeedbackRow:
    from kb.store import FeedbackRow

    return FeedbackRow(
        id=identifier,
        diagnosis_id=feedback.diagnosis,
        entry_id=feedback.entry,
        verdict=feedback.verdict,
        answered=feedback.cause,
        cause=feedback.actual,
        comment=feedback.comment,
        created_s=at_s,
        source=source,
    )


def _stored(row: FeedbackRow) -> StoredFeedback:
    feedback = Feedback(
        verdict="right" if row.verdict == "right" else "wrong",
        cause=row.answered,
        actual=row.cause,
        comment=row.comment,
        entry=row.entry_id,
        diagnosis=row.diagnosis_id,
    )
    at = datetime.fromtimestamp(row.created_s, UTC).isoformat(timespec="seconds")
    return StoredFeedback(at=at, feedback=feedback, id=row.id, source=row.source)
