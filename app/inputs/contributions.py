"""What people add through a face: write-ups and logs, the outcome of an incident, feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.inputs.feedback import Feedback, StoredFeedback, add_feedback, read_feedback
from app.inputs.uploads import upload_folder
from kb.errors import InputError
from kb.files.state_folder import locked
from kb.text.language import detect_language
from kb.text.redact import redact
from kb.types.entries import CauseClaim, Entry, Section
from kb.types.knowledge import Bilingual, Cause, Fix

if TYPE_CHECKING:
    from ingest.pipeline import Ingestor
    from ingest.types import ImportReport
    from kb.service import Service

__all__ = [
    "Feedback",
    "Resolution",
    "StoredFeedback",
    "add_feedback",
    "add_files",
    "add_text",
    "delete",
    "preload",
    "read_feedback",
    "resolve",
]

# In the state folder: an entry is read and written with nobody in between, or an outcome written
# down while it is being deleted would bring it back.
LOCK = "changes.lock"
KEY_DIGITS = 16  # of the content's digest; the same length as in entry ids


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


def add_files(service: Service, paths: Sequence[Path]) -> ImportReport:
    """Add files that will not stay where they are: redacted, tagged, searchable on return.

    Raises:
        InputError: none of them could be taken; the message has the first reason.
    """
    report = _ingestor(service).ingest_paths(paths)
    if report.refused and not report.entries:
        first = report.refused[0]
        name = Path(first.path).name
        raise InputError(
            f"{name}: {first.reason}",
            todo="see what can be added in the README",
            reason=first.code,
            values={**first.values, "name": name},
        )
    return report


def _ingestor(service: Service) -> Ingestor:
    from ingest.pipeline import Ingestor

    return Ingestor(
        _UploadSink(service),
        service.reader,
        data=service.settings.data,
        leading_cause=service.leading_cause,
    )


def preload(service: Service) -> None:
    """Load what the first addition would load: half a second that nobody need wait for then."""
    _ingestor(service)


def add_text(service: Service, text: str, *, name: str) -> ImportReport:
    """Add a pasted log or write-up; `name` is its file's name, whose ending tells its kind.

    Raises:
        InputError: it cannot be taken.
    """
    with upload_folder() as folder:
        return add_files(service, [folder.add_text(text, name=name)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How an incident ended: the cause, the fix, and where that is written up."""

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
    with locked(service.settings.home / LOCK):
        entry = _own_entry(service, entry_id)
        cause = service.knowledge.cause_by_id.get(resolution.cause)
        if cause is None:
            raise InputError(
                f"{resolution.cause!r} is not a cause",
                todo="see /v1/causes",
                reason="no_cause",
                values={"id": resolution.cause},
            )
        resolved = _resolved(entry, resolution, cause)
        service.apply([resolved])
    return resolved


def _resolved(entry: Entry, resolution: Resolution, cause: Cause) -> Entry:
    """`entry` with its outcome; what stood there of an earlier one is replaced."""
    from ingest.writeups import with_chunks

    text, url = redact(resolution.fix)[0], redact(resolution.url)[0]
    language = detect_language(text)
    fix = Fix(
        id=f"{entry.id}/resolution",
        title=Bilingual(zh=text, en=text),
        steps=(),
        commands=tuple(redact(command)[0] for command in resolution.commands),
        status="confirmed",
        sources=(url,) if url else (),
    )
    claim = CauseClaim(id=resolution.cause, status="confirmed", source=url)
    section = Section(role="fixes", title=cause.title.get(language), text=text, language=language)
    return with_chunks(
        replace(
            entry,
            causes=(claim, *(each for each in entry.causes if _stays(each, claim, entry))),
            fixes=(fix, *(other for other in entry.fixes if other.id != fix.id)),
            sections=(*(each for each in entry.sections if each.role != "fixes"), section),
            status="confirmed",
            resolved=True,
        )
    )


def _stays(cause: CauseClaim, outcome: CauseClaim, entry: Entry) -> bool:
    """Whether a cause stands beside the outcome: what an incident's log only suggested does not."""
    suggested = entry.kind == "incident" and cause.status == "unverified"
    return cause.id != outcome.id and not suggested


def delete(service: Service, entry_id: str) -> None:
    """Delete an imported entry.

    Raises:
        NotFoundError: there is no such entry.
        InputError: the entry is a shipped case.
    """
    with locked(service.settings.home / LOCK):
        _own_entry(service, entry_id)
        service.delete([entry_id])


def _own_entry(service: Service, entry_id: str) -> Entry:
    entry = service.entry(entry_id)
    if entry.kind == "case":
        raise InputError(
            f"{entry_id} is a reviewed case",
            todo="cases change in data/cases, not here",
            reason="reviewed_case",
            values={"id": entry_id},
        )
    return entry
