"""`/v1/chat` over real HTTP: events as they come, JSON at once, transcripts, failures."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.auth import add_key, keys_path
from app.api.responses import event
from kb.chat.types import Change, Question, Reply, Statement
from kb.errors import StoreError
from kb.saved import save_diagnosis
from kb.settings import Settings
from tests.app.fake_chat import CHANGES, QUESTION, STATEMENTS, FakeChat

if TYPE_CHECKING:
    from kb.service import Service
    from tests.app.fakes import FakeService

Serve = Callable[..., AbstractContextManager[str]]
EVENTS = {"Accept": "text/event-stream"}
JSON = {"Accept": "application/json"}
WAIT_S = 60
SECRET = "hf_" + "a1B2" * 8
REAL_LOG = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    f"export HF_TOKEN={SECRET}\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=14217, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600029 milliseconds before timing out.\n"
)


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    name: str
    data: Any


def parse(lines: Iterator[str]) -> Iterator[Event]:
    """Events by the standard's rules: fields, a blank line ends one, ``:`` starts a comment."""
    name, data = "message", []
    for line in lines:
        if not line:
            if data:
                yield Event(name, json.loads("\n".join(data)))
            name, data = "message", []
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)


def post(client: httpx.Client, **body: Any) -> list[Event]:
    """All events of one message."""
    with client.stream("POST", "/v1/chat", json=body, headers=EVENTS) as response:
        response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(parse(iter(response.text.split("\n"))))


@pytest.fixture(scope="module")
def shared_chat() -> FakeChat:
    """The chat of the module's server."""
    return FakeChat()


