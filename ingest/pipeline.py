"""The run: paths in, entries in the store, a report out.

Entries go to the sink in groups, each one transaction. A file's entries are in one group (files of
thousands of threads excepted), so that whatever ends the run, a file is there as it was or as it
is, never half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ingest.duplicates import NearDuplicates
from ingest.files import find_sources
from ingest.formats import format_of
from ingest.types import (
    ImportReport,
    ImportTools,
    NearDuplicate,
    OutputReader,
    Refusal,
    Sink,
    refusal,
)
from ingest.wordlists import WordLists, word_lists
from kb.errors import KBError
from kb.log_lines import logger
from kb.types.answer import LogSummary
from kb.types.entries import Entry
from kb.types.incident import LogReading

GROUP = 64  # entries a transaction: enough to make its cost small, little to lose
MAX_GROUP = 1024  # entries of one file kept together; a longer file is committed in parts

OnProgress = Callable[[int, int, str], None]

log = logger()


@dataclass(slots=True)
class _Run:
    """What a run has done so far."""

    tools: ImportTools
    group: list[Entry] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # added, updated, unchanged
    pairs: list[NearDuplicate] = field(default_factory=list)
    entries: dict[str, str] = field(default_factory=dict)  # id → where it was found
    keys: set[str] = field(default_factory=set)
    duplicates: NearDuplicates = field(default_factory=NearDuplicates)


class Ingestor:
    """Imports files into a knowledge base.

    Args:
        sink: where entries go.
        reader: reads logs and the output quoted in write-ups.
        data: the `data/` folder, for the word lists.
        stored: gives what is in the knowledge base, to name near-duplicates of it; None: only
            the files of one run are compared.
        summarise: gives a log's title and the cause it suggests; None: the title names the file,
            and logs have no cause until somebody writes it down.
    """

    def __init__(
        self,
        sink: Sink,
        reader: OutputReader,
        *,
        data: Path,
        stored: Callable[[], Iterable[Entry]] | None = None,
        summarise: Callable[[LogReading], LogSummary] | None = None,
    ) -> None:
        self._sink = sink
        self._stored = stored
        self._reader = reader
        self._summarise = summarise
        self._words: WordLists = word_lists(data)

    def ingest_paths(
        self, paths: Sequence[Path], *, on_progress: OnProgress | None = None
    ) -> ImportReport:
        """Import files and folders; what cannot be imported is named with its reason.

        `on_progress` is called with how many files are done, of how many, and the last one's name;
        first with none done.

        Raises:
            KBError: the store cannot be written; what was committed before stays.
        """
        on_progress = on_progress or (lambda _done, _total, _name: None)
        tools = ImportTools(
            words=self._words,
            reader=self._reader,
            refused=[],
            notes=[],
            summarise=self._summarise,
        )
        run = _Run(tools)
        sources = find_sources(paths, refused=tools.refused, notes=tools.notes)
        on_progress(0, len(sources), "")
        for done, path in enumerate(sources, start=1):
            self._ingest(path, run)
            on_progress(done, len(sources), path.name)
        self._commit(run)
        self._compare_with_stored(run)
        return ImportReport(
            added=run.counts["added"],
            updated=run.counts["updated"],
            unchanged=run.counts["unchanged"],
            refused=tuple(tools.refused),
            near_duplicates=tuple(run.pairs),
            notes=tuple(tools.notes),
            entries=tuple(run.entries),
        )

    def _ingest(self, path: Path, run: _Run) -> None:
        for entry in self._read(path, run):
            self._take(entry, path, run)
            if len(run.group) >= MAX_GROUP:
                self._commit(run)
        if len(run.group) >= GROUP:
            self._commit(run)

    def _read(self, path: Path, run: _Run) -> Iterator[Entry]:
        """The entries of a source; a fault of the source is written down, not raised."""
        try:
            yield from format_of(path, self._words).read(path, run.tools)
        except KBError as error:
            run.tools.refused.append(refusal(str(path), error, path))
        except Exception as error:  # one document must not end the run
            log.exception("ingest_failed", path=str(path))
            why = f"{type(error).__name__}: {error}"
            what = f"could not be imported: {why}"
            run.tools.refused.append(Refusal(str(path), what, "not_imported", {"why": why}))

    def _take(self, entry: Entry, path: Path, run: _Run) -> None:
        where = run.entries.get(entry.id)
        if where is not None:
            what = f"has the same content as {where}"
            run.tools.notes.append(Refusal(str(path), what, "same", {"other": where}))
            return
        if entry.source_key in run.keys:
            what = f"holds {entry.source_key} twice"
            run.tools.notes.append(Refusal(str(path), what, "twice", {"key": entry.source_key}))
            return
        run.entries[entry.id] = str(path)
        run.keys.add(entry.source_key)
        run.pairs += run.duplicates.add(entry.id, _body(entry))
        run.group.append(entry)

    def _commit(self, run: _Run) -> None:
        if run.group:
            run.counts.update(self._sink.apply(tuple(run.group)))
            run.group.clear()

    def _compare_with_stored(self, run: _Run) -> None:
        """Name what is in the store and nearly the same as something of this run."""
        if not run.entries or self._stored is None:
            return
        for entry in self._stored():
            if entry.id not in run.entries:
                run.pairs += run.duplicates.like(entry.id, _body(entry))


def _body(entry: Entry) -> str:
    return "\n".join(section.text for section in entry.sections)
