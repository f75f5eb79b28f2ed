"""The language model's client against a real server that misbehaves in every way."""

from __future__ import annotations

import builtins
import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.llm import OpenAIModel, check_llm_settings, retry_after_s
from kb.chat.model import ModelError, ModelRequest
from kb.errors import SettingsError
from kb.settings import Settings
from tests.app import fake_openai
from tests.app.fake_openai import FakeOpenAI

KEY = "sk-" + "k3y" * 10
DEADLINE_S = 1
SLACK_S = 3.0  # a busy machine; every hanging behaviour lasts far longer
REQUEST = ModelRequest(
    system="Rules.",
    evidence=("The first error is on rank 3 at line 812.", "The others waited."),
    question="why?",
    reminder="Cite.",
    language="en",
)


@pytest.fixture(scope="module")
def running() -> Iterator[FakeOpenAI]:
    """One server for the module."""
    with fake_openai.fake_openai() as fake:
        yield fake


@pytest.fixture
def server(running: FakeOpenAI) -> FakeOpenAI:
    """The server, as new."""
    running.reset(fake_openai.echo)
    return running


def settings_for(server: FakeOpenAI, **fields: Any) -> Settings:
    """Settings that name the fake."""
    values = {
        "llm_base_url": server.address,
        "llm_model": "words-1",
        "llm_api_key": KEY,
        "llm_timeout": DEADLINE_S,
    }
    return Settings(home=Path("unused"), **(values | fields))


def test_an_answer_streams(server: FakeOpenAI) -> None:
    """The pieces come as sent; the server gets rules, fenced data, the model's name and the key."""
    server.reset(fake_openai.says("Rank ", "3 [1]. ", "完了。"))
    assert list(OpenAIModel(settings_for(server)).stream(REQUEST)) == ["Rank ", "3 [1]. ", "完了。"]
    (body,) = map(json.loads, server.received)
    assert (body["model"], body["stream"], body["temperature"]) == ("words-1", True, 0)
    assert 0 < body["max_tokens"] <= 1000
    system, user = body["messages"]
    assert (system["role"], system["content"]) == ("system", "Rules.")
    assert "[1] The first error is on rank 3 at line 812.\n[2] The others" in user["content"]
    assert user["content"].endswith("Cite.")
    assert server.keys == [f"Bearer {KEY}"]


def test_pieces_arrive_before_the_end(server: FakeOpenAI) -> None:
    """The first piece is in the caller's hands while the server still holds the rest back."""
    told = threading.Event()

    def held(exchange: fake_openai.Exchange) -> None:
        exchange.head()
        exchange.say("first")
        told.wait(10)
        exchange.say("second")
        exchange.end()

    server.reset(held)
    answer = OpenAIModel(settings_for(server, llm_timeout=20)).stream(REQUEST)
    assert next(answer) == "first"
    told.set()
    assert list(answer) == ["second"]


