"""Looking things up, and what operators see, over real sockets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

import httpx
import pytest

from app.inputs.feedback import Feedback, add_feedback
from kb.settings import Settings

if TYPE_CHECKING:
    from tests.app.fakes import FakeService

PROBLEM = "application/problem+json"
Serve = Callable[[object, Settings], AbstractContextManager[str]]


def test_search_is_the_same_by_get_and_post(client: httpx.Client) -> None:
    """Filters and limit mean the same in an address and in a body."""
    found = client.get("/v1/search", params={"q": "hang", "kind": ["thread"], "limit": 5})
    body = {"query": "hang", "filters": {"kinds": ["thread"]}, "limit": 5}
    assert found.status_code == 200
    assert [hit["entry_id"] for hit in found.json()["hits"]] == ["thread-0123456789abcdef"]
    assert client.post("/v1/search", json=body).json() == found.json()


def test_a_filter_is_a_name(client: httpx.Client) -> None:
    """A value longer than any name is refused before anything is searched with it."""
    for length, status in ((200, 200), (201, 422)):
        for path in ("/v1/search", "/v1/entries"):
            asked = {"q": "hang"} if path == "/v1/search" else {}
            found = client.get(path, params=asked | {"hardware": "-" * length})
            assert (path, length, found.status_code) == (path, length, status)


def test_pages_follow_one_another(client: httpx.Client) -> None:
    """Following next_offset gives every entry once, in order; cases are only cases."""
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = client.get("/v1/entries", params={"limit": 2, "offset": offset}).json()
        seen += [item["id"] for item in page["items"]]
        offset = page["next_offset"]
    assert seen == ["first-case", "second-case", "thread-0123456789abcdef"]
    cases = client.get("/v1/cases").json()
    assert [item["id"] for item in cases["items"]] == ["first-case", "second-case"]
    assert cases["next_offset"] is None


def test_cases_are_told_whole_but_not_where_they_lie(client: httpx.Client) -> None:
    """A case has both languages and its sources; the server's own paths stay private."""
    case = client.get("/v1/cases/first-case").json()
    assert {section["language"] for section in case["sections"]} == {"zh", "en"}
    assert case["sources"][0]["url"] == "https://example.org/first-case"
    assert "source_key" not in case
    assert "chunks" not in case


def test_notes_are_listed_found_and_shown(client: httpx.Client) -> None:
    """The list has summaries, a note both languages; a search names the notes that answer."""
    listed = client.get("/v1/notes").json()
    assert [item["id"] for item in listed][-1] == "timeout-ddp"
    assert "body" not in listed[0]
    note = client.get("/v1/notes/meaning-seqnum").json()
    assert {"zh", "en"} == set(note["body"])
    assert all(source["confirms"] for source in note["sources"])
    found = client.get("/v1/search", params={"q": "which note", "lang": "zh"}).json()["notes"]
    assert [(hit["note"], hit["language"]) for hit in found] == [(note, "zh")]
    missing = client.get("/v1/notes/no-such-note")
    assert (missing.status_code, missing.headers["content-type"]) == (404, PROBLEM)


@pytest.mark.parametrize(
    "path",
    ["/v1/causes", "/v1/causes/rank-crash", "/v1/cases/first-case", "/v1/notes/timeout-ddp"],
)
def test_known_versions_are_not_sent_again(client: httpx.Client, path: str) -> None:
    """The ETag of an answer makes the next one 304 without a body."""
    first = client.get(path)
    again = client.get(path, headers={"if-none-match": first.headers["etag"]})
    assert first.status_code == 200
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(path, headers={"if-none-match": '"other"'}).content == first.content


@pytest.mark.parametrize(
    "path", ["/v1/cases/first-case", "/v1/causes", "/v1/entries?limit=1", "/healthz", "/readyz"]
)
def test_the_head_of_an_answer_can_be_asked_for(client: httpx.Client, path: str) -> None:
    """HEAD answers as GET does, without the body."""
    whole, head = client.get(path), client.head(path)
    names = ("content-type", "content-length", "etag", "link")
    assert (head.status_code, head.content) == (200, b"")
    assert {name: head.headers.get(name) for name in names} == {
        name: whole.headers.get(name) for name in names
    }


@pytest.mark.parametrize(
    ("path", "wrong", "right"),
    [
        ("/v1/search?q=hang&offset=10", "offset", "limit"),
        ("/v1/entries?frameworks=vllm", "frameworks", "framework"),
        ("/v1/feedback?page=2", "page", "offset"),
    ],
)
def test_a_parameter_nobody_reads_is_refused(
    client: httpx.Client, path: str, wrong: str, right: str
) -> None:
    """A misspelt filter does not pass for none; the answer names those there are."""
    answer = client.get(path)
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
    assert problem["detail"] == f"Unknown parameters: {wrong}"
    assert right in problem["todo"].removeprefix("This path takes: ").split(", ")


def test_feedback_comes_in_pages(client: httpx.Client) -> None:
    """Following Link gives everything said, oldest first, each once; its tag changes with more."""
    for number in range(5):
        said = {"verdict": "right", "cause": "rank-crash", "comment": f"number {number}"}
        assert client.post("/v1/feedback", json=said).status_code == 201
    told: list[str] = []
    url = "/v1/feedback?limit=2"
    while url:
        page = client.get(url)
        told += [item["feedback"]["comment"] for item in page.json()["items"]]
        url = page.links.get("next", {}).get("url", "")
    assert told[-5:] == [f"number {number}" for number in range(5)]
    tag = {"if-none-match": client.get("/v1/feedback").headers["etag"]}
    assert client.get("/v1/feedback", headers=tag).status_code == 304
    client.post("/v1/feedback", json={"verdict": "right", "cause": "rank-crash"})
    assert client.get("/v1/feedback", headers=tag).status_code == 200


