"""The HTTP API over real sockets."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import httpx
import msgspec
import pytest

from app.api.context import ApiContext
from app.render.one_screen import render_screen
from app.render.short import render_short
from kb.errors import InputError
from kb.knowledge.labels import Words
from kb.settings import Settings
from kb.types.answer import Diagnosis
from kb.types.incident import LogReading

if TYPE_CHECKING:
    from tests.app.fakes import FakeService

PROBLEM = "application/problem+json"
Serve = Callable[[object, Settings], AbstractContextManager[str]]


HAN = re.compile(r"[\u4e00-\u9fff]")


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem of a response, checked for its form."""
    assert response.headers["content-type"] == PROBLEM
    body: dict[str, Any] = response.json()
    assert list(body) == ["type", "title", "status", "detail", "instance", "todo", "request_id"]
    assert (response.status_code, body["status"]) == (status, status)
    assert body["type"] == f"urn:timeout-kb:problem:{code}"
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["instance"] == response.request.url.path
    return body


def test_json_is_the_diagnosis_in_the_order_of_the_contract(
    client: httpx.Client, service: FakeService, log: str
) -> None:
    """The body is the service's Diagnosis, field for field and in order."""
    response = client.post("/v1/diagnose", json={"text": log, "lang": "en", "top": 1})
    assert response.status_code == 200
    assert response.content == msgspec.json.encode(service.diagnose_text(log, language="en", top=1))
    assert response.headers["content-language"] == "en"


def multipart(client: httpx.Client, log: str, **fields: str) -> httpx.Response:
    """Post a log as a file of a form."""
    files = [("file", ("rank0.log", log.encode(), "text/plain"))]
    return client.post("/v1/diagnose", files=files, data=fields)


FORMS: dict[str, Callable[[httpx.Client, str], httpx.Response]] = {
    "json": lambda client, log: client.post("/v1/diagnose", json={"text": log}),
    "text": lambda client, log: client.post(
        "/v1/diagnose", content=log.encode(), headers={"content-type": "text/plain"}
    ),
    "curl-data-binary": lambda client, log: client.post(
        "/v1/diagnose",
        content=log.encode(),
        headers={"content-type": "application/x-www-form-urlencoded"},
    ),
    "put-without-type": lambda client, log: client.put("/v1/diagnose", content=log.encode()),
    "chunked": lambda client, log: client.put(
        "/v1/diagnose", content=iter([log[:50].encode(), log[50:].encode()])
    ),
    "form-file": multipart,
    "form-text": lambda client, log: client.post("/v1/diagnose", files=[("text", (None, log))]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_answer(
    client: httpx.Client, service: FakeService, log: str, form: str
) -> None:
    """JSON, text, raw, chunked and multipart bodies are answered alike."""
    response = FORMS[form](client, log)
    assert response.status_code == 200, response.text
    assert msgspec.json.decode(response.content, type=Diagnosis) == service.diagnose_text(log)


def test_several_files_and_dumps_are_one_run(
    client: httpx.Client, log: str, undecided_log: str
) -> None:
    """All files and dumps of a form reach the diagnosis; no path of the server is told."""
    head, tail = log.splitlines()[0], "\n".join(log.splitlines()[1:])
    files = [
        ("file", ("rank0.log", head.encode(), "text/plain")),
        ("file", ("../../rank0.log", undecided_log.encode(), "text/plain")),
        ("dump", ("nccl_trace_rank_0", tail.encode(), "application/octet-stream")),
    ]
    response = client.post("/v1/diagnose", files=files, data={"lang": "zh"})
    assert response.status_code == 200, response.text
    assert response.json()["status"] in ("diagnosed", "unknown")
    assert response.json()["language"] == "zh"
    assert "/tmp" not in response.text


@pytest.mark.parametrize(
    ("fields", "files", "status"),
    [
        pytest.param({"top": "0"}, {"file": b"x"}, 422, id="top-out-of-range"),
        pytest.param({"lang": "fr"}, {"file": b"x"}, 422, id="language-unknown"),
        pytest.param({"colour": "red"}, {"file": b"x"}, 422, id="unknown-field"),
        pytest.param({"lang": "en"}, {}, 400, id="no-log"),
    ],
)
def test_wrong_forms_are_problems(
    client: httpx.Client, fields: dict[str, str], files: dict[str, bytes], status: int
) -> None:
    """A form with a wrong or no field is refused with its reason."""
    parts: list[tuple[str, Any]] = [(name, ("x.log", data)) for name, data in files.items()]
    parts += [(name, (None, value)) for name, value in fields.items()]
    response = client.post("/v1/diagnose", files=parts)
    problem(response, status, "invalid-body" if status == 422 else "bad-input")


def test_raw_bodies_have_no_limit_and_others_have(
    client: httpx.Client, service: FakeService, api_settings: Settings, log: str
) -> None:
    """A raw body far above the limit is read to its end; JSON and forms that large are 413."""
    pad = b"progress bar line\n" * 4096
    size = 0

    def body() -> Iterator[bytes]:
        nonlocal size
        for chunk in (log.encode(), *[pad] * 64):
            size += len(chunk)
            yield chunk

    response = client.put("/v1/diagnose", content=body())
    assert response.status_code == 200
    assert service.streamed == size > 16 * api_settings.max_body
    large = "x" * (api_settings.max_body + 1)
    refused = problem(client.post("/v1/diagnose", json={"text": large}), 413, "too-large")
    assert "octet-stream" in refused["todo"]
    problem(multipart(client, large), 413, "too-large")
    chunked = client.post(
        "/v1/diagnose",
        content=iter([b'{"text": "', large.encode(), b'"}']),
        headers={"content-type": "application/json"},
    )
    problem(chunked, 413, "too-large")


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/markdown", "text/markdown; charset=utf-8"),
        ("text/plain", "text/plain; charset=utf-8"),
        ("text/plain;q=0.5, text/markdown;q=0.9", "text/markdown; charset=utf-8"),
        ("application/json;q=0, */*", "text/markdown; charset=utf-8"),
        ("text/html, application/xhtml+xml, */*;q=0.1", "application/json"),
    ],
)
def test_accept_chooses_the_form(client: httpx.Client, log: str, accept: str, media: str) -> None:
    """The heaviest media type on offer is given, JSON where the caller does not mind."""
    response = client.put("/v1/diagnose", content=log, headers={"accept": accept})
    assert response.headers["content-type"] == media
    assert response.headers["vary"] == "Accept, Accept-Language"


