"""The real knowledge base behind the faces: the same answer everywhere, and what is added stays."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

from app.cli import main as cli
from app.cli.common import State
from app.slack.files import readable
from app.slack.requests import SlackFile
from app.slack.service_calls import READ_S
from kb.chat.chat import Chat
from kb.settings import Settings
from kb.types.incident import LogReading
from kb.types.vocabulary import Language
from tests.app.face_inputs import FILE_SETS, INPUTS, WATCHDOG
from tests.app.mcp.conftest import run_session

if TYPE_CHECKING:
    from kb.service import Service

Serve = Callable[[object, Settings], AbstractContextManager[str]]


@pytest.fixture(scope="module")
def api(real: Service, real_settings: Settings, serve: Serve) -> Iterator[httpx.Client]:
    """A client of a server with the real service."""
    with (
        serve(real, real_settings) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client


def command_line(
    settings: Settings, words: list[str], capfd: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Exit code and output of one command line."""
    code = cli.run(words, state=State(settings_source=lambda: settings))
    return code, capfd.readouterr().out


class _StaysOpen:
    """The real service as commands have it, opened once: of each its own takes seconds."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def close(self) -> None:
        """The fixture closes it."""


def diagnose_command(
    service: Service, words: list[str], capfd: pytest.CaptureFixture[str]
) -> tuple[int, Any]:
    """Exit code and answer of `timeout-kb diagnose`."""
    state = State(open_service=lambda *_, **__: _StaysOpen(service))  # type: ignore[arg-type,return-value]
    code = cli.run(["diagnose", *words, "--format", "json"], state=state)
    return code, json.loads(capfd.readouterr().out)


def diagnose_over_mcp(service: Service, folder: Path, arguments: dict[str, Any]) -> Any:
    """The structured answer of the tool, uncut."""
    result = run_session(
        service,
        folder,
        lambda client: client.call_tool("diagnose", arguments | {"detail": "full"}),
    )
    assert not result.is_error, result.content
    return result.structured_content


@pytest.mark.parametrize("name", INPUTS)
def test_every_face_names_the_same_causes_in_the_same_order(
    real: Service,
    api: httpx.Client,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
) -> None:
    """Python, command line, MCP, the API by JSON, raw body and form, and the chat agree."""
    text = INPUTS[name]
    path = tmp_path / "job.log"
    path.write_text(text, encoding="utf-8")
    diagnosis = real.diagnose_text(text)
    code, of_command = diagnose_command(real, [str(path)], capfd)
    answers = [
        of_command,
        diagnose_over_mcp(real, tmp_path, {"text": text}),
        diagnose_over_mcp(real, tmp_path, {"paths": ["job.log"]}),
        api.post("/v1/diagnose", json={"text": text}).json(),
        api.put("/v1/diagnose", content=text.encode()).json(),
        api.post("/v1/diagnose", files=[("file", ("job.log", text.encode()))]).json(),
        api.post("/v1/diagnose/batch", json={"items": [{"text": text}]}).json()["items"][0][
            "diagnosis"
        ],
    ]
    told = api.post("/v1/chat", json={"message": text}, headers={"Accept": "application/json"})
    if diagnosis.status == "no_timeout":
        assert told.json()["diagnosis"] is None
    else:
        answers.append(told.json()["diagnosis"])
    expected = (
        diagnosis.status,
        diagnosis.language,
        [(cause.id, cause.probability) for cause in diagnosis.causes],
    )
    for answer in answers:
        causes = [(cause["id"], cause["probability"]) for cause in answer["causes"]]
        assert (answer["status"], answer["language"], causes) == expected
    assert code == (0 if diagnosis.status == "diagnosed" else 3)


def put_into(folder: Path, contents: dict[str, bytes]) -> list[Path]:
    """The files, written into a folder of their own."""
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", FILE_SETS)
def test_every_face_reads_the_same_files_alike(
    real: Service,
    api: httpx.Client,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
    language: Language,
) -> None:
    """Logs with evidence beside them, in any order: the same causes, probabilities and ranks."""
    rows = FILE_SETS[name]
    paths = put_into(tmp_path / "logs", rows.files)
    dumps = put_into(tmp_path / "dumps", rows.dumps)
    options = [word for path in dumps for word in ("--dump", str(path))]
    options += ["--lang", language]
    parts = [("file", (path.name, path.read_bytes())) for path in paths]
    parts += [("dump", (path.name, path.read_bytes())) for path in dumps]
    _, of_command = diagnose_command(real, [*map(str, paths), *options], capfd)
    arguments = {"paths": [*map(str, paths)], "dumps": [*map(str, dumps)], "lang": language}
    answers = [
        msgspec.to_builtins(real.answer(real.read_paths(paths, dumps=dumps), language=language)),
        of_command,
        diagnose_over_mcp(real, tmp_path, arguments),
        api.post(f"/v1/diagnose?lang={language}", files=parts).json(),
    ]
    if rows.logs == 1:  # of several logs the first is the one that may begin with words
        backwards = real.answer(real.read_paths(paths[::-1], dumps=dumps), language=language)
        answers.append(msgspec.to_builtins(backwards))
    if not dumps:
        talk = Chat(real)
        reply = talk.begin(read_in_slack(real, paths), language=language)
        answers.append(msgspec.to_builtins(reply.diagnosis))
        answers.append(diagnose_command(real, [str(tmp_path / "logs"), *options], capfd)[1])
    if len(paths) == 1 and not dumps:
        body = paths[0].read_bytes()
        answers.append(api.put(f"/v1/diagnose?lang={language}", content=body).json())
    views = [verdict_of(answer) for answer in answers]
    assert views == [views[0]] * len(views)


def read_in_slack(service: Service, paths: list[Path]) -> LogReading:
    """What the bot reads of files attached to a message."""
    files = [SlackFile(id=path.name, name=path.name) for path in paths]
    logs, others = readable(files)
    assert [file.name for file in logs] == [path.name for path in paths], others
    return service.read_paths(paths, limit_s=READ_S)


def verdict_of(answer: dict[str, Any]) -> object:
    """What must be the same: status, causes with probabilities, ranks and who is at fault."""
    incident = answer["incident"]
    return (
        answer["status"],
        [(cause["id"], cause["probability"]) for cause in answer["causes"]],
        [(rank["rank"], rank["state"]) for rank in incident["ranks"]],
        [culprit["rank"] for culprit in incident["culprit_ranks"]],
    )


@pytest.mark.parametrize(
    "name", ["log-and-kernel", "kernel-packed", "kernel-as-dump", "kernel-alone", "chinese"]
)
def test_a_kernel_log_is_read_as_one(real: Service, tmp_path: Path, name: str) -> None:
    """A card that fell off the bus decides; it is no line of the job, however it came."""
    rows = FILE_SETS[name]
    paths = put_into(tmp_path / "logs", rows.files)
    answer = real.answer(real.read_paths(paths, dumps=put_into(tmp_path / "dumps", rows.dumps)))
    assert answer.causes[0].id == "gpu-hardware"
    sources = [item.source for item in answer.causes[0].evidence]
    assert sources[0] == "fact:xid_hardware_fatal"


@pytest.mark.parametrize(("language", "label"), [("en", "Not read"), ("zh", "未能读取")])
def test_a_file_that_cannot_be_read_is_told_beside_the_answer(
    api: httpx.Client,
    real_settings: Settings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    language: str,
    label: str,
) -> None:
    """A hostile dump and an empty log do not stop the others; only when all are so is it wrong."""
    hostile = b"\x80\x02cos\nsystem\n."
    log, empty, dump = tmp_path / "a.log", tmp_path / "b.log", tmp_path / "dump_3"
    log.write_text(INPUTS["oom"], encoding="utf-8")
    empty.write_bytes(b"")
    dump.write_bytes(hostile)
    line = ["diagnose", str(log), str(empty), "--dump", str(dump), "--lang", language]
    code, out = command_line(real_settings, line, capfd)
    form = [("file", log.read_bytes()), ("file", b""), ("dump", hostile)]
    files = [
        (field, (path.name, content))
        for path, (field, content) in zip((log, empty, dump), form, strict=True)
    ]
    answer = api.post(f"/v1/diagnose?lang={language}", files=files)
    told = answer.json()["incident"]["unread"]
    assert (code, answer.status_code) == (0, 200)
    assert [item["file"] for item in told] == ["b.log", "dump_3"]
    assert "os system" in told[1]["reason"]
    assert re.search(rf"^{label} +b.log[:：]", out, re.MULTILINE)
    for item in told:
        assert re.search(rf" {item['file']}[:：] ?{item['reason'][:12]}", out)
    assert api.post("/v1/diagnose", files=files[1:]).status_code == 400


def test_names_too_long_for_a_file_are_cut(api: httpx.Client) -> None:
    """A name of a hundred Chinese characters takes three hundred bytes."""
    log = INPUTS["oom"].replace("14217", "14219")
    name = "训" * 90 + "-rank5.log"
    answer = api.post("/v1/diagnose", files=[("file", (name, log.encode()))])
    assert answer.json()["status"] == "diagnosed"
    added = api.post("/v1/entries", json={"text": log, "name": name})
    assert added.json()["added"] == 1


def test_a_setting_is_found_by_its_name(
    api: httpx.Client, real_settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    """Search and show say what a setting does, what is wrong with it, and where that stands."""
    found = api.get("/v1/search", params={"q": "NCCL_TIMEOUT"}).json()["settings"]
    assert [item["id"] for item in found] == ["NCCL_TIMEOUT"]
    effect, page = found[0]["effect"]["en"], found[0]["sources"][0]
    for verb in ("search", "show"):
        line = [verb, "NCCL_TIMEOUT", "--lang", "en"]
        code, out = command_line(real_settings, line, capfd)
        told = " ".join(out.split())
        assert (code, told.startswith(f"NCCL_TIMEOUT: {effect}")) == (0, True)
        assert "no effect" in told
        assert page in out
    assert api.get("/v1/search", params={"q": "checkpoint hang"}).json()["settings"] == []


def test_quotes_are_pieces_of_the_input(real: Service) -> None:
    """Every quote from the log stands literally in it."""
    for text in INPUTS.values():
        for cause in real.diagnose_text(text).causes:
            for item in cause.evidence:
                if item.kind == "log":
                    assert item.quote in text


def test_added_logs_are_found_resolved_and_deleted(api: httpx.Client) -> None:
    """An added log is searchable on return, without its secrets; its outcome is kept; it can go."""
    log = (
        "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n"
        "zyxmodel/trainer.py:7 zyxquux_barrier is stuck\n"
        + WATCHDOG.format(rank=1, seq=4711, op="REDUCE_SCATTER", numel=99)
    )
    added = api.post("/v1/entries", json={"text": log, "name": "zyx.log"})
    assert added.status_code == 201, added.text
    identifier = added.json()["ids"][0]
    assert added.headers["location"] == f"/v1/entries/{identifier}"
    stored = api.get(f"/v1/entries/{identifier}")
    assert "hf_abcdefghijklmnop" not in stored.text
    assert stored.json()["resolved"] is False
    hits = api.get("/v1/search", params={"q": log, "kind": "incident"}).json()["hits"]
    assert hits[0]["entry_id"] == identifier
    again = api.post("/v1/entries", json={"text": log, "name": "zyx.log"}).json()
    assert (again["added"], again["unchanged"]) == (0, 1)
    body = {"cause": "gpu-hardware", "fix": "replaced the card", "commands": ["nvidia-smi -q"]}
    resolved = api.post(f"/v1/entries/{identifier}/resolve", json=body)
    assert resolved.status_code == 200, resolved.text
    entry = api.get(f"/v1/entries/{identifier}").json()
    assert entry["causes"][0] == {"id": "gpu-hardware", "status": "confirmed", "source": ""}
    assert entry["resolved"] is True
    assert entry["fixes"][0]["title"]["en"] == "replaced the card"
    found = api.get("/v1/search", params={"q": log, "cause": "gpu-hardware", "kind": "incident"})
    assert [hit["entry_id"] for hit in found.json()["hits"]] == [identifier]
    assert api.delete(f"/v1/entries/{identifier}").status_code == 204
    assert api.get(f"/v1/entries/{identifier}").status_code == 404


def test_two_logs_of_one_name_are_two_entries(api: httpx.Client) -> None:
    """An upload never replaces another person's file of the same name."""
    logs = [WATCHDOG.format(rank=1, seq=seq, op="ALLREDUCE", numel=5) for seq in (801, 802)]
    answers = [
        api.post("/v1/entries", files=[("file", ("job.log", log.encode()))]).json() for log in logs
    ]
    identifiers = [answer["ids"][0] for answer in answers]
    assert len(set(identifiers)) == 2
    assert {api.get(f"/v1/entries/{each}").status_code for each in identifiers} == {200}
    for each in identifiers:
        api.delete(f"/v1/entries/{each}")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        pytest.param("POST", "/v1/entries", {"text": "hello"}, 400, id="nothing-in-it"),
        pytest.param("POST", "/v1/entries", {"text": "x", "name": "../x"}, 422, id="bad-name"),
        pytest.param("DELETE", "/v1/entries/none", None, 404, id="delete-nothing"),
        pytest.param(
            "POST", "/v1/entries/none/resolve", {"cause": "unknown", "fix": "x"}, 404, id="resolve"
        ),
        pytest.param(
            "POST", "/v1/feedback", {"verdict": "right", "cause": "nobody"}, 400, id="feedback"
        ),
    ],
)
def test_writing_refuses_what_it_cannot_take(
    api: httpx.Client, method: str, path: str, body: object, status: int
) -> None:
    """Refusals are problems and change nothing."""
    response = api.request(method, path, json=body)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_reviewed_cases_cannot_be_changed_here(api: httpx.Client, real: Service) -> None:
    """They are files in data/; deleting or resolving them is refused."""
    identifier = real.knowledge.cases[0].id
    assert api.delete(f"/v1/entries/{identifier}").status_code == 400
    body = {"cause": "unknown", "fix": "x"}
    assert api.post(f"/v1/entries/{identifier}/resolve", json=body).status_code == 400
    assert api.get(f"/v1/cases/{identifier}").status_code == 200


