"""The service: the one object every face talks to. It orchestrates; the parts decide."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kb.diagnose.answer import Request, build_diagnosis
from kb.diagnose.engine import SIMILAR_SOUGHT, Engine, query_text, search_filters
from kb.diagnose.given import given
from kb.diagnose.signals import Signal
from kb.knowledge import Knowledge
from kb.logs.reader import LogReader
from kb.search import Searcher
from kb.settings import Settings
from kb.store import Store
from kb.text import detect_language
from kb.types import (
    Cause,
    Diagnosis,
    Entry,
    Filters,
    Incident,
    Language,
    LogReading,
    SearchResult,
    SettingWarning,
)

NO_FILTERS = Filters()
NOTHING_FOUND = SearchResult(query="", hits=(), similar_enough=False, facets={}, took_ms=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether the service can answer; `problems` say what is wrong and what to do."""

    ready: bool
    problems: tuple[str, ...]
    entries: int
    cases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The real parts, built by `kb.bootstrap`; tests hand in others."""

    settings: Settings
    knowledge: Knowledge
    store: Store
    searcher: Searcher
    catch_up: Callable[[], bool]
    engine: Engine
    make_reader: Callable[[], LogReader]
    close: Callable[[], None]


class Service:
    """Diagnoses, searches and keeps entries. Safe for use by several threads."""

    def __init__(self, parts: Parts) -> None:
        self.knowledge = parts.knowledge
        self.settings = parts.settings
        self.store = parts.store
        self.searcher = parts.searcher
        self.engine = parts.engine
        self._parts = parts
        self._local = threading.local()

    # --- diagnosis -------------------------------------------------------------------------

    def diagnose_text(
        self,
        text: str,
        *,
        language: Language | None = None,
        top: int | None = None,
        torch: str | None = None,
        exclude: Sequence[str] = (),
    ) -> Diagnosis:
        """Diagnose pasted text, a person's words and program output mixed.

        Args:
            text: the paste.
            language: of the answer; by default that of the text.
            top: causes in the answer.
            torch: torch version where the text does not say it.
            exclude: entry ids that must not be used as evidence.

        Raises:
            InputError: the text is empty.
        """
        started = time.perf_counter()
        reading = self.reader.read_text(text)
        return self.answer(
            reading, started=started, language=language, top=top, torch=torch, exclude=exclude
        )

    def diagnose_paths(
        self,
        paths: Sequence[Path],
        *,
        dumps: Sequence[Path] = (),
        language: Language | None = None,
        top: int | None = None,
        torch: str | None = None,
    ) -> Diagnosis:
        """Diagnose the logs of one run in files and folders, with dumps where there are any.

        Raises:
            InputError: a path does not exist, or none of the files can be read.
        """
        started = time.perf_counter()
        reading = self.read_paths(paths, dumps=dumps)
        return self.answer(reading, started=started, language=language, top=top, torch=torch)

    def diagnose_stream(
        self,
        chunks: Iterable[bytes],
        *,
        name: str = "",
        language: Language | None = None,
        top: int | None = None,
        torch: str | None = None,
    ) -> Diagnosis:
        """Diagnose a log that arrives in pieces, in constant memory.

        Raises:
            InputError: the stream is empty or binary.
        """
        started = time.perf_counter()
        reading = self.reader.read_stream(chunks)
        return self.answer(reading, started=started, language=language, top=top, torch=torch)

    def read_text(self, text: str) -> LogReading:
        """Read pasted text into a reading, for `answer`.

        Raises:
            InputError: the text is empty or binary.
        """
        return self.reader.read_text(text)

    def read_paths(
        self, paths: Sequence[Path], *, dumps: Sequence[Path] = (), limit_s: float = math.inf
    ) -> LogReading:
        """Read logs and dumps into one reading, which names the files that cannot be read.

        Raises:
            InputError: a path does not exist, or none of the files can be read.
            SlowInputError: the logs take longer than `limit_s` to read.
        """
        if not dumps:
            return self.reader.read_paths(paths, limit_s=limit_s)
        from kb.logs.evidence import merge_into, read_evidence

        evidence = read_evidence(dumps, alone=not paths)
        reading = _empty_reading()
        if paths:
            reading = self.reader.read_paths(paths, limit_s=limit_s, alone=evidence.empty)
        return merge_into(reading, evidence)

    def answer(
        self,
        reading: LogReading,
        *,
        started: float | None = None,
        language: Language | None = None,
        top: int | None = None,
        torch: str | None = None,
        exclude: Sequence[str] = (),
        told: Sequence[Signal] = (),
    ) -> Diagnosis:
        """The Diagnosis of a reading; `started` is `time.perf_counter()` when the work began.

        `told` are observations beside the reading: what a person answered to a check.
        """
        started = time.perf_counter() if started is None else started
        language = language or self._language(reading)
        found = self.similar(reading, exclude=exclude)
        entries = self.entries_of(found)
        verdict = self.engine.judge(reading, found, entries, told=told)
        request = Request(
            reading=reading,
            verdict=verdict,
            entries=entries,
            warnings=self._warnings(reading, language, torch),
            language=language,
            top=top or self.settings.top,
            given=given(reading, self.knowledge.given),
        )
        took_ms = (time.perf_counter() - started) * 1000
        return build_diagnosis(request, self.knowledge, took_ms=took_ms)

    def similar(self, reading: LogReading, *, exclude: Sequence[str] = ()) -> SearchResult:
        """Reviewed entries similar to a reading; none when it holds nothing to search with."""
        query = query_text(reading)
        if not query:
            return NOTHING_FOUND
        filters = search_filters(exclude)
        found = self.searcher.search(query, filters=filters, limit=SIMILAR_SOUGHT)
        return self.engine.nearer(reading, found, self.entries_of(found))

    def lint(
        self, text: str, *, language: Language | None = None, torch: str | None = None
    ) -> tuple[SettingWarning, ...]:
        """What is wrong with the settings in `text`, for a torch version where one is known."""
        from kb.advice import lint

        return lint(
            text,
            self.knowledge.advice,
            torch=torch,
            language=language or detect_language(text),
        )

    # --- the knowledge base ----------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        filters: Filters = NO_FILTERS,
        limit: int = 10,
        language: Language | None = None,
    ) -> SearchResult:
        """Entries similar to `query`, best first, and the settings it asks about."""
        from kb.advice import find_advice

        found = self.searcher.search(query, filters=filters, limit=limit, language=language)
        return replace(found, settings=find_advice(query, self.knowledge.advice))

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
        ids = sorted(self.store.ids(filters))[offset : offset + limit]
        return tuple(self.store.get(entry_id) for entry_id in ids)

    def causes(self) -> tuple[Cause, ...]:
        """All root causes."""
        return self.knowledge.causes

    def apply(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Put entries in the store in one transaction and make them searchable."""
        summary = self.store.upsert(entries)
        self._parts.catch_up()
        return summary

    def delete(self, ids: Sequence[str]) -> int:
        """Delete entries; returns how many there were."""
        gone = self.store.delete(ids)
        self._parts.catch_up()
        return gone

    def health(self) -> Health:
        """Whether store and index answer and agree."""
        problems: list[str] = []
        entries = 0
        try:
            entries = self.store.count()
            self.searcher.search("timeout", limit=1)
        except Exception as error:  # noqa: BLE001 - a health check reports whatever is wrong
            import structlog

            structlog.get_logger().exception("health check failed")
            problems.append(str(error))
        return Health(
            ready=not problems,
            problems=tuple(problems),
            entries=entries,
            cases=len(self.knowledge.cases),
        )

    def version(self) -> str:
        """Changes whenever an answer may: with the knowledge, the entries and the index."""
        return f"{self.knowledge.digest} {self.searcher.version()}"

    def close(self) -> None:
        """Let go of files and connections."""
        self._parts.close()

    # --- parts -----------------------------------------------------------------------------

    @property
    def reader(self) -> LogReader:
        """This thread's reader: a reader scans one input at a time."""
        reader: LogReader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = self._parts.make_reader()
        return reader

    def _language(self, reading: LogReading) -> Language:
        if self.settings.lang == "zh":
            return "zh"
        if self.settings.lang == "en":
            return "en"
        return detect_language(reading.description)

    def entries_of(self, found: SearchResult) -> dict[str, Entry]:
        """The entries behind the hits, by id."""
        cases = self.knowledge.case_by_id
        return {
            hit.entry_id: cases.get(hit.entry_id) or self.store.get(hit.entry_id)
            for hit in found.hits
        }

    def _warnings(
        self, reading: LogReading, language: Language, torch: str | None
    ) -> tuple[SettingWarning, ...]:
        from kb.advice import lint_reading

        return lint_reading(reading, self.knowledge.advice, torch=torch, language=language)


def _empty_reading() -> LogReading:
    return LogReading(incident=Incident(), events=(), description="", excerpt="")
