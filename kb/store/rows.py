"""The values the store hands out besides entries."""

from __future__ import annotations

from dataclasses import dataclass

from kb.types.entries import CauseClaim, Tags
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import ClaimStatus, EntryKind, Language


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkChanges:
    """Numbers of what appeared and vanished after a sequence number, ascending.

    Numbers are never used twice and what stands under one never changes: a changed entry gets
    new numbers. `entries` and `removed_entries` are ordinals of entries.
    """

    chunks: tuple[int, ...]
    removed_chunks: tuple[int, ...]
    entries: tuple[int, ...]
    removed_entries: tuple[int, ...]
    last_seq: int


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as stored: its number, its entry's ordinal, and what is searched in it."""

    number: int
    entry: int
    chunk_id: str
    role: str
    language: Language
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHead:
    """The part of an entry a list of hits shows, read without its sections."""

    id: str
    kind: EntryKind
    title: Bilingual
    project: str
    url: str
    status: ClaimStatus
    date: str
    causes: tuple[CauseClaim, ...]
    tags: Tags
    signature: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJson:
    """A stored diagnosis or conversation: `body` is JSON; times are seconds since the epoch.

    `expires_s` is None for what never expires.
    """

    id: str
    created_s: float
    updated_s: float
    expires_s: float | None
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRow:
    """What a person said about an answer. `created_s` is seconds since the epoch.

    `verdict` is the person's judgement (``right``, ``wrong``, ...), `answered` the cause the answer
    named, `cause` the one they hold right, `source` the face it came through.
    """

    id: str
    diagnosis_id: str
    entry_id: str
    verdict: str
    cause: str
    comment: str
    created_s: float
    source: str
    answered: str = ""
