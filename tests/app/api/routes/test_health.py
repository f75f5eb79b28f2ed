"""`/readyz` where the check itself hangs."""

from __future__ import annotations

import threading

import httpx
import pytest

from app.api.routes import health
from kb.settings import Settings
from tests.app.conftest import running
from tests.app.fakes import FakeService


def test_a_check_that_hangs_is_given_up(
    shared_service: FakeService,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer is 503 within the limit, over and over, and nothing else waits."""
    let_go = threading.Event()
    monkeypatch.setattr(health, "CHECK_S", 0.2)
    monkeypatch.setattr(shared_service, "health", lambda: let_go.wait(30))
    settings = Settings(home=tmp_path_factory.mktemp("hanging"))
    with running(shared_service, settings) as address:
        for _ in range(4):
            answer = httpx.get(f"{address}/readyz", timeout=5)
            assert answer.status_code == 503
            assert answer.json()["problems"] == ["the check took longer than 0.2 s"]
            assert httpx.get(f"{address}/healthz", timeout=5).status_code == 200
        let_go.set()
