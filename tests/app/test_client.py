"""The client against real servers: the same values, errors with the next step, patience."""

from __future__ import annotations

import contextlib
import http.server
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import httpx
import msgspec
import pytest

from app.api.auth import add_key, keys_path
from app.client import ApiError, Client
from app.inputs.contributions import Feedback, Resolution
from kb.bootstrap import open_service
from kb.chat.types import Statement
from kb.errors import InputError, KBError, NotFoundError
from kb.settings import Settings
from kb.types.entries import Filters

if TYPE_CHECKING:
    from kb.service import Service

Serve = Callable[[object, Settings], AbstractContextManager[str]]

WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
    "ran for 600029 milliseconds before timing out.\n"
)
LOG = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n" + WATCHDOG.format(
    rank=1, seq=14217
)
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def settings(built_home: Callable[[], Path]) -> Settings:
    """Settings of a server that wants keys."""
    return Settings(home=built_home(), public_url="https://kb.example.org")


@pytest.fixture(scope="module")
def real(settings: Settings) -> Iterator[Service]:
    """The real service."""
    service = open_service(settings)
    yield service
    service.close()


@pytest.fixture(scope="module")
def address(real: Service, settings: Settings, serve: Serve) -> Iterator[str]:
    """The address of a server that wants keys."""
    add_key(keys_path(settings), "somebody else", "read")
    with serve(real, settings) as address:
        yield address


@pytest.fixture(scope="module")
def api(address: str, settings: Settings) -> Iterator[Client]:
    """A client with a key that may do everything."""
    key = add_key(keys_path(settings), "tests", "admin", per_minute=100_000)
    with Client(address, key) as client:
        yield client


def test_text_file_and_stream_give_the_diagnosis_of_the_service(
    api: Client, real: Service, tmp_path: Path
) -> None:
    """The answer is the service's own, its time aside, whatever way the log was sent."""
    path = tmp_path / "job.log"
    path.write_text(LOG)
    expected = real.diagnose_text(LOG, language="zh", top=1)
    for source in (LOG, path, iter([LOG[:50].encode(), LOG[50:].encode()])):
        answer = api.diagnose(source, language="zh", top=1)
        assert (answer.schema, answer.language, answer.causes, answer.incident.ranks) == (
            expected.schema,
            "zh",
            expected.causes,
            expected.incident.ranks,
        )


def test_a_log_with_dumps_is_one_run(api: Client, tmp_path: Path) -> None:
    """Files and a text go with dumps; a stream cannot, and says so."""
    log, dump = tmp_path / "rank1.log", tmp_path / "nccl_trace_rank_0.json"
    log.write_text(LOG)
    dump.write_text(
        '{"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", '
        '"ranks": "[0, 1]"}}, "entries": [{"record_id": 0, "pg_id": 0, '
        '"process_group": ["0", "default_pg"], "collective_seq_id": 1, "p2p_seq_id": 0, '
        '"op_id": 1, "profiling_name": "nccl:all_reduce", "time_created_ns": 1, '
        '"input_sizes": [[1]], "input_dtypes": ["Float"], "output_sizes": [[1]], '
        '"output_dtypes": ["Float"], "state": "scheduled", "time_discovered_started_ns": null, '
        '"time_discovered_completed_ns": null, "retired": false, "timeout_ms": 600000, '
        '"is_p2p": false}]}'
    )
    with_file = api.diagnose(log, dumps=[dump], language="en")
    with_text = api.diagnose(LOG, dumps=[dump], language="en")
    for answer in (with_file, with_text):
        assert answer.causes[0].id == "rank-crash"
        assert {0, 1} <= {state.rank for state in answer.incident.ranks}
    with pytest.raises(InputError, match="a stream cannot go together with dumps"):
        api.diagnose(iter([b"x"]), dumps=[dump])


