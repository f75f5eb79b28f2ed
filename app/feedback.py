"""What people say of an answer: was it right, and what was it instead. Kept in the store."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from kb.errors import InputError
from kb.logs.redact import redact
from kb.types import UNKNOWN

if TYPE_CHECKING:
    from kb.service import Service
    from kb.store import Feedback as Row

OLD_FILE = "feedback.jsonl"  # in the state folder: where feedback stood before the store had it
ID_BYTES = 12
ALL = -1  # rows: no limit
LINE_S = 1e-6  # seconds between lines of the old file, whose times are whole seconds


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
    known = service.knowledge.cause_by_id
    for name, value in (("cause", feedback.cause), ("actual", feedback.actual)):
        if value and value != UNKNOWN and value not in known:
            raise InputError(
                f"{name} {value!r} is not a cause",
                todo="see /v1/causes",
                reason="no_cause",
                values={"id": value},
            )
    _import_old(service)
    redacted = replace(
        feedback,
        comment=redact(feedback.comment)[0],
        entry=redact(feedback.entry)[0],  # callers say what they like for an id
        diagnosis=redact(feedback.diagnosis)[0],
    )
    identifier = _digest(by.encode()) if by else secrets.token_hex(ID_BYTES)
    row = _row(redacted, identifier=identifier, at_s=time.time(), source=source)
    service.store.records.put_feedback(row)
    return _stored(row)


def read_feedback(service: Service) -> tuple[StoredFeedback, ...]:
    """All feedback, oldest first."""
    _import_old(service)
    newest_first = service.store.records.list_feedback(limit=ALL)
    return tuple(_stored(row) for row in reversed(newest_first))


def _digest(content: bytes) -> str:
    """An id that the same content has again."""
    return hashlib.sha256(content).hexdigest()[: 2 * ID_BYTES]


def _row(feedback: Feedback, *, identifier: str, at_s: float, source: str) -> Row:
    from kb.store import Feedback as Row

    return Row(
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


def _stored(row: Row) -> StoredFeedback:
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


def _import_old(service: Service) -> None:
    """Take the feedback of the old file into the store, once; the file stays under another name.

    Ids come from the lines themselves, so an import cut off half-way repeats without doubles.
    """
    path = service.settings.home / OLD_FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    for number, line in enumerate(content.splitlines()):
        try:
            old = msgspec.json.decode(line, type=StoredFeedback)
            at_s = datetime.fromisoformat(old.at).timestamp() + number * LINE_S
        except (msgspec.DecodeError, ValueError):
            continue  # cut off by a crash while it was written; the renamed file still has it
        identifier = _digest(b"%d %b" % (number, line))
        row = _row(old.feedback, identifier=identifier, at_s=at_s, source=old.source)
        service.store.records.put_feedback(row)
    digest = hashlib.sha256(content).hexdigest()[:8]
    with contextlib.suppress(OSError):  # another process renamed it, or the next one will
        path.rename(path.with_name(f"feedback.imported-{digest}.jsonl"))
