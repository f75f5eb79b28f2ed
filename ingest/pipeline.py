"""The run: paths in, entries in the store, a report out.

Entries go to the sink in groups, each one transaction. A file's entries are in one group (files of
thousands of threads excepted), so that whatever ends the run, a file is there as it was or as it
is, never half.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingest.duplicates import NearDuplicates
from ingest.files import file_digest, find_sources, source_key
from ingest.formats import format_of
from ingest.types import (
    FileReading,
    ImportReport,
    ImportTools,
    NearDuplicate,
    OutputReader,
    Refusal,
    Sink,
    refusal,
)
from ingest.wordlists import WordLists, with_filter, word_lists
from kb.errors import KBError
from kb.log_lines import logger
from kb.store.imported_files import ImportedFile, ImportedFiles
from kb.types.answer import LogSummary
from kb.types.entries import Entry
from kb.types.incident import LogReading

GROUP = 64  # entries a transaction: enough to make its cost small, little to lose
MAX_GROUP = 1024  # entries of one file kept together; a longer file is committed in parts

OnProgress = Callable[[int, int, str], None]

log = logger()


def reader_stamp(data: Path, knowledge: str) -> str:
    """Changes with what reads files: the program, the word lists, the knowledge of that digest."""
    here = Path(__file__).resolve().parent
    digest = hashlib.sha256(knowledge.encode())
    for folder in (here, here.parent / "kb", data):
        for path in sorted(path for path in folder.rglob("*") if path.suffix != ".pyc"):
            status = path.stat()
            stamp = f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}"
            digest.update(stamp.encode() if path.is_file() else b"")
    return digest.hexdigest()


class ImportRecord:
    """Tells the files that need not be read again, and notes those that were."""

    def __init__(self, files: ImportedFiles, reader: str) -> None:
        """`reader` is what reads now (`reader_stamp`)."""
        self._files = files
        self._reader = reader

    def entries_of(self, path: Path) -> tuple[str, ...] | None:
        """Ids of what the file gave when it was imported as it is now; None: it has to be read."""
        try:
            return self._files.entries_of(source_key(path), file_digest(path), self._reader)
        except KBError:  # the report says it when the file is read
            return None

    def file(self, path: Path, ids: Sequence[str]) -> ImportedFile:
        """What is noted of a file that gave these entries."""
        key, digest = source_key(path), file_digest(path)
        return ImportedFile(key=key, digest=digest, reader=self._reader, entries=tuple(ids))

    def put(self, files: Sequence[ImportedFile]) -> None:
        """Note files whose entries are stored."""
        self._files.put(files)


def read_file(path: Path, tools: ImportTools) -> Iterator[Entry]:
    """The entries of a file; a fault of it is written down in `tools`, not raised."""
    try:
        yield from format_of(path, tools.words).read(path, tools)
    except KBError as error:
        tools.refused.append(refusal(str(path), error, path))
    except Exception as error:  # one document must not end the run
        log.exception("ingest_failed", path=str(path))
        why = f"{type(error).__name__}: {error}"
        what = f"could not be imported: {why}"
        tools.refused.append(Refusal(str(path), what, "not_imported", {"why": why}))


@dataclass(slots=True)
class _Run:
    """What a run has done so far."""

    refused: list[Refusal] = field(default_factory=list)
    notes: list[Refusal] = field(default_factory=list)
    group: list[Entry] = field(default_factory=list)
    files: list[ImportedFile] = field(default_factory=list)  # whole once `group` is stored
    known_files: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # added, updated, unchanged
    pairs: list[NearDuplicate] = field(default_factory=list)
    entries: dict[str, str] = field(default_factory=dict)  # id → where it was found
    new: set[str] = field(default_factory=set)  # ids of entries that were read
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
        record: tells which files were imported as they are; None: all are read.
        read_elsewhere: reads files in the order given, say in other processes; None: here.
        cache: a folder for what makes reading many files fast; None: it is not worth it.
    """

    def __init__(
        self,
        sink: Sink,
        reader: OutputReader,
        *,
        data: Path,
        stored: Callable[[], Iterable[Entry]] | None = None,
        summarise: Callable[[LogReading], LogSummary] | None = None,
        record: ImportRecord | None = None,
        read_elsewhere: Callable[[Iterator[Path]], Iterator[FileReading]] | None = None,
        cache: Path | None = None,
    ) -> None:
        self._record = record
        self._read_all = read_elsewhere or self._read_here
        self._sink = sink
        self._stored = stored
        self._reader = reader
        self._summarise = summarise
        words = word_lists(data)
        self._words: WordLists = with_filter(words, cache) if cache else words

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
        run = _Run()
        sources = find_sources(paths, refused=run.refused, notes=run.notes)
        on_progress(0, len(sources), "")
        for done, (path, reading) in enumerate(self._readings(sources, run), start=1):
            if reading is not None:
                self._ingest(reading, run)
            on_progress(done, len(sources), path.name)
        self._commit(run)
        self._compare_with_stored(run)
        return ImportReport(
            added=run.counts["added"],
            updated=run.counts["updated"],
            unchanged=run.counts["unchanged"],
            refused=tuple(run.refused),
            near_duplicates=tuple(run.pairs),
            notes=tuple(run.notes),
            entries=tuple(run.entries),
            known_files=run.known_files,
        )

    def _readings(
        self, sources: Sequence[Path], run: _Run
    ) -> Iterator[tuple[Path, FileReading | None]]:
        """Each source in its order with what it gives; None where it is known."""
        ahead: deque[tuple[Path, tuple[str, ...] | None]] = deque()

        def unread() -> Iterator[Path]:
            for path in sources:
                ids = self._record.entries_of(path) if self._record else None
                ahead.append((path, ids))
                if ids is None:
                    yield path

        def passed_over() -> Iterator[tuple[Path, None]]:
            while ahead and (ids := ahead[0][1]) is not None:
                path, _ = ahead.popleft()
                run.known_files += 1
                run.counts["unchanged"] += len(ids)
                for entry_id in ids:
                    run.entries.setdefault(entry_id, str(path))
                yield path, None

        for reading in self._read_all(unread()):
            yield from passed_over()
            ahead.popleft()
            yield reading.path, reading
        yield from passed_over()

    def _read_here(self, paths: Iterator[Path]) -> Iterator[FileReading]:
        return map(self._reading, paths)

    def _reading(self, path: Path) -> FileReading:
        tools = ImportTools(
            words=self._words,
            reader=self._reader,
            refused=[],
            notes=[],
            summarise=self._summarise,
        )
        entries = read_file(path, tools)
        return FileReading(path=path, entries=entries, refused=tools.refused, notes=tools.notes)

    def read_whole(self, path: Path) -> FileReading:
        """What a file gives, read to its end; nothing is stored."""
        reading = self._reading(path)
        return replace(reading, entries=tuple(reading.entries))

    def _ingest(self, reading: FileReading, run: _Run) -> None:
        path, ids = reading.path, []
        for entry in reading.entries:
            if self._take(entry, path, run):
                ids.append(entry.id)
            if len(run.group) >= MAX_GROUP:
                self._commit(run)
        run.refused += reading.refused
        run.notes += reading.notes
        if self._record and ids and not (reading.refused or reading.notes):
            run.files.append(self._record.file(path, ids))
        if len(run.group) >= GROUP:
            self._commit(run)

    def _take(self, entry: Entry, path: Path, run: _Run) -> bool:
        """Add an entry to the group; whether it is none that another file gave."""
        where = run.entries.get(entry.id)
        if where is not None:
            what = f"has the same content as {where}"
            run.notes.append(Refusal(str(path), what, "same", {"other": where}))
            return False
        if entry.source_key in run.keys:
            what = f"holds {entry.source_key} twice"
            run.notes.append(Refusal(str(path), what, "twice", {"key": entry.source_key}))
            return False
        run.entries[entry.id] = str(path)
        run.new.add(entry.id)
        run.keys.add(entry.source_key)
        run.pairs += run.duplicates.add(entry.id, _body(entry))
        run.group.append(entry)
        return True

    def _commit(self, run: _Run) -> None:
        if run.group:
            run.counts.update(self._sink.apply(tuple(run.group)))
            run.group.clear()
        if run.files and self._record:
            self._record.put(run.files)
            run.files.clear()

    def _compare_with_stored(self, run: _Run) -> None:
        """Name what is in the store and nearly the same as something of this run."""
        if not run.new or self._stored is None:
            return
        for entry in self._stored():
            if entry.id not in run.new:
                run.pairs += run.duplicates.like(entry.id, _body(entry))


def _body(entry: Entry) -> str:
    return "\n".join(section.text for section in entry.sections)
