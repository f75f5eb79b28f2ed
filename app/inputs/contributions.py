"""What people add through a face: write-ups and logs, feedback, and the life of an incident.

An incident is added from a log, resolved then or any time later, and found again. Its title, tags,
cause and fix can be changed, and incidents that were the same one can be merged.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from app.inputs.feedback import (
    Feedback,
    StoredFeedback,
    add_feedback,
    change_feedback,
    delete_feedback,
    find_feedback,
    no_such_cause,
    read_feedback,
)
from app.inputs.readings import incident_of
from app.inputs.uploads import upload_folder
from kb.errors import InputError, NotFoundError
from kb.logs.incident.hosts import distinct_places
from kb.store import EDITED, RESTORABLE_DAYS
from kb.text.language import detect_language
from kb.text.redact import redact, redact_name
from kb.types.entries import CauseClaim, Entry, Filters, Section
from kb.types.knowledge import Bilingual, Fix

if TYPE_CHECKING:
    from ingest.pipeline import Ingestor
    from ingest.types import ImportReport
    from kb.service import Service
    from kb.types.incident import LogReading

__all__ = [
    "RESTORABLE_DAYS",
    "Changes",
    "Feedback",
    "Resolution",
    "StoredFeedback",
    "add_feedback",
    "add_files",
    "add_reading",
    "add_text",
    "change_feedback",
    "delete",
    "delete_feedback",
    "edit",
    "find_feedback",
    "is_restorable",
    "merge",
    "outcome_of",
    "preload",
    "read_feedback",
    "resolve",
    "restore",
]

# In the state folder: an entry is read and written with nobody in between, or an outcome written
# down while it is being deleted would bring it back.
LOCK = "changes.lock"
MAX_TITLE = 300  # characters
MAX_LABEL = 60
MAX_LABELS = 20
MAX_MERGED = 100  # incidents merged at once
KEY_DIGITS = 16  # of the content's digest; the same length as in entry ids


@dataclass(frozen=True, slots=True)
class _UploadSink:
    """Stores uploads under their content: two people's ``job.log`` are two entries."""

    service: Service
    known: dict[str, str] = field(default_factory=dict)  # id of an upload → the stored incident's

    def apply(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Store `entries` and make them searchable; an incident that is stored stays as it is."""
        with self.service.store.lock(LOCK):
            self.known.update(_stored_incidents(self.service, entries))
            named = [
                replace(entry, source_key=f"upload:{entry.digest[:KEY_DIGITS]}")
                for entry in entries
                if entry.id not in self.known
            ]
            counts = Counter(self.service.apply(named) if named else {})
        counts["unchanged"] += len(entries) - len(named)
        return counts


def _stored_incidents(service: Service, entries: Sequence[Entry]) -> dict[str, str]:
    """Of `entries` the incidents that are stored under another id, with that id."""
    ids = {digest: entry.id for entry in entries for digest in entry.reading_digests}
    if not ids:
        return {}
    return {
        ids[digest]: stored.id
        for stored in service.store.iter_entries(Filters(kinds=("incident",)))
        for digest in stored.reading_digests
        if ids.get(digest, stored.id) != stored.id
    }


def add_files(service: Service, paths: Sequence[Path]) -> ImportReport:
    """Add files that will not stay where they are: redacted, tagged, searchable on return.

    Raises:
        InputError: none of them could be taken; the message has the first reason.
    """
    sink = _UploadSink(service)
    report = _ingestor(service, sink).ingest_paths(paths)
    if report.refused and not report.entries:
        first = report.refused[0]
        name = Path(first.path).name
        raise InputError(
            f"{name}: {first.reason}",
            todo="see what can be added in the README",
            reason=first.code,
            values={**first.values, "name": name},
        )
    ids = dict.fromkeys(sink.known.get(entry_id, entry_id) for entry_id in report.entries)
    return replace(report, entries=tuple(ids))


def _ingestor(service: Service, sink: _UploadSink) -> Ingestor:
    from ingest.pipeline import Ingestor

    return Ingestor(
        sink,
        service.reader,
        data=service.settings.data,
        summarise=service.summarise,
    )


def preload(service: Service) -> None:
    """Load what the first addition would load: half a second that nobody need wait for then."""
    _ingestor(service, _UploadSink(service))


def add_reading(
    service: Service, reading: LogReading, *, name: str, text: str = "", files: Sequence[str] = ()
) -> str:
    """Add the incident that a diagnosis was made of, once; returns its id.

    It is the same incident whether the log, its diagnosis or the link to that is added. `text` is
    the log where it is at hand, `files` are the names of the files it came in.

    Raises:
        InputError: it tells of no timeout and no error.
    """
    try:
        entry = incident_of(service, reading, name=name, text=text)
    except InputError as error:
        raise InputError(
            f"{name}: {error.what}",
            todo=error.todo,
            reason=error.reason,
            values={**error.values, "name": name},
        ) from error
    sink = _UploadSink(service)
    sink.apply([replace(entry, log_name=", ".join(map(redact_name, files))[:MAX_TITLE])])
    return sink.known.get(entry.id, entry.id)


def add_text(service: Service, text: str, *, name: str) -> ImportReport:
    """Add a pasted log or write-up; `name` is its file's name, whose ending tells its kind.

    Raises:
        InputError: it cannot be taken.
    """
    with upload_folder() as folder:
        return add_files(service, [folder.add_text(text, name=name)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How an incident ended: the cause, the fix, and where that is written up.

    `own_cause` is a cause in the person's words, in place of the id of a known one. Without a fix
    the incident stays open, or keeps the fix it has.
    """

    cause: str
    fix: str
    commands: tuple[str, ...] = ()
    url: str = ""
    own_cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is to be changed of an entry; None leaves it as it is.

    Of an outcome each part may be changed alone once there is one.
    """

    title: str | None = None
    labels: tuple[str, ...] | None = None
    cause: str | None = None
    fix: str | None = None
    commands: tuple[str, ...] | None = None
    url: str | None = None


def resolve(service: Service, entry_id: str, resolution: Resolution, *, by: str = "") -> Entry:
    """Write down the cause and the fix of an imported entry; it counts as confirmed from now on.

    `by` is who says so; the time is noted too, of a correction beside that of the first outcome.

    Raises:
        NotFoundError: there is no such entry.
        InputError: the entry is a shipped case, or the cause is not known.
    """
    with service.store.lock(LOCK):
        resolved = _resolved(service, _own_entry(service, entry_id), resolution, by)
        service.apply([resolved])
    return resolved


def outcome_of(entry: Entry) -> Resolution | None:
    """How an incident ended as somebody wrote it down; None where nobody did."""
    fix = next((fix for fix in entry.fixes if fix.id == _outcome_id(entry)), None)
    claim = next(iter(entry.causes), None)
    named = entry.kind == "incident" and claim is not None and claim.status == "confirmed"
    if not entry.own_cause and (claim is None or not (fix or named)):
        return None
    return Resolution(
        cause="" if entry.own_cause or claim is None else claim.id,
        fix=fix.title.en if fix else "",
        commands=fix.commands if fix else (),
        url=next(iter(fix.sources), "") if fix else "",
        own_cause=entry.own_cause,
    )


def edit(service: Service, entry_id: str, changes: Changes, *, by: str = "") -> Entry:
    """Change an imported entry; all of it is redacted before it is stored.

    Raises:
        NotFoundError: there is no such entry.
        InputError: the entry is a shipped case, the cause is not known, or a cause or a fix is
            given and the other is not there.
    """
    with service.store.lock(LOCK):
        entry = _own_entry(service, entry_id)
        if changes.title is not None:
            entry = _titled(entry, changes.title)
        if changes.labels is not None:
            entry = replace(entry, labels=_labels(changes.labels))
        outcome = (changes.cause, changes.fix, changes.commands, changes.url)
        if any(part is not None for part in outcome):
            entry = _resolved(service, entry, _changed_outcome(entry, changes), by)
        entry = replace(entry, source_key=_own_key(entry))
        service.apply([entry])
    return entry


def merge(service: Service, entry_id: str, others: Sequence[str]) -> Entry:
    """Merge incidents into one: `entry_id` stays, the ids of `others` lead to it.

    Its own outcome stands; where it has none, the first of theirs does. Tags and ranks of all are
    kept, and the log lines of those merged can be searched for.

    Raises:
        NotFoundError: there is no such entry.
        InputError: one is no incident, or there is nothing to merge.
    """
    with service.store.lock(LOCK):
        target = _incident(service, entry_id)
        merged = [_incident(service, other) for other in dict.fromkeys(others)]
        merged = [other for other in merged if other.id != target.id]
        if not merged:
            raise InputError(
                "there is no other incident to merge",
                todo="name the incidents that are the same as this one",
                reason="nothing_to_merge",
            )
        together = _together(target, merged)
        service.merge(together, [other.id for other in merged])
    return together


def _together(target: Entry, merged: Sequence[Entry]) -> Entry:
    from ingest.writeups import with_chunks

    every = (target, *merged)
    told = next((entry for entry in every if entry.kind == "incident" and entry.resolved), target)
    signature = dict.fromkeys(line for entry in every for line in entry.signature)
    sections = dict.fromkeys(section for entry in merged for section in entry.sections)
    outcome = [each for each in told.sections if each.role == "fixes"]
    own = [each for each in target.sections if each.role != "fixes"]
    more = [each for each in sections if each.role != "fixes" and each not in own]
    return with_chunks(
        replace(
            target,
            causes=told.causes,
            fixes=tuple(
                replace(fix, id=_outcome_id(target)) if fix.id == _outcome_id(told) else fix
                for fix in told.fixes
            ),
            status=told.status,
            resolved=told.resolved,
            resolved_on=told.resolved_on,
            resolved_by=told.resolved_by,
            own_cause=told.own_cause,
            corrected_on=told.corrected_on,
            corrected_by=told.corrected_by,
            url=target.url or told.url,
            signature=tuple(signature),
            sections=(*own, *more, *outcome),
            labels=tuple(dict.fromkeys(label for entry in every for label in entry.labels)),
            culprits=distinct_places(place for entry in every for place in entry.culprits),
            reading_digests=tuple(dict.fromkeys(d for e in every for d in e.reading_digests)),
            merged=tuple(
                dict.fromkeys((*target.merged, *(i for e in merged for i in (e.id, *e.merged))))
            ),
            source_key=_own_key(target),
        )
    )


def _titled(entry: Entry, text: str) -> Entry:
    """`entry` with a title in its writer's words."""
    from ingest.writeups import with_chunks

    title = " ".join(redact(text)[0].split())[:MAX_TITLE]
    return with_chunks(replace(entry, title=Bilingual(zh=title, en=title))) if title else entry


def _labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Tags as they are stored: redacted, in one line each, each once, in their order."""
    tidy = (" ".join(redact(label)[0].split())[:MAX_LABEL] for label in labels)
    return tuple(dict.fromkeys(filter(None, tidy)))[:MAX_LABELS]


def _changed_outcome(entry: Entry, changes: Changes) -> Resolution:
    """The outcome of `entry` with what changes of it.

    Raises:
        InputError: a cause or a fix is missing.
    """
    cause = entry.causes[0].id if entry.resolved and entry.causes else ""
    earlier = outcome_of(entry) or Resolution(cause=cause, fix="")
    outcome = Resolution(
        cause=changes.cause or earlier.cause,
        fix=changes.fix or earlier.fix,
        commands=earlier.commands if changes.commands is None else changes.commands,
        url=earlier.url if changes.url is None else changes.url,
        own_cause="" if changes.cause else earlier.own_cause,
    )
    if not (outcome.cause or outcome.own_cause) or not outcome.fix:
        raise InputError(
            f"{entry.id} is not resolved: it has a cause and a fix together or neither",
            todo="give both",
            reason="half_outcome",
            values={"id": entry.id},
        )
    return outcome


def _outcome_id(entry: Entry) -> str:
    return f"{entry.id}/resolution"


def _own_key(entry: Entry) -> str:
    """The source key of an incident that people wrote in: no longer that of its log's file."""
    return f"{EDITED}{entry.id}" if entry.kind == "incident" else entry.source_key


def _resolved(service: Service, entry: Entry, resolution: Resolution, by: str) -> Entry:
    """`entry` with its outcome; what stood there of an earlier one is replaced.

    Raises:
        InputError: the cause is not known.
    """
    from ingest.writeups import with_chunks

    cause = service.knowledge.cause_by_id.get(resolution.cause)
    own_cause = "" if cause else " ".join(redact(resolution.own_cause)[0].split())[:MAX_TITLE]
    if cause is None and (resolution.cause or not own_cause):
        raise no_such_cause(resolution.cause, service.knowledge.cause_by_id)
    earlier = outcome_of(entry)
    text = redact(resolution.fix or (earlier.fix if earlier else ""))[0]
    url = redact(resolution.url)[0]
    language = detect_language(text or own_cause)
    fix = Fix(
        id=_outcome_id(entry),
        title=Bilingual(zh=text, en=text),
        steps=(),
        commands=tuple(redact(command)[0] for command in resolution.commands),
        status="confirmed",
        sources=(url,) if url else (),
    )
    replaced = {resolution.cause, earlier.cause} if earlier else {resolution.cause}
    claims = (CauseClaim(id=cause.id, status="confirmed", source=url),) if cause else ()
    title = cause.title.get(language) if cause else own_cause
    told = Section(
        role="fixes", title=title if text else "", text=text or own_cause, language=language
    )
    resolved = replace(
        entry,
        causes=(*claims, *(each for each in entry.causes if _stays(each, replaced, entry))),
        own_cause=own_cause,
        fixes=(*([fix] if text else []), *(each for each in entry.fixes if each.id != fix.id)),
        sections=(
            *(each for each in entry.sections if each.role != "fixes"),
            *([told] if told.text else []),
        ),
        source_key=_own_key(entry),
    )
    if text:
        resolved = replace(resolved, status="confirmed", resolved=True)
    return with_chunks(_dated(resolved, earlier, redact(by)[0]))


def _dated(entry: Entry, earlier: Resolution | None, by: str) -> Entry:
    """`entry` with when and by whom its outcome was written down: what was said first stays."""
    if not entry.resolved or outcome_of(entry) == earlier:
        return entry
    if entry.resolved_on:
        return replace(entry, corrected_on=_now(), corrected_by=by)
    return replace(entry, resolved_on=_now(), resolved_by=by)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _stays(cause: CauseClaim, replaced: Set[str], entry: Entry) -> bool:
    """Whether a cause stands beside the outcome: what an incident's log only suggested does not."""
    suggested = entry.kind == "incident" and cause.status == "unverified"
    return cause.id not in replaced and not suggested


def delete(service: Service, entry_id: str, *, for_good: bool = False) -> None:
    """Delete an imported entry; for `RESTORABLE_DAYS` `restore` brings it back.

    One that is deleted `for_good`, now or after it was deleted, does not come back.

    Raises:
        NotFoundError: there is no such entry.
        InputError: the entry is a shipped case.
    """
    deleted = service.store.deleted
    with service.store.lock(LOCK):
        if for_good and is_restorable(service, entry_id):
            deleted.forget(entry_id, now_s=time.time())
            return
        entry = _own_entry(service, entry_id)
        if entry.id != entry_id:  # of one that was merged nothing but its id is left
            raise NotFoundError(
                f"{entry_id} was merged into {entry.id}",
                todo="delete that one instead",
                reason="was_merged",
                values={"id": entry_id, "other": entry.id},
            )
        if not for_good:
            deleted.put(entry, now_s=time.time())
        service.delete([entry_id])


def restore(service: Service, entry_id: str) -> Entry:
    """Bring a deleted entry back as it was.

    Raises:
        NotFoundError: it was not deleted in the last `RESTORABLE_DAYS`.
    """
    with service.store.lock(LOCK):
        entry = service.store.deleted.get(entry_id, now_s=time.time())
        if entry is None:
            raise NotFoundError(
                f"there is no deleted entry {entry_id!r}",
                todo=f"deleted entries can be restored for {RESTORABLE_DAYS} days",
                reason="not_deleted",
                values={"id": entry_id, "days": str(RESTORABLE_DAYS)},
            )
        if entry.source_key in service.store.digests():  # its file was imported again since
            entry = replace(entry, source_key=f"{EDITED}{entry.id}")
        service.apply([entry])
        service.store.deleted.forget(entry_id, now_s=time.time())
    return entry


def is_restorable(service: Service, entry_id: str) -> bool:
    """Whether `restore` would bring an entry of that id back."""
    return service.store.deleted.get(entry_id, now_s=time.time()) is not None


def _incident(service: Service, entry_id: str) -> Entry:
    entry = _own_entry(service, entry_id)
    if entry.kind != "incident":
        raise InputError(
            f"{entry_id} is no incident",
            todo="only incidents are merged",
            reason="no_incident",
            values={"id": entry_id},
        )
    return entry


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