def test_a_kept_answer_has_an_id_and_a_page(api: Client) -> None:
    """What is kept is read again by its id."""
    answer = api.keep(LOG, language="en")
    assert answer.page == f"https://kb.example.org/?d={answer.id}"
    assert api.saved(answer.id, language="en").causes == answer.diagnosis.causes
    assert api.saved(answer.id, language="zh").language == "zh"


def test_reading_gives_the_values_of_the_service(api: Client, real: Service) -> None:
    """Search, cases of all pages, causes and lint are those of the service."""
    found = api.search("NCCL timeout at the end of the epoch", filters=Filters(kinds=("case",)))
    own = real.search("NCCL timeout at the end of the epoch", filters=Filters(kinds=("case",)))
    assert found.hits == own.hits
    wanted = Filters(kinds=("case",), backends=("nccl",))
    listed = [entry.id for entry in api.cases(Filters(backends=("nccl",)))]
    assert listed == [entry.id for entry in real.entries(filters=wanted, limit=1000)]
    assert len(listed) > 100
    ascend = [entry.id for entry in api.cases(Filters(hardware=("Ascend 910B",)))]
    assert ascend == real.store.ids(Filters(kinds=("case",), hardware=("ascend",))) != []
    but_one = [entry.id for entry in api.entries(Filters(exclude_ids=(listed[0],)))]
    assert listed[0] not in but_one
    assert listed[1] in but_one
    assert api.causes() == real.knowledge.causes
    assert [note.id for note in api.notes()] == [note.id for note in real.knowledge.notes]
    assert api.note("timeout-ddp") == real.note("timeout-ddp")
    question = "how to set the timeout of DDP"
    assert api.search(question).notes == real.search(question).notes != ()
    assert api.case(listed[0]).title == real.entry(listed[0]).title
    assert api.lint("export NCCL_TIMEOUT=7200", language="en") == real.lint(
        "export NCCL_TIMEOUT=7200", language="en"
    )


def test_writing_adds_resolves_deletes_and_keeps_feedback(api: Client, tmp_path: Path) -> None:
    """Texts and files become entries, outcomes are theirs, feedback comes back."""
    path = tmp_path / "two.log"
    path.write_text(WATCHDOG.format(rank=3, seq=801))
    text = api.add(WATCHDOG.format(rank=2, seq=800), name="one.log")
    files = api.add([path])
    assert (text.added, files.added) == (1, 1)
    (identifier,) = files.ids
    resolved = api.resolve(identifier, Resolution(cause="gpu-hardware", fix="replaced the card"))
    assert api.entry(identifier) == resolved
    assert resolved.causes[0].id == "gpu-hardware"
    said = Feedback(verdict="right", cause="rank-crash", diagnosis="abc")
    stored = api.feedback(said)
    assert stored.feedback == said
    assert api.feedback(said).id == stored.id  # of one key the last word counts
    wrong = Feedback(verdict="wrong", cause="rank-crash", diagnosis="abc")
    assert api.change_feedback(stored.id, wrong).feedback == wrong
    api.delete_feedback(stored.id)
    with pytest.raises(NotFoundError):
        api.delete_feedback(stored.id)
    api.delete(identifier)
    assert api.restore(identifier) == resolved
    api.delete(identifier)
    with pytest.raises(NotFoundError):
        api.entry(identifier)


@pytest.mark.parametrize(("language", "what"), [("zh", "二进制文件"), ("en", "a binary file")])
def test_a_wrong_file_is_told_by_its_own_name(
    address: str, settings: Settings, language: str, what: str
) -> None:
    """In the caller's language, without the folder it lay in on the server."""
    key = add_key(keys_path(settings), f"told {language}", "read")
    refused = httpx.post(
        f"{address}/v1/diagnose",
        files=[("file", ("tool.bin", b"\x7fELF" + bytes(4096)))],
        headers={"accept-language": language, "x-api-key": key},
        timeout=60,
    )
    problem = refused.json()
    assert (refused.status_code, problem["type"]) == (400, "urn:timeout-kb:problem:bad-input")
    assert "tool.bin" in problem["detail"]
    assert what in problem["detail"]
    assert "/" not in problem["detail"]


