"""The run: paths in, entries in the store, a report out.

Entries go to the sink in groups, each one transaction. A file's entries are in one group (files of
thousands of threads excepted), so that whatever ends the run, a file is there as it was or as it
is, never half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from ingest.cleaning import drop_furniture, read_head, tidy
from ingest.duplicates import NearDuplicates
from ingest.incidents import incident_entry
from ingest.markdown import name_title, read_markdown
from ingest.phrases import Phrases, load_phrases
from ingest.plain import has_titles, to_markdown
from ingest.progress import NoProgress
from ingest.reading import file_digest, read_page
from ingest.sources import Source, find_sources, kind_of
from ingest.threads import Record, ThreadReader, read_json, read_jsonl
from ingest.types import (
    Document,
    LogReader,
    NearDuplicate,
    Outcome,
    Progress,
    Redact,
    Refusal,
    Report,
    Sink,
    SourceKind,
    refusal,
)
from ingest.wordlists import WordLists, word_lists
from ingest.writeups import writeup_entry
from kb.cases import load_case
from kb.errors import KBError
from kb.logs.redact import redact
from kb.types import Entry

if TYPE_CHECKING:
    from kb.service import Service

GROUP = 64  # entries a transaction: enough to make its cost small, little to lose
MAX_GROUP = 1024  # entries of one file kept together; a longer file is committed in parts
TITLED = frozenset({"causes", "fixes", "practices", "found", "verify"})  # roles of a write-up

log = structlog.get_logger()


@dataclass(slots=True)
class _Run:
    """What a run has done so far."""

    group: list[Entry] = field(default_factory=list)
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: list[Refusal] = field(default_factory=list)
    notes: list[Refusal] = field(default_factory=list)
    pairs: list[NearDuplicate] = field(default_factory=list)
    entries: dict[str, str] = field(default_factory=dict)  # id → where it was found
    keys: set[str] = field(default_factory=set)
    duplicates: NearDuplicates = field(default_factory=NearDuplicates)


class Ingestor:
    """Imports files into a knowledge base.

    Args:
        sink: where entries go.
        reader: reads logs and the output quoted in write-ups.
        redact: removes secrets; everything stored went through it.
        data: the `data/` folder, for the word lists.
        stored: gives what is in the knowledge base, to name near-duplicates of it; None: only
            the files of one run are compared.
    """

    def __init__(
        self,
        sink: Sink,
        reader: LogReader,
        redact: Redact,
        *,
        data: Path,
        stored: Callable[[], Iterable[Entry]] | None = None,
    ) -> None:
        self._sink = sink
        self._stored = stored
        self._reader = reader
        self._redact = redact
        self._words: WordLists = word_lists(data)
        self._phrases: Phrases = load_phrases(data)
        self._threads = ThreadReader(
            words=self._words, reader=reader, redact=redact, phrases=self._phrases
        )

    def ingest_paths(self, paths: Sequence[Path], *, progress: Progress | None = None) -> Report:
        """Import files and folders; what cannot be imported is named with its reason.

        Raises:
            KBError: the store cannot be written; what was committed before stays.
        """
        progress = progress or NoProgress()
        found = find_sources(paths)
        run = _Run(refused=list(found.refused), notes=list(found.skipped))
        progress.start(len(found.sources))
        try:
            for source in found.sources:
                progress.advance(source.path.name, self._ingest(source, run))
            self._commit(run)
        finally:
            progress.finish()
        self._compare_with_stored(run)
        return Report(
            added=run.added,
            updated=run.updated,
            unchanged=run.unchanged,
            refused=tuple(run.refused),
            near_duplicates=tuple(run.pairs),
            notes=tuple(run.notes),
            entries=tuple(run.entries),
        )

    def _ingest(self, source: Source, run: _Run) -> Outcome:
        before = len(run.entries)
        refused = len(run.refused)
        for entry in self._read(source, run):
            self._take(entry, source, run)
            if len(run.group) >= MAX_GROUP:
                self._commit(run)
        if len(run.group) >= GROUP:
            self._commit(run)
        if len(run.entries) > before:
            return "stored"
        return "refused" if len(run.refused) > refused else "known"

    def _read(self, source: Source, run: _Run) -> Iterator[Entry]:
        """The entries of a source; a fault of the source is written down, not raised."""
        try:
            yield from self._entries(source, run)
        except KBError as error:
            run.refused.append(refusal(str(source.path), error, source.path))
        except Exception as error:  # one document must not end the run
            log.exception("ingest_failed", path=str(source.path))
            why = f"{type(error).__name__}: {error}"
            run.refused.append(
                Refusal(
                    str(source.path), f"could not be imported: {why}", "not_imported", {"why": why}
                )
            )

    def _take(self, entry: Entry, source: Source, run: _Run) -> None:
        where = run.entries.get(entry.id)
        if where is not None:
            what = f"has the same content as {where}"
            run.notes.append(Refusal(str(source.path), what, "same", {"other": where}))
            return
        if entry.source_key in run.keys:
            what = f"holds {entry.source_key} twice"
            run.notes.append(Refusal(str(source.path), what, "twice", {"key": entry.source_key}))
            return
        run.entries[entry.id] = str(source.path)
        run.keys.add(entry.source_key)
        run.pairs += run.duplicates.add(entry.id, _body(entry))
        run.group.append(entry)

    def _commit(self, run: _Run) -> None:
        if not run.group:
            return
        counts = self._sink.apply(tuple(run.group))
        run.added += counts["added"]
        run.updated += counts["updated"]
        run.unchanged += counts["unchanged"]
        run.group.clear()

    def _compare_with_stored(self, run: _Run) -> None:
        """Name what is in the store and nearly the same as something of this run."""
        if not run.entries or self._stored is None:
            return
        for entry in self._stored():
            if entry.id not in run.entries:
                run.pairs += run.duplicates.like(entry.id, _body(entry))

    # --- one source ----------------------------------------------------------------------------

    def _entries(self, source: Source, run: _Run) -> Iterator[Entry]:
        kind = kind_of(source.path, self._words)
        if kind == "case":
            yield load_case(source.path)
        elif kind == "log":
            yield self._log(source)
        elif kind in ("json", "jsonl"):
            yield from self._thread_entries(source, kind, run)
        else:
            yield self._writeup(source, kind, run)

    def _log(self, source: Source) -> Entry:
        digest = file_digest(source.path)
        return incident_entry(
            self._reader.read_paths([source.path]),
            name=source.path.name,
            key=source.key,
            digest=digest,
            words=self._words,
            phrases=self._phrases,
        )

    def _thread_entries(self, source: Source, kind: SourceKind, run: _Run) -> Iterator[Entry]:
        for record in self._records(source, kind):
            place = f"{source.path}:{record.line}" if kind == "jsonl" else str(source.path)
            if record.fault is not None:
                run.refused.append(refusal(place, record.fault, source.path))
                continue
            try:
                yield self._threads.entry(record, key=source.key)
            except KBError as error:
                run.refused.append(refusal(place, error, source.path))

    def _records(self, source: Source, kind: SourceKind) -> Iterator[Record]:
        if kind == "jsonl":
            return read_jsonl(source.path)
        return read_json(source.path, read_page(source.path)[0])

    def _writeup(self, source: Source, kind: SourceKind, run: _Run) -> Entry:
        text, encoding = read_page(source.path)
        if encoding:
            what = f"read as {encoding}"
            run.notes.append(Refusal(str(source.path), what, "encoding", {"encoding": encoding}))
        document = self._document(text, kind, source.path)
        entry = writeup_entry(
            document,
            key=source.key,
            digest=file_digest(source.path),
            words=self._words,
            reader=self._reader,
        )
        if kind == "page" and not any(section.role in TITLED for section in entry.sections):
            reading = self._reader.read_text(text)
            if reading.incident.has_timeout:  # a pasted log with a few words
                return incident_entry(
                    reading,
                    name=source.path.name,
                    key=source.key,
                    digest=entry.digest,
                    words=self._words,
                    phrases=self._phrases,
                )
        return entry

    def _document(self, text: str, kind: SourceKind, path: Path) -> Document:
        """A page as a cleaned, redacted document."""
        words = self._words
        if kind == "html":
            from ingest.html import read_html  # six megabytes a server may never need

            document = read_html(text, words)
        elif kind == "markdown":
            document = read_markdown(text, words)
        else:
            lines = tidy(text)
            head = read_head(lines, words)
            document = Document(
                title=head.title,
                lines=tuple(lines[head.start :]),
                author=head.author,
                date=head.date,
            )
        body = drop_furniture(document.lines, words)
        if kind == "page" or not has_titles(body, words):
            body = to_markdown(body, words)
        return replace(
            document,
            title=self._redact(document.title or name_title(path))[0],
            author=self._redact(document.author)[0],
            url=self._redact(document.url)[0],
            lines=tuple(self._redact("\n".join(body))[0].split("\n")),
        )


def ingestor_for(service: Service) -> Ingestor:
    """The ingestor of a knowledge base that is open."""
    return Ingestor(
        service,
        service.reader,
        redact,
        data=service.settings.data,
        stored=service.store.iter_entries,
    )


def _body(entry: Entry) -> str:
    return "\n".join(section.text for section in entry.sections)
