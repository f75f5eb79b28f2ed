"""An incident over the API: who resolved it, changes, merging, Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from app.api.auth import add_key, keys_path
from kb.bootstrap import open_service
from kb.settings import Settings

Serve = Callable[[object, Settings], AbstractContextManager[str]]
LOG = """\
[rank{rank}]: OSError: [Errno 28] No space left on device: '/scratch/ckpt'
[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum={rank}, OpType=ALLREDUCE, \
NumelIn=7340032, NumelOut=7340032, Timeout(ms)=600000) ran for 600068 milliseconds.
"""


@pytest.fixture
def api(built_home: Callable[[], Path], serve: Serve) -> Iterator[httpx.Client]:
    """The API with the key of ada, who may write."""
    settings = Settings(home=built_home())
    headers = {"x-api-key": add_key(keys_path(settings), "ada", "write")}
    service = open_service(settings)
    with (
        serve(service, settings) as address,
        httpx.Client(base_url=address, headers=headers, timeout=60) as client,
    ):
        yield client
    service.close()


def test_an_incidents_life_over_the_api(api: httpx.Client) -> None:
    """Resolved by the key's name, changed in part, merged, found under both ids, exported."""
    one, other = (
        api.post("/v1/entries", json={"text": LOG.format(rank=rank)}).json()["ids"][0]
        for rank in (1, 2)
    )
    place = f"/v1/entries/{one}"
    own = {"own_cause": "the shard map was old", "fix": "copied it again"}
    assert api.post(f"{place}/resolve", json=own).json()["own_cause"] == own["own_cause"]
    slip = api.post(f"{place}/resolve", json={"cause": "checkpoint-oi", "fix": "x"})
    assert (slip.status_code, "checkpoint-io" in slip.text) == (400, True)
    outcome = {"cause": "checkpoint-io", "fix": "cleared the disk"}
    resolved = api.post(f"{place}/resolve", json=outcome).json()
    assert (resolved["resolved_by"], resolved["resolved_on"][:2]) == ("ada", "20")
    assert resolved["own_cause"] == ""
    changed = api.patch(place, json={"labels": ["disk"], "fix": "moved the checkpoints"})
    assert changed.status_code == 200, changed.text
    assert changed.json()["labels"] == ["disk"]
    assert changed.json()["fixes"][0]["title"]["en"] == "moved the checkpoints"
    merged = api.post(f"{place}/merge", json={"ids": [other]})
    assert merged.json()["merged"] == [other]
    assert api.get(f"/v1/entries/{other}").json() == api.get(place).json() == merged.json()
    answer = api.post("/v1/diagnose", json={"text": LOG.format(rank=5), "lang": "en"}).json()
    assert answer["met_before"]["entry"] == one
    assert answer["met_before"]["fix"] == "moved the checkpoints"
    shown = api.get(f"{place}/export", params={"lang": "en"})
    assert shown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "moved the checkpoints" in shown.text
    assert "**Labels**: disk" in shown.text


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PATCH", "/v1/entries/none", {"title": "x"}, 404),
        ("PATCH", "/v1/entries/gloo-ifname-exclusion-list", {"title": "x"}, 400),
        ("PATCH", "/v1/entries/none", {"titel": "x"}, 422),
        ("PATCH", "/v1/entries/none", {"title": " "}, 422),
        ("POST", "/v1/entries/none/merge", {"ids": ["x"]}, 404),
        ("POST", "/v1/entries/none/merge", {"ids": []}, 422),
        ("GET", "/v1/entries/none/export", None, 404),
    ],
)
def test_what_cannot_be_done_is_a_problem(
    api: httpx.Client, method: str, path: str, body: object, status: int
) -> None:
    """Its status says whose fault it is, its body what to do."""
    answer = api.request(method, path, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