def test_feedback_is_kept_in_order_without_secrets(api: httpx.Client) -> None:
    """What was said comes back as said, e-mail addresses aside."""
    for verdict in ("right", "wrong"):
        body = {
            "verdict": verdict,
            "cause": "rank-crash",
            "actual": "gpu-hardware",
            "comment": "ask me@example.com",
        }
        assert api.post("/v1/feedback", json=body).status_code == 201
    kept = api.get("/v1/feedback").json()["items"]
    assert [item["feedback"]["verdict"] for item in kept] == ["right", "wrong"]
    assert "me@example.com" not in json.dumps(kept)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b" \n\n", "is empty", id="blank"),
        pytest.param(b"\x7fELF" + bytes(4096), "is a program, not a log", id="program"),
        pytest.param(b"\x89PNG\r\n" + bytes(4096), "is an image, not a log", id="image"),
    ],
)
def test_files_that_are_no_logs(
    real_settings: Settings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    content: bytes,
    said: str,
) -> None:
    """Exit code 2 and one line that says what the file is and what to do."""
    path = tmp_path / "x.log"
    path.write_bytes(content)
    code = cli.run(["diagnose", str(path)], state=State(settings_source=lambda: real_settings))
    captured = capfd.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err.startswith("error: ")
    assert said in captured.err
    assert " — " in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030", "utf-8-sig"])
