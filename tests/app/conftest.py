"""What tests of the faces share: a fake service, servers of it, the shipped labels."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
import uvicorn

from app.api import create_app
from app.server.http_protocol import BoundedHead
from kb.bootstrap import open_service
from kb.knowledge.load import Knowledge, read_labels
from kb.knowledge.notes import load_note
from kb.service import Service
from kb.settings import Settings
from kb.types.answer import AnswerCulprit, AnswerMoment, Diagnosis, NextStep
from kb.types.incident import FirstError, RankState
from kb.types.knowledge import Bilingual
from tests.app.fakes import FakeService
from tests.app.samples import CAUSES, ENTRIES, LOG, UNDECIDED_LOG

NOTES = ("connection-closed-by-peer", "meaning-seqnum", "timeout-ddp")  # that the fake knows
MAX_BODY = 64 * 1024  # of the test servers

Started = tuple["subprocess.Popen[str]", str]  # a server's process and its address


@pytest.fixture(scope="session")
def labels(data_dir: Path) -> dict[str, Bilingual]:
    """The shipped labels."""
    return read_labels(data_dir / "labels")


@pytest.fixture(scope="module")
def shared_service(
    labels: dict[str, Bilingual], data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FakeService]:
    """The fake of a module and its server."""
    knowledge = Knowledge(
        digest="0" * 64,
        causes=CAUSES,
        events=(),
        frameworks=(),
        patterns=(),
        cues=(),
        facts=(),
        advice=(),
        cases=ENTRIES[:2],
        labels=labels,
        notes=tuple(load_note(data_dir / "notes" / f"{name}.md") for name in NOTES),
    )
    service = FakeService(knowledge=knowledge, home=tmp_path_factory.mktemp("fake"))
    yield service
    service.close()


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
def running(service: object, settings: Settings, chat: object = None) -> Iterator[str]:
    """Serve in a thread until the block ends."""
    listening = socket.socket(proto=socket.IPPROTO_TCP)  # named: answers are not delayed
    listening.bind(("127.0.0.1", 0))
    app = create_app(service, settings, chat=chat)  # type: ignore[arg-type]
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", http=BoundedHead))
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


@pytest.fixture(scope="module")
def real_settings(built_home: Callable[[], Path]) -> Settings:
    """Settings with a state folder of the module's own and the shipped data."""
    return Settings(home=built_home())


@pytest.fixture(scope="module")
def real(real_settings: Settings) -> Iterator[Service]:
    """The real service."""
    service = open_service(real_settings)
    yield service
    service.close()


@pytest.fixture(scope="session")
def start(root: Path) -> Callable[..., contextlib.AbstractContextManager[Started]]:
    """Starts a server as a process of its own, on a free port; killed at the end."""

    @contextlib.contextmanager
    def start(home: Path, **variables: str) -> Iterator[Started]:
        with subprocess.Popen(
            [sys.executable, "-c", "from app.cli.main import main; main()", "serve", "--port", "0"],
            cwd=root,
            env={"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(home), **variables},
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            try:
                assert running.stderr is not None
                said = ""
                for line in running.stderr:
                    said += line
                    if "Try:" in line:
                        break
                found = re.search(r"answers on (http://\S+) ", said)
                assert found, said
                yield running, found[1]
            finally:
                running.kill()

    return start


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
