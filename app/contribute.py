"""What people add through a face: write-ups and logs, the outcome of an incident, feedback."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from kb.errors import InputError, StoreError
from kb.logs.redact import redact
from kb.text import detect_language
from kb.types import Bilingual, CauseClaim, Entry, Fix, Section

if TYPE_CHECKING:
    from ingest.types import Report
    from kb.service import Service

KEY_DIGITS = 16  # of the content's digest; the same length as in entry ids
_APPENDING = threading.Lock()


@dataclass(frozen=True, slots=True)
class _UploadSink:
    """Stores uploads under their content: two people's ``job.log`` are two entries."""

    service: Service

    def apply(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Store `entries` and make them searchable."""
        named = [
            replace(entry, source_key=f"upload:{entry.digest[:KEY_DIGITS]}") for entry in entries
        ]
        return self.service.apply(named)


def add_files(service: Service, paths: Sequence[Path]) -> Report:
    """Add files that will not stay where they are: redacted, tagged, searchable on return.

    Raises:
        InputError: none of them could be taken; the message has the first reason.
    """
    from ingest.pipeline import Ingestor

    ingestor = Ingestor(_UploadSink(service), service.reader, redact, data=service.settings.data)
    report = ingestor.ingest_paths(paths)
    if report.refused and not report.entries:
        name, reason = Path(report.refused[0].path).name, report.refused[0].reason
        raise InputError(f"{name}: {reason}", todo="see what can be added in the README")
    return report


def add_text(service: Service, text: str, *, name: str) -> Report:
    """Add a pasted log or write-up; `name` is its file's name, whose ending tells its kind.

    Raises:
        InputError: it cannot be taken.
    """
    with tempfile.TemporaryDirectory(prefix="timeout-kb-") as folder:
        path = Path(folder, name)
        path.write_text(text, encoding="utf-8", errors="replace")
        return add_files(service, [path])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How an incident ended: the cause, what mended it, and where that is told."""

    cause: str
    fix: str
    commands: tuple[str, ...] = ()
    url: str = ""


def resolve(service: Service, entry_id: str, resolution: Resolution) -> Entry:
    """Write down the cause and the fix of an imported entry; it counts as confirmed from now on.

    Raises:
        NotFoundError: there is no such entry.
        InputError: the entry is a shipped case, or the cause is not known.
    """
    from ingest.writeups import with_chunks

    entry = service.entry(entry_id)
    if entry.kind == "case":
        raise InputError(
            f"{entry_id} is a reviewed case", todo="cases change in data/cases, not here"
        )
    cause = service.knowledge.cause_by_id.get(resolution.cause)
    if cause is None:
        raise InputError(f"{resolution.cause!r} is not a cause", todo="see /v1/causes")
    text = redact(resolution.fix)[0]
    language = detect_language(text)
    fix = Fix(
        id=f"{entry_id}/resolution",
        title=Bilingual(zh=text, en=text),
        steps=(),
        commands=tuple(redact(command)[0] for command in resolution.commands),
        status="confirmed",
        sources=(resolution.url,) if resolution.url else (),
    )
    kept = tuple(section for section in entry.sections if section.role != "fixes")
    others = tuple(claim for claim in entry.causes if claim.id != resolution.cause)
    resolved = replace(
        entry,
        causes=(
            CauseClaim(id=resolution.cause, status="confirmed", source=resolution.url),
            *others,
        ),
        fixes=(fix, *(other for other in entry.fixes if other.id != fix.id)),
        sections=(
            *kept,
            Section(role="fixes", title=cause.title.get(language), text=text, language=language),
        ),
        status="confirmed",
        resolved=True,
    )
    resolved = with_chunks(resolved)
    service.apply([resolved])
    return resolved


def delete(service: Service, entry_id: str) -> None:
    """Delete an imported entry.

    Raises:
        NotFoundError: there is no such entry.
        InputError: the entry is a shipped case.
    """
    if service.entry(entry_id).kind == "case":
        raise InputError(
            f"{entry_id} is a reviewed case", todo="cases change in data/cases, not here"
        )
    service.delete([entry_id])


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a person says of an answer: right or wrong, and what it was."""

    verdict: Literal["right", "wrong"]
    cause: str  # the cause the answer named
    actual: str = ""  # the cause it was, where known
    comment: str = ""
    entry: str = ""  # the entry it is about, if one


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFeedback:
    """Feedback with its time (UTC, ISO 8601)."""

    at: str
    feedback: Feedback


def feedback_path(home: Path) -> Path:
    """Where feedback is kept: one JSON object a line."""
    return home / "feedback.jsonl"


def add_feedback(path: Path, feedback: Feedback, *, causes: Iterable[str]) -> StoredFeedback:
    """Append feedback; on return it is on the disk.

    Raises:
        InputError: a cause is not one of `causes`.
        StoreError: the file cannot be written.
    """
    known = set(causes)
    for name, value in (("cause", feedback.cause), ("actual", feedback.actual)):
        if value and value not in known:
            raise InputError(f"{name} {value!r} is not a cause", todo="see /v1/causes")
    stored = StoredFeedback(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        feedback=replace(feedback, comment=redact(feedback.comment)[0]),
    )
    line = msgspec.json.encode(stored) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _APPENDING, path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", todo="check space and rights") from error
    return stored


def read_feedback(path: Path) -> tuple[StoredFeedback, ...]:
    """All feedback, oldest first; a line cut off by a crash is passed over."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=StoredFeedback))
        except msgspec.DecodeError:
            continue
    return tuple(found)