def test_refusals_are_the_errors_of_the_core_with_their_next_step(
    api: Client, address: str, tmp_path: Path
) -> None:
    """Bad input, an unknown id, a wrong key and nobody there each say what to do."""
    with pytest.raises(InputError, match="is a binary file, not a text log"):
        api.diagnose(iter([b"\x7fELF" + bytes(4096)]))
    with pytest.raises(NotFoundError):
        api.case("../keys.json")
    with pytest.raises(InputError, match="No such file"):
        api.diagnose(tmp_path / "missing.log")
    with Client(address, "tkb_wrong") as stranger, pytest.raises(ApiError) as refused:
        stranger.causes()
    assert (refused.value.status, refused.value.code) == (401, "wrong-key")
    assert "timeout-kb keys add" in refused.value.todo
    assert refused.value.request_id
    with Client("http://127.0.0.1:1") as nobody, pytest.raises(ApiError) as gone:
        nobody.causes()
    assert (gone.value.status, gone.value.code) == (0, "unreachable")
    assert "timeout-kb serve" in gone.value.todo
    with pytest.raises(InputError, match="no address of a server"):
        Client("train.log")


# --- a server that answers what a test wants ----------------------------------------------------


class Scripted(http.server.BaseHTTPRequestHandler):
    """Answers the requests of a test in turn and remembers their bodies."""

    answers: ClassVar[list[tuple[int, dict[str, str], bytes]]] = []
    bodies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        """Read the body and give the next answer."""
        self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        status, headers, body = self.answers.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST  # noqa: N815 - the name the base class looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def scripted() -> Iterator[str]:
    """The address of a server that answers what `Scripted` is told."""
    Scripted.answers.clear()
    Scripted.bodies.clear()
    server = http.server.HTTPServer(("127.0.0.1", 0), Scripted)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_busy_server_is_asked_again_with_the_whole_body(scripted: str, tmp_path: Path) -> None:
    """429 and 503 are waited for as Retry-After says, never longer than half a minute."""
    path = tmp_path / "job.log"
    path.write_bytes(LOG.encode())
    Scripted.answers += [
        (503, {"Retry-After": "3"}, b""),
        (429, {"Retry-After": "9999"}, b""),
        (503, {}, b""),
        (200, {}, b"{}"),
    ]
    waited: list[float] = []
    with Client(scripted, sleep=waited.append) as client, pytest.raises(ApiError) as odd:
        client.diagnose(path)
    assert waited == [3.0, 30.0, 1.0]
    assert Scripted.bodies == [LOG.encode()] * 4
    assert "same version" in odd.value.todo


def test_patience_ends_and_a_stream_is_sent_once(scripted: str) -> None:
    """The fourth refusal is the error; what cannot be sent again is not."""
    busy = (503, {"Retry-After": "1"}, b"come back later")
    Scripted.answers += [busy] * 5
    waited: list[float] = []
    with Client(scripted, sleep=waited.append) as client:
        with pytest.raises(ApiError, match="come back later") as refused:
            client.lint("x")
        assert (refused.value.status, len(waited)) == (503, 3)
        with pytest.raises(ApiError), contextlib.closing(client):
            client.diagnose(iter([b"x"]))
    assert len(waited) == 3


