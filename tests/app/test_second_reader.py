"""The faces with a language model that reads along: the command line and the API."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main as cli
from app.cli.common import State
from kb.bootstrap import open_service
from kb.service import Service
from kb.settings import Settings
from tests.app.conftest import running
from tests.kb.second_reader.conftest import HANG, ChatServer


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """The model's server."""
    server = ChatServer()
    server.says({"shm-limits": 0.95}, shm_limits="Training on two nodes hangs")
    yield server
    server.close()


@pytest.fixture
def with_model(model: ChatServer, built_home: Callable[[], Path]) -> Settings:
    """Settings with that model, fully trusted."""
    return Settings(
        home=built_home(),
        llm_base_url=model.url,
        llm_model="tiny",
        llm_timeout=2,
        llm_trust="1",
        max_body=1 << 20,
    )


@pytest.fixture
def service(with_model: Settings) -> Iterator[Service]:
    """A service with it."""
    opened = open_service(with_model)
    yield opened
    opened.close()


@pytest.fixture
def patient(with_model: Settings) -> Iterator[Service]:
    """A service that waits for the model as long as a busy machine may take."""
    opened = open_service(replace(with_model, llm_timeout=60))
    yield opened
    opened.close()


@pytest.fixture
def gate(model: ChatServer) -> Iterator[threading.Event]:
    """The model answers once it is open."""
    opened = threading.Event()
    answer = model.answer

    def late(question: dict[str, Any]) -> str:
        opened.wait(60)
        return answer(question)

    model.answer = late
    yield opened
    opened.set()