def test_encodings_read_alike(
    real: Service,
    real_settings: Settings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    encoding: str,
) -> None:
    """The same Chinese text in any usual encoding has the same answer."""
    path = tmp_path / "x.log"
    path.write_bytes(INPUTS["zh-log"].encode(encoding))
    _, out = command_line(real_settings, ["diagnose", str(path), "--format", "json"], capfd)
    answer = json.loads(out)
    expected = real.diagnose_text(INPUTS["zh-log"])
    assert answer["language"] == "zh"
    assert [cause["id"] for cause in answer["causes"]] == [cause.id for cause in expected.causes]


def test_diagnosing_loads_nothing_heavy(real: Service, real_settings: Settings, root: Path) -> None:
    """The path of ``timeout-kb diagnose`` imports no torch, no web framework, no page."""
    assert real.health().ready
    heavy = [
        "torch",
        "sentence_transformers",
        "transformers",
        "fastapi",
        "starlette",
        "uvicorn",
        "streamlit",
        "sklearn",
        "slack_bolt",
        "openai",
        "bs4",
        "jieba",
        "rich",
    ]
    code = (
        "import sys; from pathlib import Path; from app.cli import main as cli;"
        "from app.cli.common import State; from kb.settings import Settings;"
        f"state = State(settings_source=lambda: Settings(home=Path({str(real_settings.home)!r})));"
        "cli.run(['diagnose', '-'], state=state);"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        input=INPUTS["oom"].encode(),
        capture_output=True,
        check=True,
    )
    assert done.stderr.decode().splitlines()[-1] == "[]"
    assert done.stdout.startswith(b"A process ran out of GPU memory")
