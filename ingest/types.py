"""The values ingest speaks in: a source, a document, a piece of text, the report of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from kb.errors import KBError
from kb.types import Entry, LogReading

SourceKind = Literal["page", "html", "markdown", "case", "json", "jsonl", "log"]
Outcome = Literal["stored", "known", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page or write-up after cleaning, as lines of simple Markdown.

    Headings start with ``#``, items with ``- `` or ``1. `` and two spaces a level, code stands in
    fences. `date` is ISO (``2025-05-20``) or empty.
    """

    title: str
    lines: tuple[str, ...]
    author: str = ""
    date: str = ""
    url: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A titled stretch of a document; `role` as in `kb.types.Section`."""

    role: str
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One point of a list: what it says, the points under it, and the code it shows."""

    title: str
    text: str = ""
    steps: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A source that was not imported and why, or what was done to one.

    Attributes:
        path: where it stands.
        reason: why, in words for the person; the next step too.
        code: names its labels in other languages: the error's `reason` (`kb.errors.KBError`), or
            the end of `note.<code>`; empty where there are none.
        values: what the labels are filled with.
    """

    path: str
    reason: str
    code: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


def refusal(place: str, error: KBError, path: Path) -> Refusal:
    """That an error kept `path` out; its name in front is left out, for the report has it."""
    reason = str(error).removeprefix(str(path)).removeprefix(path.name).lstrip(": ")
    if error.reason == error.usual_reason:  # tells nothing of this file in other languages
        return Refusal(place, reason, "not_taken", {"why": reason})
    values = {key: value for key, value in error.values.items() if key != "name"}
    return Refusal(place, reason, error.reason, values)


class NearDuplicate(NamedTuple):
    """Two entries that say nearly the same; `similarity` is an estimated Jaccard index, 0 to 1."""

    entry_id: str
    other_id: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run did. `notes` tell what was done to a source that did go in (or was left out)."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: tuple[Refusal, ...] = ()
    near_duplicates: tuple[NearDuplicate, ...] = ()
    notes: tuple[Refusal, ...] = ()
    entries: tuple[str, ...] = ()


class Sink(Protocol):
    """Where entries go: the store with its index."""

    def apply(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Store `entries` in one transaction, all or none; an entry replaces its `source_key`'s.

        Returns:
            Counts under ``added``, ``updated`` and ``unchanged``.

        Raises:
            KBError: the store cannot be written; nothing of the group is there.
        """


class LogReader(Protocol):
    """What ingest needs of the reader of logs."""

    def read_paths(self, paths: Sequence[Path]) -> LogReading:
        """Read log files of any size, compressed ones too."""

    def read_text(self, text: str) -> LogReading:
        """Read a text that may hold log lines."""


class Progress(Protocol):
    """Told how a run goes; the calls come in this order."""

    def start(self, total: int) -> None:
        """`total` sources are to be read."""

    def advance(self, name: str, outcome: Outcome) -> None:
        """One source is done."""

    def finish(self) -> None:
        """The run is over, also after an error."""


Redact = Callable[[str], tuple[str, int]]
