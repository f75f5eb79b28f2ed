"""A service that honours the contract of the real one, for the faces' own tests."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
import uvicorn

from app.api import create_app
from kb.errors import InputError, NotFoundError
from kb.knowledge import Knowledge, read_yaml
from kb.settings import Settings
from kb.types import (
    DIAGNOSIS_SCHEMA,
    AnswerCheck,
    AnswerCulprit,
    AnswerFix,
    AnswerIncident,
    AnswerMoment,
    Bilingual,
    Cause,
    CauseClaim,
    Diagnosis,
    DiagnosisStatus,
    Entry,
    Evidence,
    Fact,
    Filters,
    FirstError,
    Fix,
    Hit,
    Language,
    NextStep,
    RankedCause,
    RankState,
    SearchResult,
    Section,
    SettingWarning,
    SimilarCase,
    Source,
    Tags,
    Wave,
)

MAX_BODY = 64 * 1024  # of the test servers
TIMEOUT_MARK = "Watchdog caught collective operation timeout"
ERROR_MARK = "OutOfMemoryError"
LOG = (
    "step 100 loss 2.5\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
)
UNDECIDED_LOG = LOG.replace(ERROR_MARK, "SomethingElse")


def both(zh: str, en: str) -> Bilingual:
    """A text in both languages."""
    return Bilingual(zh=zh, en=en)


def make_cause(identifier: str, zh: str, en: str) -> Cause:
    """A small cause."""
    return Cause(
        id=identifier,
        title=both(zh, en),
        definition=both(f"{zh}的定义", f"what {en} is"),
        shows=(both("日志里", "in the log"),),
        confirms=(both("证实", "it is"),),
        refutes=(both("排除", "it is not"),),
        restart="will_not_help",
        restart_reason=both("会再来", "it comes back"),
        fixes=(
            Fix(
                id=f"{identifier}/fix",
                title=both("修", "mend it"),
                steps=(both("第一步", "first step"),),
                commands=("nvidia-smi -q",),
            ),
        ),
        sources=("https://example.org/docs",),
    )


def make_entry(identifier: str, cause: str, *, kind: str = "case") -> Entry:
    """A small entry in both languages."""
    return Entry(
        id=identifier,
        kind=kind,  # type: ignore[arg-type]
        language="both",
        title=both(f"{identifier} 的标题", f"title of {identifier}"),
        project="owner/name",
        url=f"https://example.org/{identifier}",
        date="2024-06-18",
        status="confirmed",
        causes=(CauseClaim(id=cause, status="confirmed"),),
        fixes=(),
        tags=Tags(backend="nccl", ops=("ALLREDUCE",), stage="train", frameworks=("fsdp",)),
        signature=("OpType=ALLREDUCE",),
        sections=(
            Section(role="symptoms", title="现象", text="卡住了", language="zh"),
            Section(role="symptoms", title="Symptom", text="it hung", language="en"),
        ),
        chunks=(),
        source_key=f"/private/{identifier}.md",
        digest=f"digest-of-{identifier}",
        sources=(Source(url=f"https://example.org/{identifier}"),),
    )


CAUSES = (
    make_cause("rank-crash", "有一个 rank 先崩溃", "One rank crashed first"),
    make_cause("collective-mismatch", "各 rank 的集合通信不一致", "Ranks issued other collectives"),
)
ENTRIES = (
    make_entry("first-case", "rank-crash"),
    make_entry("second-case", "collective-mismatch"),
    make_entry("thread-0123456789abcdef", "rank-crash", kind="thread"),
)


def make_incident(lines: Sequence[str]) -> AnswerIncident:
    """The incident of `LOG`, with the first error at the line it stands in."""
    hits = [(number, line) for number, line in enumerate(lines, start=1) if ERROR_MARK in line]
    first = FirstError(rank=3, line=hits[0][0], kind="cuda-oom", text=hits[0][1]) if hits else None
    return AnswerIncident(
        backend="nccl",
        op="ALLREDUCE",
        seq=14217,
        numel_in=1,
        numel_out=1,
        timeout_ms=600000,
        ran_ms=600029,
        process_group="default_pg",
        stage="train",
        world_size=8,
        frameworks=("fsdp",),
        versions={"torch": "2.3.1"},
        settings={"NCCL_TIMEOUT": "7200"},
        transport=("NET/IB",),
        ranks_reporting=(0, 1, 2, 4, 5, 6, 7),
        ranks_silent=(3,),
        culprit_ranks=(AnswerCulprit(rank=3, reason="last enqueued 14216, others wait"),),
        first_error=first,
        waves=(Wave(first_line=3, last_line=3, op="ALLREDUCE"),),
        timeline=(AnswerMoment(time="12:00:01", rank=3, what="out of memory", line=2),),
        ranks=(
            RankState(rank=1, state="waiting", last_enqueued=14217, last_completed=14216),
            RankState(rank=3, state="crashed", last_enqueued=14216, last_completed=14216),
        ),
        fault_type="",
        facts=(Fact(name="rank_behind", line=3),),
        lines=len(lines),
        bytes=sum(len(line) + 1 for line in lines),
    )


def make_ranked(cause: Cause, probability: float, quote: str, language: Language) -> RankedCause:
    """A ranked cause with one piece of evidence for it and one against."""
    return RankedCause(
        id=cause.id,
        title=cause.title.get(language),
        probability=probability,
        band="likely" if probability > 0.5 else "unlikely",
        evidence=(
            Evidence(kind="log", quote=quote, line=2, weight=2.0, source="oom", reason="first"),
            Evidence(kind="prior", quote="", line=0, weight=-0.5, source="prior", reason="rare"),
        ),
        fixes=(
            AnswerFix(
                id="fix",
                title="Use less memory" if language == "en" else "少用显存",
                steps=("Halve the batch",),
                commands=("python train.py \\\n  --batch 4",),
                status="confirmed",
                applies_to="torch>=2.2",
                caution="slower",
                sources=("https://example.org/fix",),
            ),
        ),
        checks=(AnswerCheck(command="dmesg -T | grep -i oom", tells="whether", outcomes=("yes",)),),
        restart=cause.restart,
        restart_reason=cause.restart_reason.get(language),
        cases=("first-case",),
    )


@dataclass
class FakeService:
    """Diagnoses by two marks in the text; everything else as the contract says."""

    knowledge: Knowledge
    closed: bool = False
    streamed: int = 0
    quote: str = ""
    failure: Exception | None = None
    ready: bool = True
    asked: list[dict[str, object]] = field(default_factory=list)

    def reset(self) -> None:
        """Forget what tests did."""
        self.closed, self.streamed, self.quote = False, 0, ""
        self.failure, self.ready = None, True
        self.asked.clear()

    def diagnose_text(
        self,
        text: str,
        *,
        language: Language | None = None,
        top: int | None = None,
        torch: str | None = None,
    ) -> Diagnosis:
        """A diagnosis of pasted text."""
        self.asked.append({"language": language, "top": top, "torch": torch})
        if self.failure:
            raise self.failure
        if not text.strip():
            raise InputError("the input is empty", todo="paste the log")
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
        """A diagnosis of files."""
        texts = []
        for path in (*paths, *dumps):
            if not path.exists():
                raise InputError(f"{path} does not exist", todo="check the path")
            if path.is_file():
                texts.append(path.read_text(encoding="utf-8", errors="replace"))
        return self.diagnose_text("\n".join(texts), language=language, top=top, torch=torch)

    def diagnose_stream(
        self,
        chunks: Iterable[bytes],
        *,
        name: str = "",
        language: Language | None = None,
        top: int | None = None,
        torch: str | None = None,
    ) -> Diagnosis:
        """A diagnosis of a stream, whose bytes are counted."""
        head = b""
        for chunk in chunks:
            self.streamed += len(chunk)
            head = (head + chunk)[: 1 << 20]
        return self.diagnose_text(
            head.decode("utf-8", "replace"), language=language, top=top, torch=torch
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
            facets={"kinds": {"case": 2, "thread": 1}},
            took_ms=1.0,
        )

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
        raise NotFoundError(f"no entry {identifier!r}", todo="search for it")

    def entries(
        self,
        *,
        filters: Filters = Filters(),  # noqa: B008 - a frozen value
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[Entry, ...]:
        """A page of entries."""
        return tuple(self._passing(filters)[offset : offset + limit])

    def causes(self) -> tuple[Cause, ...]:
        """All causes."""
        return self.knowledge.causes

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

    def health(self) -> object:
        """As `ready` says."""

        @dataclass(frozen=True)
        class Health:
            """What the real one gives."""

            ready: bool = self.ready
            problems: tuple[str, ...] = () if self.ready else ("the index is missing",)
            entries: int = 3
            cases: int = 2

        return Health()

    def close(self) -> None:
        """Remember that it happened."""
        self.closed = True


@pytest.fixture(scope="session")
def labels(data_dir: Path) -> dict[str, Bilingual]:
    """The shipped labels."""
    return read_yaml(data_dir / "labels.yaml", dict[str, Bilingual])


@pytest.fixture(scope="module")
def shared_service(labels: dict[str, Bilingual]) -> FakeService:
    """The fake of a module and its server."""
    knowledge = Knowledge(
        digest="0" * 64,
        causes=CAUSES,
        patterns=(),
        cues=(),
        facts=(),
        advice=(),
        cases=ENTRIES[:2],
        labels=labels,
    )
    return FakeService(knowledge=knowledge)


@pytest.fixture
def service(shared_service: FakeService) -> FakeService:
    """The fake, as new."""
    shared_service.reset()
    return shared_service


@pytest.fixture
def log() -> str:
    """A log the fake diagnoses."""
    return LOG


@pytest.fixture
def undecided_log() -> str:
    """A log with a timeout the fake cannot explain."""
    return UNDECIDED_LOG


@pytest.fixture
def diagnosis(service: FakeService) -> Diagnosis:
    """The answer to `LOG`, in English."""
    return service.diagnose_text(LOG, language="en")


@pytest.fixture
def hostile(service: FakeService) -> Callable[[str], Diagnosis]:
    """Puts a text into every place of an answer that comes from outside."""

    def build(text: str) -> Diagnosis:
        answer = service.diagnose_text(LOG, language="en")
        lead = answer.causes[0]
        evidence = tuple(replace(item, quote=text, source=text) for item in lead.evidence)
        first = FirstError(rank=3, line=2, kind=text, text=text, file=text)
        incident = replace(
            answer.incident,
            op=text,
            process_group=text,
            first_error=first,
            versions={text: text},
            culprit_ranks=(AnswerCulprit(rank=3, reason=text),),
            timeline=(AnswerMoment(time=text, rank=3, what=text, line=2),),
            ranks=(RankState(rank=1, state=text, host=text),),
        )
        cases = tuple(replace(case, title=text, url=text, why=(text,)) for case in answer.cases)
        warnings = tuple(replace(item, setting=text, source=text) for item in answer.warnings)
        return replace(
            answer,
            summary=text,
            incident=incident,
            causes=(replace(lead, evidence=evidence),),
            cases=cases,
            warnings=warnings,
            next=(NextStep(command=text, why=text),),
        )

    return build


@pytest.fixture
def api_settings(tmp_path: Path) -> Settings:
    """Settings of a small server: bodies up to 64 KiB."""
    return Settings(home=tmp_path / "home", max_body=MAX_BODY, port=0)


@pytest.fixture(scope="module")
def server(shared_service: FakeService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server on a free port of this machine, started once a module."""
    home = tmp_path_factory.mktemp("server")
    with running(shared_service, Settings(home=home, max_body=MAX_BODY)) as address:
        yield address


@contextlib.contextmanager
def running(service: object, settings: Settings) -> Iterator[str]:
    """Serve in a thread until the block ends."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    app = create_app(service, settings)  # type: ignore[arg-type]
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        # The socket listens once the server runs; until then connecting is refused and tried again.
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        transport = httpx.HTTPTransport(retries=8)
        with httpx.Client(transport=transport) as client:
            client.get(f"{address}/healthz")
        yield address
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="session")
def serve() -> Callable[[object, Settings], contextlib.AbstractContextManager[str]]:
    """Runs a server of its own for any service and settings."""
    return running


@pytest.fixture
def client(server: str) -> Iterator[httpx.Client]:
    """A client of `server`."""
    with httpx.Client(base_url=server) as client:
        yield client


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[Any]]:
    """The log lines of a test, kept instead of printed."""
    with structlog.testing.capture_logs() as lines:
        yield lines