FAILURES = {
    "429 for ever": fake_openai.too_many("0"),
    "429 too long": fake_openai.too_many("3600"),
    "429 with a date": fake_openai.too_many("Wed, 21 Oct 2099 07:28:00 GMT"),
    "slow first token": fake_openai.slow_first_token,
    "headers then silence": fake_openai.headers_then_silence,
    "slow drip": fake_openai.slow_drip,
    "comments only": fake_openai.keeps_alive,
    "cut mid chunk": fake_openai.cut_mid_stream,
    "cut between events": fake_openai.cut_between_events,
    "malformed json": fake_openai.raw("data: {broken\n\n"),
    "json of another shape": fake_openai.raw('data: {"choices": "none"}\n\ndata: [1, "x"]\n\n'),
    "choices of another shape": fake_openai.raw(
        'data: {"choices": [7, {"delta": "x"}, {"delta": {"content": {"a": 1}}}]}\n\n'
    ),
    "a bare string": fake_openai.raw('data: "hello"\n\n'),
    "no utf-8": fake_openai.raw("data: \udcff\n\n".encode("utf-8", "replace").decode("latin-1")),
    "malformed events": fake_openai.raw("\n\n:::\nid\nevent\n\n\x00\n"),
    "an error event": fake_openai.raw('data: {"error": {"message": "overloaded"}}\n\n'),
    "400": fake_openai.fails(400),
    "500": fake_openai.fails(500),
    "503": fake_openai.fails(503),
    "401": fake_openai.fails(401),
    "404": fake_openai.fails(404),
    "empty answer": fake_openai.says(),
    "blank answer": fake_openai.says(" ", "\n"),
    "web page": fake_openai.raw("<html>hello</html>", kind="text/html"),
    "no stream": fake_openai.raw(
        '{"choices": [{"message": {"content": "x"}}]}', kind="application/json"
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_every_failure_is_a_model_error_in_time(
    server: FakeOpenAI, name: str, caplog: pytest.LogCaptureFixture, logged: list[Any]
) -> None:
    """Whatever a server does, the caller gets a ModelError soon, and no trace of the key."""
    server.reset(FAILURES[name])
    caplog.set_level(logging.DEBUG)
    started = time.monotonic()
    with pytest.raises(ModelError) as caught:
        list(OpenAIModel(settings_for(server)).stream(REQUEST))
    assert time.monotonic() - started < DEADLINE_S + SLACK_S
    assert caught.value.todo
    assert KEY not in f"{caught.value!r} {caught.value} {caplog.text} {logged}"
    assert [line["detail"] for line in logged] == [caught.value.what]
    assert len(server.received) <= 2


def test_nobody_there(server: FakeOpenAI) -> None:
    """A port nobody listens on is told with the address to check."""
    settings = settings_for(server, llm_base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9"):
        list(OpenAIModel(settings).stream(REQUEST))


def test_a_short_wait_is_worth_a_second_try(server: FakeOpenAI) -> None:
    """After 429 the request goes out once more, no sooner than Retry-After says."""
    server.reset(fake_openai.too_many("0.3", then=fake_openai.says("here")))
    started = time.monotonic()
    assert list(OpenAIModel(settings_for(server, llm_timeout=10)).stream(REQUEST)) == ["here"]
    assert time.monotonic() - started >= 0.3
    assert len(server.received) == 2


def test_newer_models_are_asked_their_way(server: FakeOpenAI) -> None:
    """A model that refuses the usual limits gets the newer one, from then on at once."""

    def picky(exchange: fake_openai.Exchange) -> None:
        if "max_tokens" in exchange.body or "temperature" in exchange.body:
            exchange.problem(400)
        else:
            fake_openai.says("here")(exchange)

    server.reset(picky)
    model = OpenAIModel(settings_for(server))
    assert [list(model.stream(REQUEST)) for _ in range(2)] == [["here"], ["here"]]
    limits = [json.loads(text).get("max_completion_tokens") for text in server.received]
    assert len(limits) == 3
    assert limits[0] is None
    assert 0 < limits[1] == limits[2] <= 1000


def test_an_endless_answer_ends_at_the_deadline(server: FakeOpenAI) -> None:
    """A server that says more than anybody reads is cut off in time too."""

    def floods(exchange: fake_openai.Exchange) -> None:
        exchange.head()
        while not exchange.done.is_set():
            exchange.say("more ")

    server.reset(floods)
    started = time.monotonic()
    with pytest.raises(ModelError, match="did not finish"):
        for _ in OpenAIModel(settings_for(server)).stream(REQUEST):
            pass
    assert time.monotonic() - started < DEADLINE_S + SLACK_S


def test_a_reader_that_leaves_ends_the_work(server: FakeOpenAI) -> None:
    """Closing the answer hangs up: the server notices long before it would have ended."""
    server.reset(fake_openai.slow_drip)
    answer = OpenAIModel(settings_for(server, llm_timeout=30)).stream(REQUEST)
    assert next(answer) == "a"
    answer.close()  # type: ignore[attr-defined]
    assert server.broken.wait(5)
    assert wait_for(lambda: not threads())


def threads() -> list[threading.Thread]:
    """The threads that read answers."""
    return [thread for thread in threading.enumerate() if thread.name == "language-model"]


def wait_for(condition: Any, *, seconds: float = 5) -> bool:
    """Whether `condition` becomes true in time."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < deadline:
        if condition():
            return True
        pause.wait(0.02)
    return False


def test_no_thread_outlives_its_answer(server: FakeOpenAI) -> None:
    """After a deadline the reading thread ends by itself."""
    server.reset(fake_openai.keeps_alive)
    with pytest.raises(ModelError, match="did not finish within 1 s"):
        list(OpenAIModel(settings_for(server)).stream(REQUEST))
    assert wait_for(lambda: not threads())


def test_secrets_do_not_leave(server: FakeOpenAI) -> None:
    """Evidence and question are redacted once more before they are sent."""
    secret = "hf_" + "a1B2" * 8
    request = replace(
        REQUEST,
        evidence=(f"line 3: export HF_TOKEN={secret}", "mail me: someone@example.org"),
        question=f"password=hunter2-{secret}",
    )
    server.reset(fake_openai.says("ok"))
    list(OpenAIModel(settings_for(server)).stream(request))
    (text,) = server.received
    for leaked in (secret, "hunter2", "someone@example.org"):
        assert leaked not in text
    assert text.count("<redacted:") >= 3


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"llm_base_url": "ftp://host/v1"}, "TIMEOUT_KB_LLM_BASE_URL='ftp://host/v1'"),
        ({"llm_base_url": "host:8080"}, "TIMEOUT_KB_LLM_BASE_URL"),
        ({"llm_base_url": "http:///v1"}, "TIMEOUT_KB_LLM_BASE_URL"),
        ({"llm_base_url": "http://me:pass@host/v1"}, "TIMEOUT_KB_LLM_BASE_URL"),
        ({"llm_model": ""}, "TIMEOUT_KB_LLM_MODEL"),
    ],
)
def test_wrong_settings_are_named(server: FakeOpenAI, fields: Any, named: str) -> None:
    """The error names the key and what to set; a password in the address is not repeated."""
    with pytest.raises(SettingsError) as caught:
        check_llm_settings(settings_for(server, **fields))
    assert named in caught.value.what
    assert caught.value.todo
    assert "pass@" not in str(caught.value)


def test_a_missing_client_says_what_to_install(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the package the error has the command that installs it."""
    real_import = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "openai":
            raise ImportError(name)
        return real_import(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SettingsError, match=r"pip install 'timeout-kb\[llm\]'"):
        OpenAIModel(settings_for(server))


def test_the_key_is_not_shown(server: FakeOpenAI) -> None:
    """Neither the model nor the settings print the key."""
    settings = settings_for(server)
    shown = repr(OpenAIModel(settings))
    assert "words-1" in shown
    assert KEY not in shown + repr(settings)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("2", 2.0), ("0.5", 0.5), ("", None), ("-1", None), ("nan", None), ("inf", None), ("x", None)],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    """Only a finite number of seconds counts."""
    assert retry_after_s(header) == seconds
