"""What the HTTP API takes and gives, beside the values of `kb.types` it passes on as they are.

Requests are msgspec structs: decoding them is the check. Responses are frozen dataclasses, encoded
by msgspec in the order of their fields; FastAPI reads the same types for the OpenAPI document.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from app.inputs.feedback import StoredFeedback
from app.render.errors import why_refused
from kb.chat.types import Turn
from kb.incidents.records import IncidentRecord
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis
from kb.types.entries import CauseClaim, Claim, Entry, Filters, RankPlace, Section, Tags
from kb.types.knowledge import Bilingual, Fix, Note, Source
from kb.types.vocabulary import ClaimStatus, EntryKind, Language, NoteStatus

if TYPE_CHECKING:
    from ingest.types import ImportReport

MAX_CAUSES = 19  # there are no more cause ids
MAX_LIMIT = 100  # entries a page
MAX_QUERY = 10_000  # characters; longer text is a log and goes to /v1/diagnose
MAX_BATCH = 32  # logs in one batch: more are better sent side by side
VERSION = r"^[0-9][0-9A-Za-z.+-]{0,31}$"

V = TypeVar("V", bound="EntrySummary")
Text = Annotated[str, Meta(min_length=1, pattern=r"\S", description="Log, description, or both.")]
Top = Annotated[int, Meta(ge=1, le=MAX_CAUSES, description="How many causes to give.")]
Torch = Annotated[str, Meta(pattern=VERSION, description="torch version, if the log lacks it.")]


class DiagnoseRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/diagnose`` as JSON."""

    text: Text
    lang: Language | None = None
    top: Top | None = None
    torch: Torch | None = None


class BatchRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/diagnose/batch``: independent logs, answered in the same order."""

    items: Annotated[tuple[DiagnoseRequest, ...], Meta(min_length=1, max_length=MAX_BATCH)]


class SearchRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/search``."""

    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY, pattern=r"\S")]
    filters: Filters = Filters()
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT)] = 10
    lang: Language | None = None


class LintRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/lint``: settings, a launch script, a configuration."""

    text: Text
    lang: Language | None = None
    torch: Torch | None = None


class ChatRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/chat``: a message, or a saved diagnosis to talk about, or both."""

    message: Annotated[str, Meta(description="A question, a log, or both.")] = ""
    conversation: Annotated[
        str, Meta(max_length=200, description="The id of one to go on with; empty: a new one.")
    ] = ""
    diagnosis: Annotated[
        str, Meta(max_length=200, description="The id of a saved diagnosis to talk about.")
    ] = ""
    lang: Language | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation so far, oldest turn first. `created_s` is seconds since the epoch."""

    id: str
    language: Language | None
    created_s: float
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error (RFC 9457). `todo` is the next step; `request_id` finds the request in the logs."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    todo: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnswer:
    """Answer to one item of a batch: a diagnosis or the problem with it."""

    diagnosis: Diagnosis | None
    problem: Problem | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """Answers in the order of the items."""

    items: tuple[BatchAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySummary:
    """An entry in a list."""

    id: str
    kind: EntryKind
    title: Bilingual
    project: str
    url: str
    date: str
    status: ClaimStatus
    causes: tuple[CauseClaim, ...]
    tags: Tags
    resolved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSummary:
    """A note in a list."""

    id: str
    title: Bilingual
    status: NoteStatus
    frameworks: tuple[str, ...]
    settings: tuple[str, ...]
    causes: tuple[str, ...]
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDetail(EntrySummary):
    """All of an entry a reader needs: without search chunks and the place it was read from."""

    language: str
    fixes: tuple[Fix, ...]
    signature: tuple[str, ...]
    sections: tuple[Section, ...]
    claims: tuple[Claim, ...]
    sources: tuple[Source, ...]
    author: str
    digest: str
    labels: tuple[str, ...]
    culprits: tuple[RankPlace, ...]
    resolved_on: str
    resolved_by: str
    merged: tuple[str, ...]
    own_cause: str
    corrected_on: str
    corrected_by: str
    log_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """A page of entries; `next_offset` is None on the last one."""

    items: tuple[EntrySummary, ...]
    offset: int
    next_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentPage:
    """A page of incidents, of `total`; `next_offset` is None on the last one."""

    items: tuple[IncidentRecord, ...]
    total: int
    offset: int
    next_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackPage:
    """A page of feedback, oldest first; `next_offset` is None on the last one."""

    items: tuple[StoredFeedback, ...]
    offset: int
    next_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """The process answers."""

    status: str = "ok"


class NewEntry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/entries`` as JSON: a log or a write-up."""

    text: Text
    name: Annotated[
        str,
        Meta(
            pattern=r"^[\w-][\w.-]{0,99}$",
            description="A file name; its ending (.log .md .html .json) tells what the text is.",
        ),
    ] = "pasted.txt"


class ResolveRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/entries/{identifier}/resolve``: how the incident ended.

    One of `cause` and `own_cause` is needed.
    """

    cause: Annotated[str, Meta(description="An id of /v1/causes; empty where it is none.")] = ""
    own_cause: Annotated[str, Meta(max_length=300, description="It in your own words.")] = ""
    fix: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY, pattern=r"\S")]
    commands: Annotated[tuple[str, ...], Meta(max_length=20)] = ()
    url: Annotated[str, Meta(pattern=r"^(https?://\S+)?$", description="Its write-up.")] = ""


class EditRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``PATCH /v1/entries/{identifier}``: what changes; what is left out stays."""

    title: Annotated[str, Meta(min_length=1, max_length=300, pattern=r"\S")] | None = None
    labels: (
        Annotated[
            tuple[Annotated[str, Meta(min_length=1, max_length=60)], ...], Meta(max_length=20)
        ]
        | None
    ) = None
    cause: Annotated[str, Meta(min_length=1, description="An id of /v1/causes.")] | None = None
    fix: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY, pattern=r"\S")] | None = None
    commands: Annotated[tuple[str, ...], Meta(max_length=20)] | None = None
    url: Annotated[str, Meta(pattern=r"^(https?://\S+)?$", description="Its write-up.")] | None = (
        None
    )


class MergeRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/entries/{identifier}/merge``: incidents that were the same one."""

    ids: Annotated[tuple[str, ...], Meta(min_length=1, max_length=100)]


class FeedbackRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Body of ``POST /v1/feedback``: was the answer right, and if not, what was it?"""

    verdict: Literal["right", "wrong"]
    cause: Annotated[str, Meta(description="The cause the answer put first.")]
    actual: Annotated[str, Meta(description="The cause it was, where known.")] = ""
    comment: Annotated[str, Meta(max_length=MAX_QUERY)] = ""
    entry: Annotated[str, Meta(max_length=200, description="The entry it is about.")] = ""
    diagnosis: Annotated[
        str, Meta(max_length=200, description="The saved diagnosis or conversation it is about.")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFile:
    """A file that was not taken, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedEntries:
    """What became of an upload; `ids` are the entries it holds, new or known."""

    added: int
    updated: int
    unchanged: int
    ids: tuple[str, ...]
    refused: tuple[RefusedFile, ...]
    near_duplicates: tuple[tuple[str, str, float], ...]


def added_entries(report: ImportReport, words: Words) -> AddedEntries:
    """What became of an upload, in `words`."""
    return AddedEntries(
        added=report.added,
        updated=report.updated,
        unchanged=report.unchanged,
        ids=tuple(report.entries),
        refused=tuple(
            RefusedFile(
                name=Path(item.path).name,
                reason=why_refused(item.reason, words, code=item.code, values=item.values),
            )
            for item in report.refused
        ),
        near_duplicates=tuple(report.near_duplicates),
    )


def note_summary(note: Note) -> NoteSummary:
    """The summary of `note`."""
    return NoteSummary(**{field.name: getattr(note, field.name) for field in fields(NoteSummary)})


def entry_summary(entry: Entry) -> EntrySummary:
    """The summary of `entry`."""
    return _view(entry, EntrySummary)


def entry_detail(entry: Entry) -> EntryDetail:
    """The detail of `entry`."""
    return _view(entry, EntryDetail)


def _view(entry: Entry, kind: type[V]) -> V:
    return kind(**{field.name: getattr(entry, field.name) for field in fields(kind)})
