"""Pages of other sites: they read nothing and write nothing, and ours stand in no frame."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.api.auth import add_key, keys_path
from app.server.browser_guard import script_digests
from kb.settings import Settings

Serve = Callable[[object, Settings], AbstractContextManager[str]]
EVIL = "http://evil.example"
FOREIGN: dict[str, dict[str, str]] = {
    "another host": {"host": "evil.example"},
    "another host with this port": {"host": "evil.example:8000"},
    "a host that ends like ours": {"host": "127.0.0.1.evil.example"},
    "no host to speak of": {"host": "[::1"},
    "another origin": {"origin": EVIL},
    "no origin to speak of": {"origin": "null"},
    "another port of this machine": {"origin": "http://127.0.0.1:1"},
    "another site": {"sec-fetch-site": "cross-site"},
    "another port by the browser's word": {"sec-fetch-site": "same-site"},
}


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "multipart", "none"])
@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_foreign_requests_write_nothing(
    client: httpx.Client, headers: dict[str, str], kind: str, log: str
) -> None:
    """Whatever the type of the body, also the three that need no asking before: 403."""
    body: dict[str, Any] = {"content": log, "headers": {**headers, "content-type": kind}}
    if kind == "multipart":
        body = {"files": {"file": ("a.log", log)}, "headers": headers}
    elif kind == "none":
        body = {"content": log, "headers": headers}
    answer = client.post("/v1/diagnose?keep=true", **body)
    assert answer.status_code == 403
    assert answer.json()["type"].startswith("urn:timeout-kb:problem:foreign-")
    assert client.delete("/v1/entries/x", headers=headers).status_code == 403


def test_another_name_reads_nothing(client: httpx.Client) -> None:
    """A name that was made to lead here gets no answer; ours do, whatever the port."""
    assert client.get("/v1/causes", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/metrics", headers={"host": "evil.example"}).status_code == 403
    for own in ("localhost:8000", "127.0.0.1", "[::1]:9"):
        assert client.get("/v1/causes", headers={"host": own}).status_code == 200


def test_our_own_pages_and_tools_write(client: httpx.Client, log: str) -> None:
    """What /docs sends and what a command line sends is taken."""
    own = {"origin": str(client.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    assert client.post("/v1/diagnose", content=log, headers=own).status_code == 200
    assert client.post("/v1/diagnose", content=log).status_code == 200


def test_the_public_address_is_ours(
    service: object, api_settings: Settings, serve: Serve, log: str
) -> None:
    """Behind a proxy whose address is set requests to it and from its pages are taken."""
    settings = replace(api_settings, public_url="https://kb.corp.example/")
    with serve(service, settings) as address, httpx.Client(base_url=address) as client:
        headers = {"host": "kb.corp.example", "origin": "https://kb.corp.example"}
        taken = client.post("/v1/diagnose", content=log, headers=headers)
        other = client.post("/v1/diagnose", content=log, headers={**headers, "origin": EVIL})
    assert (taken.status_code, other.status_code) == (200, 403)


def test_a_key_is_proof_enough(
    service: object, api_settings: Settings, serve: Serve, log: str
) -> None:
    """No page sends a key by itself: where keys are, names and origins are not asked for."""
    key = add_key(keys_path(api_settings), "one", "read")
    with serve(service, api_settings) as address, httpx.Client(base_url=address) as client:
        headers = {"host": "kb.corp.example", "origin": EVIL, "x-api-key": key}
        assert client.post("/v1/diagnose", content=log, headers=headers).status_code == 200
        del headers["x-api-key"]
        assert client.post("/v1/diagnose", content=log, headers=headers).status_code == 401
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"x-api-key": key}).status_code == 200
        assert client.get("/healthz").status_code == 200


def test_pages_stand_in_no_frame_and_run_their_own_scripts(client: httpx.Client) -> None:
    """Every answer has a policy; that of /docs allows the page's inline script by its digest."""
    for path in ("/docs", "/v1/causes", "/v1/nothing", "/healthz", "/openapi.json"):
        headers = client.get(path).headers
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
    docs = client.get("/docs")
    policy = docs.headers["content-security-policy"]
    (inline,) = script_digests(docs.content)
    assert f"script-src 'self' {inline}" in policy
    assert "unsafe-eval" not in policy
    assert "default-src 'none'" in client.get("/v1/causes").headers["content-security-policy"]


def test_digests_are_those_of_inline_scripts() -> None:
    """A script from an address has none; the digest is of what stands between the tags."""
    page = b'<script src="/a.js"></script><script type="module">let a = 1;</script>'
    digest = base64.b64encode(hashlib.sha256(b"let a = 1;").digest()).decode()
    assert script_digests(page) == [f"'sha256-{digest}'"]