@pytest.mark.parametrize(
    ("top", "why"), [("-1", ">= 1"), ("20", "<= 19"), ("many", "a whole number"), ("1.5", "'1.5'")]
)
def test_a_forms_number_is_checked_as_a_number(
    client: httpx.Client, log: str, top: str, why: str
) -> None:
    """What is wrong with it is said in terms of what was sent."""
    refused = client.post("/v1/diagnose", data={"text": log, "top": top}, files={"dump": b""})
    body = problem(refused, 422, "invalid-body")
    assert why in body["detail"]
    assert "`str`" not in body["detail"]


def unreadable(text: str) -> LogReading:
    """What a reader does with a text it cannot read."""
    raise InputError("the input is empty", todo="paste the log", reason="empty")


def test_a_body_that_asks_for_a_language_gets_its_errors_in_it(
    client: httpx.Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lang` of a form or of JSON holds for what is refused too, each item of a batch by itself."""
    form = client.post("/v1/diagnose", data={"lang": "zh"}, files={"file": ("a.log", b"\x00" * 99)})
    monkeypatch.setattr(service, "read_text", unreadable)
    items = [{"text": "x", "lang": "zh"}, {"text": "x"}]
    batch = client.post("/v1/diagnose/batch", json={"items": items}).json()["items"]
    refused = [form.json(), *(item["problem"] for item in batch)]
    chinese = [HAN.search(body["detail"]) is not None for body in refused]
    assert form.headers["content-language"] == "zh"
    assert chinese == [True, True, False]


def test_text_is_what_the_terminal_shows(
    client: httpx.Client, service: FakeService, log: str
) -> None:
    """text/plain is the terminal's text without colours."""
    response = client.put("/v1/diagnose", content=log, headers={"accept": "text/plain"})
    labels = service.knowledge.labels
    diagnosis = service.diagnose_text(log)
    words = Words(labels, diagnosis.language)
    shown = render_screen(diagnosis, words, width=100, more="head.full_markdown")
    assert response.text == click.unstyle(shown)


def test_the_short_form_is_plain_text_whatever_is_accepted(
    client: httpx.Client, service: FakeService, log: str
) -> None:
    """Ten lines for a chat tool; the whole answer to the same log is another one."""
    accept = {"accept": "application/json"}
    short = client.post("/v1/diagnose?short=true", json={"text": log}, headers=accept)
    diagnosis = service.diagnose_text(log)
    words = Words(service.knowledge.labels, diagnosis.language)
    assert short.headers["content-type"].startswith("text/plain")
    assert short.text == render_short(diagnosis, words)
    whole = client.post("/v1/diagnose", json={"text": log}, headers=accept)
    assert whole.json()["headline"] == short.text.splitlines()[0]


@pytest.mark.parametrize(
    ("parameter", "header", "language"),
    [
        pytest.param("", "", None, id="input-decides"),
        pytest.param("", "zh-CN,zh;q=0.9,en;q=0.8", "zh", id="header"),
        pytest.param("", "fr, en;q=0.3", "en", id="header-second-choice"),
        pytest.param("en", "zh", "en", id="parameter-first"),
        pytest.param("", "fr", None, id="neither"),
    ],
)
def test_language_is_parameter_then_header_then_input(
    client: httpx.Client,
    service: FakeService,
    log: str,
    parameter: str,
    header: str,
    language: str | None,
) -> None:
    """`lang` goes before Accept-Language, which goes before the input's own language."""
    query = {"lang": parameter} if parameter else {}
    client.put("/v1/diagnose", content=log, params=query, headers={"accept-language": header})
    assert service.asked[-1]["language"] == language


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "code"),
    [
        pytest.param("GET", "/nowhere", {}, 404, "not-found", id="unknown-path"),
        pytest.param("DELETE", "/v1/diagnose", {}, 405, "method-not-allowed", id="method"),
        pytest.param("POST", "/v1/diagnose", {"json": {}}, 422, "invalid-body", id="no-text"),
        pytest.param(
            "POST", "/v1/diagnose", {"json": {"text": "a", "x": 1}}, 422, "invalid-body", id="field"
        ),
        pytest.param("POST", "/v1/diagnose", {"json": {"text": " "}}, 422, "invalid-body", id="ws"),
        pytest.param("PUT", "/v1/diagnose", {"content": b""}, 400, "bad-input", id="empty"),
        pytest.param(
            "PUT",
            "/v1/diagnose",
            {"content": b"x", "params": {"top": 20}},
            422,
            "invalid-parameter",
            id="parameter",
        ),
        pytest.param(
            "POST",
            "/v1/diagnose",
            {"content": b"{", "headers": {"content-type": "application/json"}},
            400,
            "broken-json",
            id="broken-json",
        ),
        pytest.param(
            "POST",
            "/v1/diagnose",
            {"content": b'{"text": "\\ud800"}', "headers": {"content-type": "application/json"}},
            400,
            "broken-json",
            id="lone-surrogate",
        ),
        pytest.param(
            "POST",
            "/v1/diagnose",
            {"content": b"<a/>", "headers": {"content-type": "application/xml"}},
            415,
            "unsupported-media-type",
            id="media-type",
        ),
        pytest.param(
            "PUT",
            "/v1/diagnose",
            {"content": b"x", "headers": {"accept": "image/png"}},
            406,
            "not-acceptable",
            id="accept",
        ),
        pytest.param("GET", "/v1/search", {}, 422, "invalid-parameter", id="no-query"),
        pytest.param("GET", "/v1/cases/none", {}, 404, "not-found", id="no-such-case"),
        pytest.param("GET", "/v1/causes/none", {}, 404, "not-found", id="no-such-cause"),
        pytest.param(
            "GET", "/v1/cases/thread-0123456789abcdef", {}, 404, "not-found", id="not-a-case"
        ),
    ],
)
def test_errors_are_problems(
    client: httpx.Client, method: str, path: str, options: dict[str, Any], status: int, code: str
) -> None:
    """Every refusal is problem JSON: what was wrong and the next step, in the caller's language."""
    for language in ("zh", "en"):
        headers = {**options.get("headers", {}), "accept-language": language}
        answer = client.request(method, path, **{**options, "headers": headers})
        body = problem(answer, status, code)
        assert answer.headers["content-language"] == language
        for said in (body["title"], body["detail"], body["todo"]):
            assert said
            assert bool(HAN.search(said)) == (language == "zh"), said


def test_wrong_method_names_the_right_ones(client: httpx.Client) -> None:
    """405 carries Allow (RFC 9110 §15.5.6)."""
    assert client.delete("/v1/causes").headers["allow"] == "GET, HEAD"
    assert client.delete("/v1/diagnose").headers["allow"] == "POST, PUT"
    assert client.delete("/v1/cases/first-case").headers["allow"] == "GET, HEAD"


def test_unexpected_failures_are_problems_without_details(
    service: FakeService, api_settings: Settings, serve: Serve, log: str, logged: list[Any]
) -> None:
    """A bug is answered with 500, logged and counted, and tells nothing of the inside."""
    service.failure = RuntimeError("secret /etc/passwd")
    with serve(service, api_settings) as address:
        response = httpx.put(f"{address}/v1/diagnose", content=log)
        numbers = httpx.get(f"{address}/metrics").text
    problem(response, 500, "unexpected")
    assert "secret" not in response.text
    kept = [line for line in logged if line["event"] == "unexpected failure"]
    assert [line["request_id"] for line in kept] == [response.headers["x-request-id"]]
    assert kept[0]["exc_info"] is service.failure
    assert 'timeout_kb_failures_total{type="RuntimeError"} 1.0' in numbers


@pytest.mark.parametrize("asked", ["abc-1.2_3", "x" * 65, "a b", "中"])
def test_request_ids_are_kept_when_harmless(client: httpx.Client, asked: str) -> None:
    """A short plain id of the caller is used; any other is replaced by a new one."""
    response = client.get("/healthz", headers={"x-request-id": asked.encode()})
    given = response.headers["x-request-id"]
    assert (given == asked) == (asked == "abc-1.2_3")
    assert len(given) <= 64


def test_batch_answers_in_order(
    client: httpx.Client, service: FakeService, log: str, undecided_log: str
) -> None:
    """Items are answered in their order; the same as one by one."""
    items = [{"text": log, "lang": "zh"}, {"text": "fine"}, {"text": undecided_log, "top": 1}]
    answers = client.post("/v1/diagnose/batch", json={"items": items}).json()["items"]
    single = [client.post("/v1/diagnose", json=item).json() for item in items]
    assert [answer["diagnosis"] for answer in answers] == single
    assert [answer["problem"] for answer in answers] == [None] * 3


def test_a_batch_goes_on_after_a_failure(
    client: httpx.Client, service: FakeService, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read is told in its place, and the next item is answered."""
    read = service.read_text
    monkeypatch.setattr(service, "read_text", lambda t: unreadable(t) if t == "no" else read(t))
    items = [{"text": "no"}, {"text": log}]
    first, second = client.post("/v1/diagnose/batch", json={"items": items}).json()["items"]
    assert (first["diagnosis"], first["problem"]["status"]) == (None, 400)
    assert second == {
        "diagnosis": client.post("/v1/diagnose", json=items[1]).json(),
        "problem": None,
    }


SHORT = 200  # bytes, in this test
LARGE = "training hangs\n" * SHORT


@pytest.mark.parametrize(
    ("path", "body", "long"),
    [
        pytest.param("diagnose", {"json": {"text": "hang"}}, False, id="a short text"),
        pytest.param("diagnose", {"json": {"text": LARGE}}, True, id="a long text"),
        pytest.param("diagnose", {"content": b"hang"}, False, id="a short log"),
        pytest.param("diagnose", {"content": gzip.compress(b"hang")}, True, id="an archive"),
        pytest.param("diagnose", {"files": [("dump", ("d_0", b"{}"))]}, True, id="a dump"),
        pytest.param(
            "diagnose", {"files": [("file", ("d_0", b"\x80\x04N."))]}, True, id="a dump as a file"
        ),
        pytest.param("diagnose/batch", {"json": {"items": [{"text": "hang"}]}}, False, id="batch"),
        pytest.param(
            "diagnose/batch", {"json": {"items": [{"text": LARGE}]}}, True, id="a long one in it"
        ),
    ],
)
def test_what_may_take_long_is_read_beside(
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: dict[str, Any],
    long: bool,
) -> None:
    """Dumps and archives too: some kilobytes of them may stand for millions of values."""
    lanes: list[bool] = []
    run = ApiContext.run

    async def noted(self: ApiContext, work: Any, **options: bool) -> Any:
        lanes.append(options.get("long", False))
        return await run(self, work, **options)

    monkeypatch.setattr(ApiContext, "run", noted)
    monkeypatch.setattr("app.api.routes.diagnose.SHORT_BYTES", SHORT)
    headers = {"Content-Type": "text/plain"} if "content" in body else {}
    client.post(f"/v1/{path}", headers={**headers, "Cache-Control": "no-cache"}, **body)
    assert lanes == [long]


def test_compressed_bodies_pass_unchanged(client: httpx.Client, service: FakeService) -> None:
    """A gz body reaches the reader byte for byte; the reader unpacks it."""
    packed = gzip.compress(b"x" * 1000)
    client.put("/v1/diagnose", content=packed, headers={"content-type": "application/gzip"})
    assert service.streamed == len(packed)


def test_answers_do_not_depend_on_settings_of_others(
    service: FakeService, api_settings: Settings, serve: Serve, log: str
) -> None:
    """TIMEOUT_KB_LANG is the last resort before the input's language."""
    with serve(service, replace(api_settings, lang="zh")) as address:
        httpx.put(f"{address}/v1/diagnose", content=log)
        httpx.put(f"{address}/v1/diagnose", content=log, headers={"accept-language": "en"})
    assert [asked["language"] for asked in service.asked] == ["zh", "en"]
