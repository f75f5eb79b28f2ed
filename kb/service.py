"""The service: the one object every face talks to. It orchestrates; the parts decide."""

from __future__ import annotations

import datetime as dt
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Unpack

from kb.components import AnswerOptions, Components, HealthReport
from kb.diagnose.headline import headline
from kb.diagnose.learned import learned_stamp
from kb.diagnose.notices import notices_about
from kb.diagnose.rendering import render
from kb.diagnose.same_error import NO_MARKS, ErrorMarks, error_marks
from kb.diagnose.signals import Signal
from kb.diagnose.verdict import (
    SIMILAR_SOUGHT,
    Verdict,
    has_vote,
    search_filters,
    team_filters,
)
from kb.errors import KBError, NotFoundError, UnreachableIndexError
from kb.files.paths import files_under
from kb.incidents.records import IncidentRecord, records_of
from kb.knowledge.labels import Words
from kb.knowledge.site import site_stamp
from kb.logs.reader import LogReader
from kb.search.notes import MAX_NOTES
from kb.search.similarity import snippet_for_reader
from kb.text.language import answer_language
from kb.types.answer import AnswerNotice, Diagnosis, LogSummary, SettingWarning
from kb.types.entries import NO_FILTERS, Entry, Filters, NoteHit, SearchResult
from kb.types.incident import Incident, LogReading
from kb.types.knowledge import Bilingual, Note
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    pass

LANGUAGES: tuple[Language, ...] = ("zh", "en")
READ_SIGNATURES = 1024  # log lines of entries that were read and are likely to be met again
# said to everybody: where the server is stands in the log
STORE_GONE = "the database cannot be reached: what is indexed is found, nothing can be changed"
NOTHING_FOUND = SearchResult(query="", hits=(), similar_enough=False, facets={}, took_ms=0.0)
NOT_SEARCHED = replace(NOTHING_FOUND)  # for the server that has the index cannot be asked