@pytest.fixture
def run(
    with_model: Settings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command; `{log}` is a file with the paste."""
    path = tmp_path / "job.log"
    path.write_text(HANG)

    def go(*words: str, settings: Settings = with_model) -> tuple[int, str, str]:
        filled = [word.format(log=path) for word in words]
        code = cli.run(filled, state=State(settings_source=lambda: settings))
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return go


def test_the_command_line_prints_the_answer_and_then_the_change(
    run: Callable[..., tuple[int, str, str]], model: ChatServer
) -> None:
    """Ours whole, then what the model says, with the shares before; where it goes is told."""
    code, out, err = run("diagnose", "{log}", "--lang", "en")
    first, _, second = out.partition("With the language model")
    assert code == 0
    assert "Language model" not in first
    assert "shared memory" in second.lower()
    assert "tiny-1" in second
    assert "It would ask: Which switch?" in second
    assert model.url in err


def test_a_script_gets_one_answer(run: Callable[..., tuple[int, str, str]]) -> None:
    """As JSON there is one object, with the model's opinion in it."""
    _, out, _ = run("diagnose", "{log}", "--format", "json")
    answer = json.loads(out)
    assert answer["causes"][0]["id"] == "shm-limits"
    assert answer["second_reader"]["top"][0]["id"] == "shm-limits"


def test_a_model_that_fails_costs_a_line(
    run: Callable[..., tuple[int, str, str]], model: ChatServer
) -> None:
    """The answer is ours; the line says why."""
    model.status = 503
    _, out, _ = run("diagnose", "{log}", "--lang", "en")
    assert "no opinion, its server answered with status 503" in out
    assert "With the language model" not in out


def test_the_first_answer_does_not_wait(
    run: Callable[..., tuple[int, str, str]], model: ChatServer, with_model: Settings
) -> None:
    """A model that hangs takes its limit and no more, and only after the answer."""
    model.delay_s = 20
    started = time.monotonic()
    _, out, _ = run(
        "diagnose", "{log}", "--lang", "en", settings=replace(with_model, llm_timeout=1)
    )
    assert time.monotonic() - started < 10
    assert out.index("Other causes") < out.index("it took too long")


def test_the_api_waits_where_it_is_asked_to(service: Service, model: ChatServer) -> None:
    """``?wait=`` gives the pooled answer, without it the model is not asked."""
    with running(service, service.settings) as address:
        plain = httpx.post(f"{address}/v1/diagnose", content=HANG).json()
        waited = httpx.post(f"{address}/v1/diagnose?wait=10", content=HANG, timeout=60).json()
        asked = len(model.questions)
        again = httpx.post(f"{address}/v1/diagnose", content=HANG).json()
        refused = httpx.post(f"{address}/v1/diagnose?wait=-1", content=HANG)
    assert plain["second_reader"] is None
    assert waited["causes"][0]["id"] == "shm-limits"
    assert waited["second_reader"]["tokens"] == 750
    assert asked == 1
    assert again["causes"] == plain["causes"]
    assert refused.status_code == 422


def events_of(address: str, **more: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a stream as they come: name and data."""
    headers = {"Accept": "text/event-stream"} | more
    url = f"{address}/v1/diagnose"
    with httpx.stream("POST", url, content=HANG, headers=headers, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            key, _, value = line.partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                yield name, json.loads(value)


def test_the_api_streams_the_first_answer_and_the_better_one(
    patient: Service, gate: threading.Event
) -> None:
    """Ours before the model has answered; the pooled one after it, and again as the last."""
    with running(patient, patient.settings) as address:
        plain = httpx.post(f"{address}/v1/diagnose", content=HANG).json()
        events = events_of(address)
        first = next(events)
        gate.set()
        better, done = events
    assert [first[0], better[0], done[0]] == ["diagnosis", "better", "done"]
    assert first[1]["causes"] == plain["causes"]
    assert better[1]["causes"][0]["id"] == "shm-limits"
    assert done[1] == better[1]


@pytest.mark.parametrize(("llm", "why"), [(False, None), (True, "status 503")])
def test_a_stream_without_an_opinion_ends_with_the_first_answer(
    service: Service, model: ChatServer, llm: bool, why: str | None
) -> None:
    """Where no model is set there are two events; one that fails says why."""
    model.status = 503
    if not llm:
        service.second_reader = None
    with running(service, service.settings) as address:
        events = list(events_of(address, **{"Accept-Language": "en"}))
    assert len(events) == (3 if llm else 2)
    assert events[-1][0] == "done"
    assert events[-1][1]["causes"] == events[0][1]["causes"]
    if why:
        assert why in events[-1][1]["second_reader"]["why"]


def test_who_waits_for_the_model_keeps_nobody_waiting(
    patient: Service, model: ChatServer, gate: threading.Event
) -> None:
    """A dozen callers wait for a hanging model; the next one is answered meanwhile."""
    with running(patient, patient.settings) as address, ThreadPoolExecutor(12) as pool:
        url = f"{address}/v1/diagnose?wait=60"
        waiting = [
            pool.submit(httpx.post, url, content=f"{HANG}\nrun {n}", timeout=30) for n in range(12)
        ]
        deadline = time.monotonic() + 30
        while len(model.questions) < 10 and time.monotonic() < deadline:  # a minute's limit
            time.sleep(0.05)
        answer = httpx.post(f"{address}/v1/diagnose", content=f"{HANG}\nanother", timeout=30)
        still_waiting = sum(not one.done() for one in waiting)
        gate.set()
        answers = [one.result().json() for one in waiting]
    assert answer.status_code == 200
    assert still_waiting >= 10
    reasons = [one["second_reader"]["why"] for one in answers]
    assert sum("10" in reason for reason in reasons) == 2


def test_the_chat_streams_what_the_model_adds(patient: Service, gate: threading.Event) -> None:
    """The reply at once, the addition before the last event; as JSON only where it may wait."""
    with running(patient, patient.settings) as address:
        url, body = f"{address}/v1/chat", {"message": HANG, "lang": "en"}
        names = []
        with httpx.stream("POST", url, json=body, timeout=60) as answer:
            for line in answer.iter_lines():
                names += [line[7:]] if line.startswith("event: ") else []
                if line.startswith("event: diagnosis"):
                    gate.set()
        plain = httpx.post(url, json=body, headers={"Accept": "application/json"}).json()
        waited = httpx.post(
            f"{url}?wait=60", json=body, headers={"Accept": "application/json"}, timeout=20
        ).json()
    assert names[-3:] == ["diagnosis", "better", "done"]
    assert plain["diagnosis"]["second_reader"] is None
    assert waited["diagnosis"]["causes"][0]["id"] == "shm-limits"
    assert "Which switch?" in json.dumps(waited["statements"])


def test_the_chat_of_the_command_line_adds_it(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, model: ChatServer
) -> None:
    """Below the reply, with where the text goes; as JSON a message still gets one line."""
    for form in ("text", "json"):
        words = io.TextIOWrapper(io.BytesIO(HANG.splitlines()[0].encode()))
        monkeypatch.setattr("sys.stdin", words)
        _, out, err = run("chat", "{log}", "--lang", "en", "--format", form)
        assert "It asks: Which switch?" in out
        assert (model.url in err) is (form == "text")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [one["diagnosis"]["causes"][0]["id"] for one in lines] == ["shm-limits", "shm-limits"]


def test_the_api_tells_what_the_model_costs(service: Service, model: ChatServer) -> None:
    """Questions of the day and tokens in the readiness report, counters in the metrics."""
    with running(service, service.settings) as address:
        before = httpx.get(f"{address}/metrics").text
        httpx.post(f"{address}/v1/diagnose?wait=10", content=HANG, timeout=60)
        model.status = 429
        httpx.post(f"{address}/v1/diagnose?wait=10", content=f"{HANG}Today.", timeout=60)
        ready = httpx.get(f"{address}/readyz").json()["second_reader"]
        metrics = httpx.get(f"{address}/metrics").text.splitlines()
    assert "model_questions_total{" not in before
    assert (ready["questions_day"], ready["per_day"]) == (2, service.settings.llm_per_day)
    assert (ready["tokens_day"], ready["outcomes"]) == (750, {"answered": 1, "busy": 1})
    assert {line for line in metrics if line.startswith("timeout_kb_model")} == {
        'timeout_kb_model_questions_total{outcome="answered"} 1.0',
        'timeout_kb_model_questions_total{outcome="busy"} 1.0',
        'timeout_kb_model_tokens_total{direction="in"} 700.0',
        'timeout_kb_model_tokens_total{direction="out"} 50.0',
    }


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_cost_that_is_not_told_is_not_shown(
    run: Callable[..., tuple[int, str, str]], model: ChatServer, language: str
) -> None:
    """Some servers send no usage; 0 would be a lie."""
    _, shown, _ = run("diagnose", "{log}", "--lang", language)
    model.usage = None
    _, silent, _ = run("diagnose", "{log}", "--lang", language)
    assert "750" in shown
    assert "tiny-1" in silent
    assert "token" not in silent


def test_the_model_is_measured_and_its_trust_kept(
    run: Callable[..., tuple[int, str, str]], with_model: Settings
) -> None:
    """One that always says the same is not trusted."""
    settings = replace(with_model, llm_per_minute=1000)
    code, out, _ = run("evaluate", "second-reader", settings=settings)
    assert code == 0
    kept = json.loads((settings.home / "second_reader.json").read_text())
    assert kept["tiny"]["trust"] <= 0.15
    assert "trust" in out


def test_without_a_model_there_is_nothing_to_measure(
    run: Callable[..., tuple[int, str, str]], with_model: Settings
) -> None:
    """The message names the setting."""
    settings = replace(with_model, llm_base_url="", llm_model="")
    code, _, err = run("evaluate", "second-reader", settings=settings)
    assert code == 2
    assert "TIMEOUT_KB_LLM_BASE_URL" in err
