"""A service that honours the contract of the real one, for the faces' own tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Unpack

from kb.components import AnswerOptions, HealthReport
from kb.diagnose.evidence_model import Ranking
from kb.diagnose.verdict import Verdict
from kb.errors import InputError, NotFoundError
from kb.incidents.records import IncidentRecord, records_of
from kb.knowledge.load import Knowledge
from kb.settings import Settings
from kb.store import Store
from kb.types.answer import (
    AnswerCheck,
    AnswerNotice,
    Diagnosis,
    LogSummary,
    NextStep,
    SettingWarning,
    SimilarCase,
)
from kb.types.entries import Entry, Filters, Hit, NoteHit, SearchResult
from kb.types.incident import Incident, LogReading, Unread
from kb.types.knowledge import Bilingual, Note
from kb.types.vocabulary import DIAGNOSIS_SCHEMA, DiagnosisStatus, Language
from tests.app.samples import (
    ENTRIES,
    ERROR_MARK,
    TIMEOUT_MARK,
    make_first_fix,
    make_headline,
    make_incident,
    make_ranked,
)


@dataclass
class FakeService:
    """Diagnoses by two marks in the text; the store is a real one below `home`."""

    second_reader: ClassVar[None] = None  # no language model reads along
    knowledge: Knowledge
    home: Path
    closed: bool = False
    streamed: int = 0
    quote: str = ""
    failure: Exception | None = None
    ready: bool = True
    asked: list[dict[str, object]] = field(default_factory=list)
    _store: Store | None = None
    _resets: int = 0

    def reset(self) -> None:
        """Forget what tests did."""
        self._resets += 1
        self.closed, self.streamed, self.quote = False, 0, ""
        self.failure, self.ready = None, True
        self.asked.clear()
        if self._store is not None:
            self._store.close()
            self._store = None
            for path in self.home.iterdir():
                path.unlink()

    @property
    def settings(self) -> Settings:
        """Settings with the fake's state folder."""
        return Settings(home=self.home)

    @property
    def store(self) -> Store:
        """A real store, opened on first use."""
        if self._store is None:
            self._store = Store.open(self.home / "kb.sqlite3")
        return self._store

    def read_text(self, text: str) -> LogReading:
        """A reading that holds nothing but the text."""
        if self.failure:
            raise self.failure
        if not text.strip():
            raise InputError("the input is empty", todo="paste the log", reason="empty")
        return LogReading(incident=Incident(), events=(), words=text, excerpt="")

    def read_stream(self, chunks: Iterable[bytes], *, limit_s: float = math.inf) -> LogReading:
        """A reading of the first MiB of a stream, whose bytes are counted."""
        head = b""
        for chunk in chunks:
            self.streamed += len(chunk)
            head = (head + chunk)[: 1 << 20]
        return self.read_text(head.decode("utf-8", "replace"))

    def read_paths(
        self, paths: Sequence[Path], *, dumps: Sequence[Path] = (), limit_s: float = math.inf
    ) -> LogReading:
        """A reading of files, one after the other; those with NULs are named as not read."""
        texts, unread = [], []
        for path in (*paths, *dumps):
            if not path.exists():
                raise InputError(f"{path} does not exist", todo="check the path")
            if path.is_file() and b"\0" in path.read_bytes():
                unread.append(Unread(file=path.name, reason="is binary", code="binary"))
            elif path.is_file():
                texts.append(path.read_text(encoding="utf-8", errors="replace"))
        reading = self.read_text("\n".join(texts))
        return replace(reading, incident=Incident(unread=tuple(unread)))

    def diagnose_text(self, text: str, **options: Unpack[AnswerOptions]) -> Diagnosis:
        """A diagnosis of pasted text."""
        return self.answer(self.read_text(text), **options)

    def answer(self, reading: LogReading, **options: Unpack[AnswerOptions]) -> Diagnosis:
        """The diagnosis of a reading."""
        verdict = self.judge(reading, torch=options.get("torch"))
        return self.render(verdict, language=options.get("language"), top=options.get("top"))

    def judge(self, reading: LogReading, *, torch: str | None = None) -> Verdict:
        """A verdict that holds the reading alone."""
        return Verdict(
            reading=reading,
            status="unknown",
            ranking=Ranking(causes=(), unknown=1.0),
            signals=(),
            hits=(),
            entries={},
            votes={},
            torch=torch or "",
        )

    def render(
        self, verdict: Verdict, *, language: Language | None = None, top: int | None = None
    ) -> Diagnosis:
        """The diagnosis of the verdict's reading."""
        self.asked.append({"language": language, "top": top, "torch": verdict.torch or None})
        text = verdict.reading.words
        lines = text.splitlines()
        status: DiagnosisStatus = "no_timeout"
        if TIMEOUT_MARK in text:
            status = "diagnosed" if ERROR_MARK in text else "unknown"
        zh = any("\u4e00" <= char <= "\u9fff" for char in text)
        spoken: Language = language or ("zh" if zh else "en")
        quote = self.quote or (lines[1] if len(lines) > 1 else lines[0])
        shares = {"diagnosed": (0.7, 0.1), "unknown": (0.3, 0.2), "no_timeout": ()}[status]
        ranked = [
            make_ranked(cause, share, quote, spoken)
            for cause, share in zip(self.knowledge.causes, shares, strict=False)
        ]
        diagnosed = bool(ranked)
        return Diagnosis(
            schema=DIAGNOSIS_SCHEMA,
            status=status,
            language=spoken,
            summary="显存不足。" if spoken == "zh" else "Rank 3 ran out of memory.",
            incident=make_incident(lines),
            causes=tuple(ranked[:top] if top else ranked),
            unknown_probability=1 - sum(shares),
            cases=(
                SimilarCase(
                    id="first-case",
                    project="owner/name",
                    title="A case like this",
                    score=0.83,
                    cause="rank-crash",
                    url="https://example.org/first-case",
                    status="confirmed",
                    why=("same op",),
                    differs=("other torch",),
                ),
            )
            if diagnosed
            else (),
            warnings=(
                SettingWarning(
                    setting="NCCL_TIMEOUT",
                    verdict="no_effect",
                    explanation="read by nobody",
                    source="https://example.org/nccl",
                    line=1,
                ),
            )
            if diagnosed
            else (),
            next=(NextStep(command="py-spy dump --pid 1", why="where rank 3 stands"),),
            best_check=AnswerCheck(command="dmesg -T", tells="which", outcomes=())
            if diagnosed
            else None,
            took_ms=12.5,
            headline=make_headline(spoken) if diagnosed else "",
            first_fix=make_first_fix(ranked[0]) if status == "diagnosed" else None,
        )

    def search(
        self,
        query: str,
        *,
        filters: Filters = Filters(),  # noqa: B008 - a frozen value
        limit: int = 10,
        language: Language | None = None,
    ) -> SearchResult:
        """All entries that pass the filters."""
        found = self._passing(filters)[:limit]
        return SearchResult(
            query=query,
            hits=tuple(
                Hit(
                    entry_id=entry.id,
                    kind=entry.kind,
                    title=entry.title,
                    project=entry.project,
                    url=entry.url,
                    status=entry.status,
                    cause=entry.causes[0].id,
                    score=0.9 - 0.1 * place,
                    chunk_id=f"{entry.id}#0",
                    snippet="it hung",
                )
                for place, entry in enumerate(found)
            ),
            similar_enough="nothing" not in query,
            facets={"kind": {"case": 2, "thread": 1}},
            took_ms=1.0,
            notes=self._notes_of(query, language or "en"),
        )

    def _notes_of(self, query: str, language: Language) -> tuple[NoteHit, ...]:
        """A note for a question that speaks of one."""
        if "note" not in query:
            return ()
        return (NoteHit(note=self.note("meaning-seqnum"), score=0.5, language=language),)

    def note(self, identifier: str) -> Note:
        """One note."""
        if identifier in self.knowledge.note_by_id:
            return self.knowledge.note_by_id[identifier]
        what = f"no note is called {identifier!r}"
        raise NotFoundError(what, todo="see", reason="no_note", values={"id": identifier})

    def _passing(self, filters: Filters) -> list[Entry]:
        return [
            entry
            for entry in ENTRIES
            if (not filters.kinds or entry.kind in filters.kinds)
            and (not filters.causes or entry.causes[0].id in filters.causes)
        ]

    def entry(self, identifier: str) -> Entry:
        """One entry."""
        for entry in ENTRIES:
            if entry.id == identifier:
                return entry
        raise NotFoundError(
            f"no entry {identifier!r}",
            todo="search for it",
            reason="no_entry",
            values={"id": identifier},
        )

    def entries(
        self,
        *,
        filters: Filters = Filters(),  # noqa: B008 - a frozen value
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[Entry, ...]:
        """A page of entries."""
        return tuple(self._passing(filters)[offset : offset + limit])

    def incidents(self) -> tuple[IncidentRecord, ...]:
        """The incidents in the store."""
        return records_of(self.store.iter_entries(Filters(kinds=("incident",))))

    def summarise(self, reading: LogReading) -> LogSummary:
        """A title that names nothing, and no cause."""
        return LogSummary(title=Bilingual(zh="出事了", en="something happened"))

    def lint(
        self, text: str, *, language: Language | None = None, torch: str | None = None
    ) -> tuple[SettingWarning, ...]:
        """A warning where the text names NCCL_TIMEOUT."""
        if "NCCL_TIMEOUT" not in text:
            return ()
        return (
            SettingWarning(
                setting="NCCL_TIMEOUT",
                verdict="no_effect",
                explanation="没人读它" if language == "zh" else "read by nobody",
                source="https://example.org/nccl",
            ),
        )

    def notices_about(self, cause: str, language: Language) -> tuple[AnswerNotice, ...]:
        """None: there is no team."""
        return ()

    def health(self) -> HealthReport:
        """As `ready` says."""
        problems = () if self.ready else ("the index is missing",)
        return HealthReport(ready=self.ready, problems=problems, entries=3, cases=2)

    def version(self) -> str:
        """Changes with all that an answer depends on."""
        return f"{self._resets} {self.quote} {self.failure!r}"

    def close(self) -> None:
        """Remember that it happened; a store that was opened is closed."""
        self.closed = True
        if self._store is not None:
            self._store.close()
            self._store = None