class Service:
    """Diagnoses, searches and keeps entries. Safe for use by several threads."""

    def __init__(self, components: Components) -> None:
        self.knowledge = components.knowledge
        self.settings = components.settings
        self.store = components.store
        self.searcher = components.searcher
        self.note_finder = components.note_finder
        self.engine = components.engine
        self.learned = components.learned
        self.second_reader = components.second_reader
        self._components = components
        self._local = threading.local()
        self._learned_stamp = components.learned_stamp
        self._learning = threading.Lock()
        self._incidents: tuple[int, tuple[IncidentRecord, ...]] | None = None
        self._read_marks = lru_cache(READ_SIGNATURES)(self._marks_of_lines)

    # --- diagnosis -------------------------------------------------------------------------

    def diagnose_text(self, text: str, **options: Unpack[AnswerOptions]) -> Diagnosis:
        """Diagnose pasted text, a person's words and program output mixed.

        Raises:
            InputError: the text is empty.
        """
        return self.answer(self.read_text(text), **options)

    def answer(self, reading: LogReading, **options: Unpack[AnswerOptions]) -> Diagnosis:
        """The diagnosis of what was read."""
        torch, exclude = options.get("torch"), options.get("exclude", ())
        verdict = self.judge(reading, torch=torch, exclude=exclude)
        return self.render(verdict, language=options.get("language"), top=options.get("top"))

    def read_text(self, text: str) -> LogReading:
        """Read pasted text into a reading, for `answer` or `judge`.

        Raises:
            InputError: the text is empty or binary.
        """
        return _timed(lambda: self.reader.read_text(text))

    def read_paths(
        self, paths: Sequence[Path], *, dumps: Sequence[Path] = (), limit_s: float = math.inf
    ) -> LogReading:
        """Read the files of one run into one reading, which names those that cannot be read.

        Which of `paths` are logs and which evidence beside them is told by their content;
        `dumps` says so of files that do not show it.

        Raises:
            InputError: a path does not exist, or none of the files can be read.
            SlowInputError: the logs take longer than `limit_s` to read.
        """
        return _timed(lambda: self._read_paths(paths, dumps, limit_s))

    def _read_paths(
        self, paths: Sequence[Path], dumps: Sequence[Path], limit_s: float
    ) -> LogReading:
        from kb.evidence.capture import unpacked_archives

        with ExitStack() as stack:
            files = files_under(paths)
            whole = unpacked_archives(files, stack)
            paths = paths if whole == files else whole
            return self._read_files(paths, unpacked_archives(dumps, stack), limit_s)

    def _read_files(
        self, paths: Sequence[Path], dumps: Sequence[Path], limit_s: float
    ) -> LogReading:
        from kb.evidence.detect import evidence_among

        files = files_under(paths)
        known = evidence_among(files)
        if not dumps and not known:
            return self.reader.read_paths(paths, limit_s=limit_s)
        from kb.evidence.collect import add_evidence, read_evidence
        from kb.evidence.limits import EvidenceLimits

        only_evidence = len(known) == len(files)
        limits = EvidenceLimits(limit_s)
        evidence = read_evidence(dumps, known=known, alone=only_evidence, limits=limits)
        reading = _empty_reading()
        if not only_evidence:
            reading = self.reader.read_paths(
                paths, without=known, limit_s=round(limits.left_s, 1), alone=evidence.empty
            )
        return replace(reading, incident=add_evidence(reading.incident, evidence))

    def read_stream(self, chunks: Iterable[bytes], *, limit_s: float = math.inf) -> LogReading:
        """Read what arrives in pieces into a reading, in constant memory.

        Raises:
            InputError: the stream is empty or binary.
            SlowInputError: it takes longer than `limit_s` to read.
        """
        return _timed(lambda: self._read_stream(chunks, limit_s))

    def _read_stream(self, chunks: Iterable[bytes], limit_s: float) -> LogReading:
        from kb.evidence.capture import archive_in_stream
        from kb.evidence.detect import evidence_in_stream

        archive, chunks = archive_in_stream(chunks)
        if archive:
            return self._read_archive(chunks, limit_s)
        kind, stream = evidence_in_stream(chunks)
        if kind is None:
            return self.reader.read_stream(stream, limit_s=limit_s)
        from kb.evidence.collect import add_evidence, read_evidence_stream
        from kb.evidence.limits import EvidenceLimits

        evidence = read_evidence_stream(kind, stream, EvidenceLimits(limit_s))
        return _empty_reading(add_evidence(Incident(), evidence))

    def _read_archive(self, chunks: Iterable[bytes], limit_s: float) -> LogReading:
        from kb.evidence.capture import readable_files, unpack

        with TemporaryDirectory(prefix="timeout-kb-") as name:
            folder = Path(name)
            unpack(chunks, folder, name="")
            return self._read_files(readable_files(folder), (), limit_s)

    def judge(
        self,
        reading: LogReading,
        *,
        torch: str | None = None,
        exclude: Sequence[str] = (),
        observed: Sequence[Signal] = (),
        similar: SearchResult | None = None,
    ) -> Verdict:
        """What a reading means, in no language yet; `observed` is what a person saw in checks.

        `similar` is what `similar` gave for a reading like this one, else it is searched for.
        """
        started = time.perf_counter()
        self._use_learned()
        similar = similar or self.similar(reading, exclude=exclude)
        entries = self.entries_of(similar)
        verdict = self.engine.judge(
            reading,
            tuple(hit for hit in similar.hits if hit.entry_id in entries),
            entries,
            observed=observed,
            torch=torch or "",
            marks_of=lambda entry: self._read_marks(entry.signature),
        )
        took_ms = reading.took_ms + _since_ms(started)
        return replace(verdict, took_ms=took_ms, is_searched=similar is not NOT_SEARCHED)

    def _use_learned(self) -> None:
        """Take over what `timeout-kb learn` wrote or took away since it was read."""
        again, stamp = self._components.learn_again, learned_stamp(self.settings.home)
        if again is None or stamp == self._learned_stamp:
            return
        with self._learning:
            if stamp != self._learned_stamp:
                self.learned, self.engine = again(self.engine)
                self._learned_stamp = stamp

    def render(
        self, verdict: Verdict, *, language: Language | None = None, top: int | None = None
    ) -> Diagnosis:
        """A verdict as an answer, by default in the language of the text and with `top` causes."""
        started = time.perf_counter()
        language = answer_language(language, self.settings.lang, verdict.reading.words)
        diagnosis = render(
            verdict,
            self.knowledge,
            language=language,
            top=top or self.settings.top,
            today=_today(),
        )
        return replace(diagnosis, took_ms=round(verdict.took_ms + _since_ms(started), 2))

    def similar(self, reading: LogReading, *, exclude: Sequence[str] = ()) -> SearchResult:
        """Solved entries similar to a reading; none when it holds nothing to search with.

        `NOT_SEARCHED` where the server that has the index cannot be asked now: a log is diagnosed
        without it.
        """
        query = self.engine.query_text(reading)
        if not query:
            return NOTHING_FOUND
        try:
            return self.search_solved(query, filters=search_filters(exclude), limit=SIMILAR_SOUGHT)
        except UnreachableIndexError:
            return NOT_SEARCHED

    def search_solved(
        self, query: str, *, filters: Filters = NO_FILTERS, limit: int = SIMILAR_SOUGHT
    ) -> SearchResult:
        """Entries whose cause counts as evidence: cases, and what the team resolved or confirmed.

        `filters` are those of cases; facets are counted over cases alone. A page that a case
        stands on counts once.
        """
        cases = self.searcher.search(query, filters=filters, limit=limit)
        team = team_filters(filters)
        if not self.store.holds(team):
            return cases
        known = {case.url for case in self.knowledge.cases if case.url}
        added = self.searcher.search(query, filters=team, limit=limit)
        entries = self.entries_of(added)
        more = [
            hit
            for hit in added.hits
            if hit.url not in known and hit.entry_id in entries and has_vote(entries[hit.entry_id])
        ]
        hits = sorted((*cases.hits, *more), key=lambda hit: (-hit.score, hit.entry_id))[:limit]
        return replace(
            cases,
            hits=tuple(hits),
            similar_enough=cases.similar_enough or added.similar_enough,
            took_ms=cases.took_ms + added.took_ms,
        )

    def _marks_of_lines(self, lines: tuple[str, ...]) -> ErrorMarks:
        """What tells the failure that printed these lines from others."""
        if not lines:
            return NO_MARKS
        return error_marks(self.reader.read_text("\n".join(lines)), self.knowledge.event_by_id)

    def summarise(self, reading: LogReading) -> LogSummary:
        """What a reading alone shows, without similar entries: an incident's title and cause."""
        verdict = self.engine.judge(reading, (), {})
        happened = replace(verdict, status="diagnosed")  # somebody says it is an incident
        zh, en = (
            headline(happened, self.knowledge, Words(self.knowledge.labels, language))
            for language in LANGUAGES
        )
        named = verdict.status == "diagnosed"
        return LogSummary(
            title=Bilingual(zh=zh, en=en), cause=verdict.ranking.causes[0].cause if named else ""
        )

    def lint(
        self, text: str, *, language: Language | None = None, torch: str | None = None
    ) -> tuple[SettingWarning, ...]:
        """What is wrong with the settings in `text`, for a torch version where one is known."""
        from kb.settings_check import lint

        language = answer_language(language, self.settings.lang, text)
        words = Words(self.knowledge.labels, language)
        conflicts = self.engine.contradictions.of_text(text)
        return lint(text, self.knowledge.advice, torch=torch, words=words, conflicts=conflicts)

    def notices_about(self, cause: str, language: Language) -> tuple[AnswerNotice, ...]:
        """The team's notices about a cause that are due today."""
        words = Words(self.knowledge.labels, language)
        return notices_about(cause, self.knowledge.notices, words, _today())

    # --- the knowledge base ----------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        filters: Filters = NO_FILTERS,
        limit: int = 10,
        language: Language | None = None,
    ) -> SearchResult:
        """Entries similar to `query`, best first, and the settings and notes that answer it.

        `language` is the reader's: of the sections and notes shown, by default that of the query.
        """
        from kb.settings_check import find_advice

        result = self.searcher.search(query, filters=filters, limit=limit)
        entries = self.entries_of(result)
        reader = answer_language(language, self.settings.lang, query)
        return replace(
            result,
            hits=tuple(
                snippet_for_reader(hit, entries.get(hit.entry_id), reader) for hit in result.hits
            ),
            settings=find_advice(query, self.knowledge.advice),
            notes=self.find_notes(query, reader),
        )

    def find_notes(
        self, text: str, language: Language | None = None, limit: int = MAX_NOTES
    ) -> tuple[NoteHit, ...]:
        """The notes that answer what a person asks in `text`, best first; empty where none does.

        Questions of either language find the same notes; `language` is the reader's, by default
        that of the text.
        """
        language = answer_language(language, self.settings.lang, text)
        return self.note_finder.find(text, language=language, limit=limit)

    def note(self, identifier: str) -> Note:
        """The note under an id.

        Raises:
            NotFoundError: there is none.
        """
        found = self.knowledge.note_by_id.get(identifier)
        if found is None:
            raise NotFoundError(
                f"no note is called {identifier!r}",
                todo="see /v1/notes",
                reason="no_note",
                values={"id": identifier},
            )
        return found

    def entry(self, entry_id: str) -> Entry:
        """The entry under an id.

        Raises:
            NotFoundError: there is none; the nearest ids are named.
        """
        return self.store.get(entry_id)

    def entries(
        self, *, filters: Filters = NO_FILTERS, limit: int = 50, offset: int = 0
    ) -> tuple[Entry, ...]:
        """Entries in the order of their ids."""
        entries: list[Entry] = []
        for entry_id in sorted(self.store.ids(filters))[offset : offset + limit]:
            with suppress(NotFoundError):  # deleted meanwhile
                entries.append(self.store.get(entry_id))
        return tuple(entries)

    def incidents(self) -> tuple[IncidentRecord, ...]:
        """The team's incidents, the latest first; read anew when the store has changed."""
        seq = self.store.last_seq()
        if self._incidents is None or self._incidents[0] != seq:
            entries = self.store.iter_entries(Filters(kinds=("incident",)))
            self._incidents = (seq, records_of(entries))
        return self._incidents[1]

    def apply(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Put entries in the store in one transaction and make them searchable.

        Raises:
            InputError: a text cannot be written.
            SearchIndexError, StoreError: one of both cannot be written; nothing was added.
        """
        former = self.store.replaced_by(entries)
        summary = self.store.upsert(entries)
        self._make_searchable(entries, former)
        return summary

    def merge(self, entry: Entry, merged: Sequence[str]) -> None:
        """Store `entry` in place of the incidents merged into it; their ids lead to it.

        Raises:
            SearchIndexError, StoreError: one of both cannot be written; nothing was merged.
        """
        former = self.store.replaced_by([entry], also=merged)
        self.store.merge(entry, merged)
        self._make_searchable([entry], former)

    def _make_searchable(self, entries: Sequence[Entry], former: Sequence[Entry]) -> None:
        """Bring the index up to the store, or put back `former` for `entries`.

        What is acknowledged is found, and what is not found is refused.
        """
        try:
            self._components.catch_up()
        except KBError:
            self.store.put_back(former, instead_of=entries)
            raise

    def delete(self, ids: Sequence[str]) -> int:
        """Delete entries; returns how many there were."""
        gone = self.store.delete(ids)
        try:
            self._components.catch_up()
        except KBError:  # what is no longer stored is not shown: the index may follow later
            from kb.log_lines import logger

            logger().exception("the index could not follow a deletion")
        return gone

    def health(self) -> HealthReport:
        """Whether store and index answer and agree."""
        problems: list[str] = []
        entries = behind = 0
        unreachable = ""
        try:
            entries = self.store.count()
            self.searcher.search("timeout", limit=1)
            behind = self.searcher.index_behind()
        except UnreachableIndexError as error:  # logs are diagnosed without it
            unreachable = str(error)
        except Exception as error:  # noqa: BLE001 - a health check reports whatever is wrong
            from kb.log_lines import logger

            logger().exception("health check failed")
            problems.append(str(error))
        return HealthReport(
            ready=not problems,
            problems=tuple(problems),
            entries=entries,
            cases=len(self.knowledge.cases),
            second_reader=self.second_reader.usage() if self.second_reader else None,
            site_waits=self.site_waits(),
            index_behind=behind,
            index_failure=unreachable or (self.searcher.index_failure() if behind else ""),
            store_failure="" if self.store.is_reachable() else STORE_GONE,
        )

    def site_waits(self) -> bool:
        """Whether the site folder has changed since this process read it: a restart reads it."""
        return site_stamp(self.settings.site) != self._components.site_stamp

    def version(self) -> str:
        """Changes whenever an answer may: with the knowledge, the entries, the index, the day."""
        day = _today() if self.knowledge.notices else ""
        self._use_learned()
        learned = self.learned.checksum if self.learned else ""
        return " ".join(
            filter(None, [self.knowledge.digest, self.searcher.version(), learned, str(day)])
        )

    def close(self) -> None:
        """Let go of files and connections."""
        if self.second_reader is not None:
            self.second_reader.close()
        self._components.close()

    # --- parts -----------------------------------------------------------------------------

    @property
    def reader(self) -> LogReader:
        """This thread's reader: a reader scans one input at a time."""
        reader: LogReader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = self._components.make_reader()
        return reader

    def entries_of(self, result: SearchResult) -> dict[str, Entry]:
        """The entries behind the hits, by id, less those that were deleted since the search."""
        cases = self.knowledge.case_by_id
        entries: dict[str, Entry] = {}
        for hit in result.hits:
            with suppress(NotFoundError):
                entries[hit.entry_id] = cases.get(hit.entry_id) or self.store.get(hit.entry_id)
        return entries


def _empty_reading(incident: Incident = Incident()) -> LogReading:  # noqa: B008 - a frozen value
    return LogReading(incident=incident, events=(), excerpt="")


def _timed(read: Callable[[], LogReading]) -> LogReading:
    """What `read` gives, with the time it took."""
    started = time.perf_counter()
    reading = read()
    return replace(reading, took_ms=_since_ms(started))


def _today() -> dt.date:
    return dt.date.today()  # noqa: DTZ011 - the days of notices are those of this place


def _since_ms(started: float) -> float:
    return (time.perf_counter() - started) * 1000