def test_events_are_read_as_the_standard_says(scripted: str) -> None:
    """Comments and unknown events are passed over, data lines joined; an error is raised."""
    statement = '{"role": "note",\ndata: "text": "two lines"}'
    problem = (
        '{"type": "urn:timeout-kb:problem:bad-input", "title": "", "status": 400, '
        '"detail": "too long", "instance": "", "todo": "shorten it", "request_id": "r"}'
    )
    body = (
        f": hello\n\nevent: statement\ndata: {statement}\n\nevent: later\ndata: 1\n\n"
        f"event: error\ndata: {problem}\n\n"
    )
    Scripted.answers.append((200, {"Content-Type": "text/event-stream"}, body.encode()))
    with Client(scripted) as client:
        events = client.chat("why?", "c1")
        assert next(events).value == Statement(role="note", text="two lines")
        with pytest.raises(InputError, match="too long — shorten it"):
            next(events)
    assert Scripted.bodies == [b'{"message":"why?","conversation":"c1","diagnosis":""}']


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_text_of_a_log_ends_no_line_of_the_stream(scripted: str, sign: str) -> None:
    """Only CR and LF do: what Python splits at as well must not make events out of a log."""
    said = f"a{sign}{sign}event: error{sign}data: {{}}{sign}{sign}b"
    data = msgspec.json.encode(Statement(role="note", text=said))
    body = b"event: statement\r\ndata: " + data + b"\r\n\r\nevent: statement\rdata: {\r\r"
    Scripted.answers.append((200, {"Content-Type": "text/event-stream"}, body + b": end\n"))
    with Client(scripted) as client:
        events = client.chat("why?", "c1")
        assert next(events).value == Statement(role="note", text=said)
        with pytest.raises(ApiError, match="something else than expected"):
            next(events)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        pytest.param("http://127.0.0.1:port", "", id="port"),
        pytest.param("http://[::1", "", id="bracket"),
        pytest.param("http://127.0.0.1:1", "ключ", id="key"),
        pytest.param("http://127.0.0.1:1", "tkb_a\n", id="key-of-two-lines"),
    ],
)
def test_what_no_request_can_be_made_of_is_refused(address: str, key: str) -> None:
    """At once and in words, not with a traceback at the first request."""
    with pytest.raises(InputError):
        Client(address, key)


def test_a_password_in_the_address_is_not_told() -> None:
    """Errors are printed into logs of jobs."""
    with Client("http://ana:hunter22@127.0.0.1:1") as client, pytest.raises(ApiError) as failed:
        client.causes()
    assert "hunter22" not in str(failed.value)
    assert "@127.0.0.1:1" in str(failed.value)


def test_a_chat_goes_on_under_the_id_it_began_with(api: Client) -> None:
    """The first event names the conversation, the last has the whole reply."""
    first = list(api.chat(LOG, language="en"))
    identifier = first[0].value["id"]
    reply = first[-1].value
    assert [event.name for event in first][:1] == ["conversation"]
    assert (reply.conversation, reply.diagnosis.causes[0].id) == (identifier, "rank-crash")
    said = tuple(event.value for event in first if event.name == "statement")
    assert said == reply.statements
    second = list(api.chat("which rank?", identifier, language="en"))
    assert second[-1].value.number == reply.number + 1
    with pytest.raises(NotFoundError):
        next(api.chat("hello", "no-such-conversation"))


MEMORY = """
import resource, sys
from pathlib import Path
from app.client import Client
with Client(sys.argv[1]) as client:
    client.diagnose("warm up, NCCL timeout")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = client.diagnose(Path(sys.argv[2])).incident.lines
print(lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_large_file_is_sent_in_constant_memory(
    real: Service, tmp_path: Path, serve: Serve, root: Path
) -> None:
    """A file of 200 MiB costs the client less than a tenth of that."""
    path = tmp_path / "large.log"
    line = b"step 100 loss 2.5, everything as usual here\n"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(line * (MIB // len(line)))
        file.write(LOG.encode())
    with serve(real, Settings(home=tmp_path)) as open_address:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, open_address, str(path)],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
    lines, grown_kib = map(int, done.stdout.split())
    assert lines == 200 * (MIB // len(line)) + 2
    assert grown_kib < 20 * 1024


def test_without_httpx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named, and it is an error of the core."""
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(KBError, match=r"timeout-kb\[client\]"):
        Client("http://127.0.0.1:8000")
