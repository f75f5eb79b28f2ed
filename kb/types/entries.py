"""Values of the knowledge base: entries, their claims, filters and hits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kb.types.knowledge import Advice, Bilingual, Fix, Note, Source
from kb.types.vocabulary import ClaimStatus, EntryKind, Language, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of an entry with its standing; `about` is cause, fix, symptom or other."""

    about: str
    text: Bilingual
    status: ClaimStatus
    source: str = ""


# --- entries -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseClaim:
    """A cause an entry names, and how sure that is."""

    id: str
    status: ClaimStatus
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """What an entry is about, for filters and facets. Names are lower case, ops as printed."""

    frameworks: tuple[str, ...] = ()
    backend: str = ""
    ops: tuple[str, ...] = ()
    stage: Stage = "unknown"
    hardware: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled part of an entry in one language.

    `role` is symptoms, found, causes, fixes, verify, not_helped, practices, background, input (of
    an incident: what was handed in, as it stood; no part of it is searched) or other.
    """

    role: str
    title: str
    text: str
    language: Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The unit of retrieval: a piece of an entry. `id` is ``<entry id>#<number>``."""

    id: str
    entry_id: str
    role: str
    language: Language
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlace:
    """A rank that stood out in an incident, and where it ran; empty where that is not known.

    `rank` is None where a host or a GPU failed and nothing says which rank ran there. `gpu` is its
    number on the host, its PCI bus id, or both (`kb.text.gpu_names`).
    """

    rank: int | None
    host: str = ""
    gpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item of the knowledge base, whatever its origin.

    `id` is the case's slug, or ``<kind>-<first 16 hex digits of the content's SHA-256>``.
    `digest` is the SHA-256 of the source as read; `source_key` names where it came from (a path
    or URL): a changed file keeps its key and replaces its entry.

    Of an incident: `culprits` are the ranks that stood out, `labels` the team's own tags,
    `resolved_on` (ISO 8601, UTC) and `resolved_by` say when and by whom its outcome was written
    down first, `corrected_on` and `corrected_by` when and by whom it was last changed since,
    `own_cause` is its cause in a person's words where that is none of the known ones, `log_name`
    the name of its log's file, `merged` are the ids of incidents that were merged into it,
    `added_on` (likewise) is when the store took it in; the store sets it. `reading_digests` are
    those of what was read of its log, and of those merged into it: the same log has the same one,
    whichever way it came.
    """

    id: str
    kind: EntryKind
    language: Literal["zh", "en", "both"]
    title: Bilingual
    project: str
    url: str
    date: str
    status: ClaimStatus
    causes: tuple[CauseClaim, ...]
    fixes: tuple[Fix, ...]
    tags: Tags
    signature: tuple[str, ...]
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    source_key: str
    digest: str
    claims: tuple[Claim, ...] = ()
    sources: tuple[Source, ...] = ()
    author: str = ""
    resolved: bool = True
    culprits: tuple[RankPlace, ...] = ()
    labels: tuple[str, ...] = ()
    resolved_on: str = ""
    resolved_by: str = ""
    merged: tuple[str, ...] = ()
    added_on: str = ""
    reading_digests: tuple[str, ...] = ()
    own_cause: str = ""
    log_name: str = ""
    corrected_on: str = ""
    corrected_by: str = ""

    @property
    def input_text(self) -> str:
        """What an incident is diagnosed from again: what was handed in, else its symptoms."""
        roles = [section.role for section in self.sections]
        role = "input" if "input" in roles else "symptoms"
        return "\n".join(section.text for section in self.sections if section.role == role)


# --- search ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions on entries, applied before ranking; an empty tuple or string lets all pass."""

    causes: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    exclude_ids: tuple[str, ...] = ()


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An entry a search found. `score` is in [0, 1], higher is better; `why` says what matched.

    `role` and `snippet_language` are those of the section that `snippet` comes from.
    """

    entry_id: str
    kind: EntryKind
    title: Bilingual
    project: str
    url: str
    status: ClaimStatus
    cause: str
    score: float
    chunk_id: str
    snippet: str
    why: tuple[str, ...] = ()
    role: str = ""
    snippet_language: Language | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteHit:
    """A note that answers a question.

    `score` is in [0, 1], see `kb.search.notes`; `language` is the reader's.
    """

    note: Note
    score: float
    language: Language

    @property
    def title(self) -> str:
        """Its title in the reader's language."""
        return self.note.title.get(self.language)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits best first (ties by entry id), whether any passes the threshold, and facet counts.

    `settings` are the settings the question names or describes, best first; `notes` those that
    answer it, best first. `corrected` has the mistyped words of the question, each with the word
    that was searched for, `unknown` those that no entry has. Where nothing is similar enough,
    `missing` has the telling words of the question that the nearest entry lacks.
    """

    query: str
    hits: tuple[Hit, ...]
    similar_enough: bool
    facets: dict[str, dict[str, int]]
    took_ms: float
    settings: tuple[Advice, ...] = ()
    notes: tuple[NoteHit, ...] = ()
    corrected: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


# --- logs --------------------------------------------------------------------------------------
