"""The values ingest speaks in: a document, a point of a list, a format, the report of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from ingest.wordlists import WordLists
from kb.errors import KBError
from kb.types.answer import LogSummary
from kb.types.entries import Entry
from kb.types.incident import LogReading


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
class ListItem:
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
class ImportReport:
    """What a run did. `notes` tell what was done to a source that did go in (or was left out).

    `known_files` were imported before as they are and not read again; their entries count as
    unchanged.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: tuple[Refusal, ...] = ()
    near_duplicates: tuple[NearDuplicate, ...] = ()
    notes: tuple[Refusal, ...] = ()
    entries: tuple[str, ...] = ()
    known_files: int = 0


class Sink(Protocol):
    """Where entries go: the store with its index."""

    def apply(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Store `entries` in one transaction, all or none; an entry replaces its `source_key`'s.

        Returns:
            Counts under ``added``, ``updated`` and ``unchanged``.

        Raises:
            KBError: the store cannot be written; nothing of the group is there.
        """


class OutputReader(Protocol):
    """What ingest needs of the reader of logs."""

    def read_paths(self, paths: Sequence[Path]) -> LogReading:
        """Read log files of any size, compressed ones too."""

    def read_text(self, text: str) -> LogReading:
        """Read a text that may hold log lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTools:
    """What the readers of formats work with.

    Attributes:
        words: the word lists of `data/ingest`.
        reader: reads logs and the output quoted in write-ups.
        refused: the list a reader adds parts of a file to that it cannot take.
        notes: the list it adds to what was done to a file that did go in.
        summarise: gives a log's title and the cause it suggests; None: the title names the file.
    """

    words: WordLists
    reader: OutputReader
    refused: list[Refusal]
    notes: list[Refusal]
    summarise: Callable[[LogReading], LogSummary] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """What a file gives; `refused` and `notes` are whole once the last entry was taken."""

    path: Path
    entries: Iterable[Entry]
    refused: Sequence[Refusal]
    notes: Sequence[Refusal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of files.

    Attributes:
        read: yields the entries of a file; raises KBError where it cannot be taken, and what was
            yielded before stays.
        suffixes: endings of names, lower case with their dot.
        recognises: whether a text that begins so is of this format; asked where the ending of the
            name is of no format, or of several.
    """

    read: Callable[[Path, ImportTools], Iterator[Entry]]
    suffixes: frozenset[str] = frozenset()
    recognises: Callable[[str, WordLists], bool] = lambda _head, _words: False