@pytest.fixture(scope="module")
def chat_server(
    shared_service: FakeService,
    serve: Serve,
    shared_chat: FakeChat,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The address of a server with `chat`."""
    settings = Settings(home=tmp_path_factory.mktemp("chat"), max_body=64 * 1024)
    with serve(shared_service, settings, shared_chat) as address:
        yield address


@pytest.fixture
def chat(shared_chat: FakeChat) -> FakeChat:
    """The chat, as new."""
    shared_chat.reset()
    return shared_chat


@pytest.fixture
def talk(chat_server: str, chat: FakeChat) -> Iterator[httpx.Client]:
    """A client of the server with `chat`."""
    with httpx.Client(base_url=chat_server, timeout=60) as client:
        yield client


def test_a_reply_comes_as_events(talk: httpx.Client, chat: FakeChat) -> None:
    """The id first, then each statement, what belongs to the reply, and last the whole of it."""
    found = post(talk, message="为什么？", lang="zh")
    assert [item.name for item in found] == [
        "conversation",
        "statement",
        "statement",
        "question",
        "changes",
        "done",
    ]
    reply = msgspec.convert(found[-1].data, Reply)
    assert reply.statements == STATEMENTS
    said = [msgspec.convert(item.data, Statement) for item in found[1:3]]
    assert tuple(said) == STATEMENTS
    assert msgspec.convert(found[3].data, Question) == QUESTION
    assert msgspec.convert(found[4].data, tuple[Change, ...]) == CHANGES
    assert found[0].data == {"id": reply.conversation}
    assert chat.asked == [("为什么？", reply.conversation, "zh")]


def test_json_gives_the_reply_at_once(talk: httpx.Client) -> None:
    """With Accept: application/json the answer is the last event's data."""
    response = talk.post("/v1/chat", json={"message": "why?"}, headers=JSON)
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-language"] == "en"
    reply = msgspec.convert(response.json(), Reply)
    assert (reply.statements, reply.question, reply.number) == (STATEMENTS, QUESTION, 1)


def test_a_conversation_goes_on(talk: httpx.Client) -> None:
    """The id leads on; its transcript has both turns; forgotten, it is gone."""
    first = post(talk, message="why?")[0].data["id"]
    again = post(talk, message="how sure?", conversation=first)
    assert (again[0].data["id"], again[-1].data["number"]) == (first, 2)
    kept = talk.get(f"/v1/chat/{first}").json()
    assert [turn["asked"] for turn in kept["turns"]] == ["why?", "how sure?"]
    assert talk.delete(f"/v1/chat/{first}").status_code == 204
    for response in (talk.get(f"/v1/chat/{first}"), talk.delete(f"/v1/chat/{first}")):
        assert (response.status_code, response.json()["type"][-9:]) == (404, "not-found")


def test_conversations_of_slack_open_no_link(talk: httpx.Client, chat: FakeChat) -> None:
    """Their ids are made of names that everyone there knows: here they are as good as unknown."""
    private = "slack:T1:D1:direct"
    chat.say("why?", conversation=private, create=True)
    kept = chat.kept[private]
    answers = [
        talk.get(f"/v1/chat/{private}"),
        talk.delete(f"/v1/chat/{private}"),
        talk.post("/v1/chat", json={"message": "which rank?", "conversation": private}),
    ]
    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert chat.kept == {private: kept}


def test_failures_are_problems(talk: httpx.Client, chat: FakeChat) -> None:
    """Nothing to answer, unknown ids, bad bodies: problem JSON with its status, in both forms."""
    tries = [
        ({"message": "  "}, 400, "bad-input"),
        ({"message": "x", "conversation": "nowhere"}, 404, "not-found"),
        ({"diagnosis": "nowhere"}, 404, "not-found"),
        ({"message": "x", "lang": "fr"}, 422, "invalid-body"),
        ({"message": "x", "extra": 1}, 422, "invalid-body"),
        ({"message": "x" * 70_000}, 413, "too-large"),
        ({"message": "refused"}, 400, "bad-input"),
    ]
    for body, status, code in tries:
        for accept in (EVENTS, JSON):
            response = talk.post("/v1/chat", json=body, headers=accept)
            assert response.headers["content-type"] == "application/problem+json"
            problem = response.json()
            assert (response.status_code, problem["type"]) == (
                status,
                f"urn:timeout-kb:problem:{code}",
            )
            assert problem["todo"]
    response = talk.post("/v1/chat", json={"message": "x"}, headers={"Accept": "image/png"})
    assert response.status_code == 406
    chat.failure = StoreError("the disk is full", todo="make room")
    for accept in (EVENTS, JSON):
        response = talk.post("/v1/chat", json={"message": "x"}, headers=accept)
        assert (response.status_code, response.json()["detail"]) == (500, "the disk is full")


@pytest.mark.parametrize(
    ("body", "query", "header", "expected"),
    [
        ({"lang": "zh"}, {"lang": "en"}, "en", "zh"),
        ({}, {"lang": "zh"}, "en", "zh"),
        ({}, {}, "zh-CN,zh;q=0.9", "zh"),
        ({}, {}, "", None),
    ],
)
def test_the_language_is_the_callers(
    talk: httpx.Client,
    chat: FakeChat,
    body: dict[str, str],
    query: dict[str, str],
    header: str,
    expected: str | None,
) -> None:
    """The body goes before the address, the address before the header; else the chat decides."""
    headers = {**JSON, "Accept-Language": header}
    talk.post("/v1/chat", json={"message": "x", **body}, params=query, headers=headers)
    assert chat.asked[-1][2] == expected


def test_keys_are_wanted(
    service: FakeService, api_settings: Settings, serve: Serve, chat: FakeChat
) -> None:
    """Where there are keys, chatting wants one that may read."""
    key = add_key(keys_path(api_settings), "tests", "read")
    with serve(service, api_settings, chat) as address:
        url = f"{address}/v1/chat"
        assert httpx.post(url, json={"message": "x"}).status_code == 401
        headers = {**JSON, "Authorization": f"Bearer {key}"}
        assert httpx.post(url, json={"message": "x"}, headers=headers).status_code == 200


@given(st.text())
def test_any_text_survives_the_framing(text: str) -> None:
    """What goes into an event comes out, whatever line breaks it has."""
    data = text.encode("utf-8", "replace").decode()
    (back,) = parse(iter(event("statement", data).decode().split("\n")))
    assert back == Event("statement", data)


# --- the real chat -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_talk(real: Service, real_settings: Settings, serve: Serve) -> Iterator[httpx.Client]:
    """A client of a server with the real chat."""
    with (
        serve(real, real_settings) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client


def test_a_pasted_log_is_diagnosed(real_talk: httpx.Client, real: Service) -> None:
    """The events hold the diagnosis the service gives; the secret of the log is in none."""
    found = post(real_talk, message=REAL_LOG, lang="en")
    (diagnosis,) = [item.data for item in found if item.name == "diagnosis"]
    expected = real.diagnose_text(REAL_LOG, language="en")
    assert [cause["id"] for cause in diagnosis["causes"]] == [c.id for c in expected.causes]
    assert SECRET not in json.dumps([item.data for item in found])
    identifier = found[0].data["id"]
    assert SECRET not in real_talk.get(f"/v1/chat/{identifier}").text
    again = post(real_talk, message="which rank was first?", conversation=identifier)
    assert "rank 3" in json.dumps(again[-1].data["statements"]).lower()


def test_a_kept_diagnosis_can_be_talked_about(real_talk: httpx.Client, real: Service) -> None:
    """With the id of a kept diagnosis the chat knows the incident, with and without a message."""
    kept = save_diagnosis(real, real.judge(real.read_text(REAL_LOG)))
    alone = post(real_talk, diagnosis=kept.id, lang="en")
    assert alone[-1].name == "done"
    assert alone[-1].data["diagnosis"]["causes"][0]["id"] == kept.en.causes[0].id
    asked = post(real_talk, diagnosis=kept.id, message="which rank was first?", lang="en")
    assert "rank 3" in json.dumps(asked[-1].data["statements"]).lower()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_reads_it(real_talk: httpx.Client) -> None:
    """`curl -N` prints the events."""
    command = [
        "curl",
        "-sN",
        f"{real_talk.base_url}/v1/chat",
        "-H",
        "Content-Type: application/json",
    ]
    body = json.dumps({"message": "NCCL_TIMEOUT 有用吗？"})
    done = subprocess.run(
        [*command, "-d", body], check=True, capture_output=True, text=True, timeout=60
    )
    found = list(parse(iter(done.stdout.split("\n"))))
    assert [found[0].name, found[-1].name] == ["conversation", "done"]
    assert found[-1].data["language"] == "zh"