def test_a_replaced_verdict_changes_the_tag(client: httpx.Client, service: FakeService) -> None:
    """A person's second word on an answer replaces the first: as many rows, another list."""

    def say(verdict: Literal["right", "wrong"]) -> None:
        feedback = Feedback(verdict=verdict, cause="rank-crash")
        add_feedback(service, feedback, source="slack", by="U1 on C1")  # type: ignore[arg-type]

    say("right")
    tag = {"if-none-match": client.get("/v1/feedback").headers["etag"]}
    assert client.get("/v1/feedback", headers=tag).status_code == 304
    say("wrong")
    changed = client.get("/v1/feedback", headers=tag)
    assert changed.status_code == 200
    assert [item["feedback"]["verdict"] for item in changed.json()["items"]] == ["wrong"]


def test_lint_takes_no_logs(client: httpx.Client) -> None:
    """A body of megabytes is refused with the place it belongs to."""
    refused = client.post("/v1/lint", json={"text": "x" * (1 << 20)})
    assert (refused.status_code, refused.headers["content-type"]) == (413, PROBLEM)
    assert "/v1/diagnose" in refused.json()["todo"]
    taken = client.post("/v1/lint", json={"text": "export NCCL_TIMEOUT=7200 " + "x" * 100_000})
    assert [item["setting"] for item in taken.json()] == ["NCCL_TIMEOUT"]


def test_lint_speaks_the_language_asked_for(client: httpx.Client) -> None:
    """Settings are judged in the caller's language."""
    body = {"text": "export NCCL_TIMEOUT=7200"}
    response = client.post("/v1/lint", json=body, headers={"accept-language": "zh"})
    assert [item["explanation"] for item in response.json()] == ["没人读它"]


def test_readiness_tells_what_is_wrong(
    service: FakeService, api_settings: Settings, serve: Serve
) -> None:
    """503 with the problems while not ready, 200 after; the process is alive in both."""
    service.ready = False
    with serve(service, api_settings) as address:
        early = httpx.get(f"{address}/readyz")
        alive = httpx.get(f"{address}/healthz")
        service.ready = True
        late = httpx.get(f"{address}/readyz")
    assert (early.status_code, early.json()["problems"]) == (503, ["the index is missing"])
    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    assert (late.status_code, late.json()["ready"]) == (200, True)


def test_metrics_count_by_route_not_by_path(
    service: FakeService, api_settings: Settings, serve: Serve, log: str
) -> None:
    """Requests are counted under their route; unknown paths under one name."""
    with serve(service, api_settings) as address, httpx.Client(base_url=address) as client:
        client.get("/v1/cases/first-case")
        client.get("/v1/cases/second-case")
        client.get("/nowhere/1")
        client.request("MADEUP1", "/nowhere/2")
        client.put("/v1/diagnose", content=log)
        numbers = client.get("/metrics").text
    assert (
        'timeout_kb_requests_total{method="GET",route="/v1/cases/{identifier}",status="200"} 2.0'
        in numbers
    )
    assert 'timeout_kb_requests_total{method="GET",route="(none)",status="404"} 1.0' in numbers
    assert "MADEUP1" not in numbers
    assert 'timeout_kb_diagnoses_total{cause="rank-crash",status="diagnosed"} 1.0' in numbers


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v1/diagnoses/{}", "/v1/diagnoses/{identifier}"),
        ("/v1/chat/{}", "/v1/chat/{identifier}"),
        ("/v2/chat/{}", "(none)"),
    ],
)
def test_the_log_of_requests_opens_nothing(
    client: httpx.Client, logged: list[Any], path: str, route: str
) -> None:
    """Whoever has the id of a kept diagnosis or a conversation may read it: no line holds one."""
    identifier = "kept-under-this-id"
    response = client.get(path.format(identifier), headers={"x-request-id": "find-me"})
    assert response.is_error
    deadline, pause = time.monotonic() + 30, threading.Event()
    while not (mine := [line for line in logged if line.get("request_id") == "find-me"]):
        assert time.monotonic() < deadline  # the line is written when the answer is out
        pause.wait(0.01)
    assert [line["path"] for line in mine] == [route]
    assert identifier not in str(logged)


def test_documentation_needs_nothing_from_elsewhere(client: httpx.Client) -> None:
    """The front door leads to the page, which with all it loads comes from this server."""
    page = client.get("/", follow_redirects=True).text
    assert "swagger" in page
    loaded = [part.split('"')[1] for part in page.split("src=")[1:]]
    loaded += [part.split('"')[1] for part in page.split("href=")[1:]]
    assert loaded
    assert all(path.startswith("/") for path in loaded)
    assert {client.get(path).status_code for path in loaded} == {200}


def test_openapi_lists_the_contract(client: httpx.Client) -> None:
    """Every path of the contract is documented, with its problem answers."""
    document = json.loads(client.get("/openapi.json").content)
    assert set(document["paths"]) >= {
        "/v1/diagnose",
        "/v1/diagnose/batch",
        "/v1/search",
        "/v1/cases",
        "/v1/cases/{identifier}",
        "/v1/causes",
        "/v1/notes",
        "/v1/notes/{identifier}",
        "/v1/entries",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    post = document["paths"]["/v1/diagnose"]["post"]
    assert set(post["requestBody"]["content"]) == {
        "application/json",
        "text/plain",
        "multipart/form-data",
        "application/octet-stream",
    }
    assert PROBLEM in post["responses"]["4XX"]["content"]
