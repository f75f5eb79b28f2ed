"""Two servers with state folders of their own on one PostgreSQL database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx
import pytest

from app.api.auth import Guard, add_key, keys_place, remove_key
from kb.bootstrap import open_service
from kb.chat.chat import Chat
from kb.errors import UnreachableStoreError
from kb.index import follower
from kb.saved import load_diagnosis, save_diagnosis
from kb.service import Service
from kb.settings import Settings
from kb.store import FeedbackRow
from tests.app.api.test_auth import status_of
from tests.app.samples import LOG
from tests.kb.fakes import make_entry
from tests.postgres import PostgresServer, postgres_server
from tests.shipped_part import shipped_cases, shipped_part

Serve = Callable[[object, Settings], AbstractContextManager[str]]
CASES = 6
PATIENCE_S = 30.0  # the machine may be busy


def until(holds: Callable[[], object], limit_s: float = PATIENCE_S) -> None:
    """Wait until something holds; fails where it does not in time."""
    started = time.monotonic()
    while not holds():
        assert time.monotonic() - started < limit_s
        time.sleep(0.01)


@dataclass(frozen=True)
class Replicas:
    """Two services on one database."""

    server: PostgresServer
    one: Service
    two: Service


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Iterator[Replicas]:
    """Both with a few cases, on a server of their own that a test may stop."""
    cases = shipped_cases(data_dir)[:CASES]
    data = shipped_part(tmp_path_factory.mktemp("data"), data_dir, cases)
    with postgres_server() as server, ExitStack() as opened:
        address = server.address()
        services = []
        for name in ("one", "two"):
            home = tmp_path_factory.mktemp(name)
            service = open_service(Settings(home=home, data=data, store=address))
            opened.callback(service.close)
            services.append(service)
        yield Replicas(server, *services)


def found(service: Service, words: str) -> list[str]:
    """The ids a search gives."""
    return [hit.entry_id for hit in service.search(words).hits]


def is_found(service: Service, name: str, words: str) -> bool:
    """Whether a search finds that entry."""
    return name in found(service, words)


def test_an_addition_is_found_at_the_other_by_being_told(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a deletion is gone there; nobody has to search twice for it, or wait for a poll."""
    monkeypatch.setattr(follower, "POLL_S", 3600.0)
    one, two = replicas.one, replicas.two
    until(lambda: two.searcher.index_behind() == 0)
    for number in range(3):  # the first may still be found by the poll before
        name, words = f"quokka-{number}", f"quokka{number} switch"
        one.apply([make_entry(name, f"the {words} drops frames")])
        until(partial(is_found, two, name, words))
    one.delete([f"quokka-{number}" for number in range(3)])
    assert not [one for one in found(two, "quokka1 switch") if one.startswith("quokka")]


def test_what_is_kept_at_one_is_there_at_the_other(replicas: Replicas) -> None:
    """Diagnoses, feedback, settings made by people."""
    one, two = replicas.one, replicas.two
    saved = save_diagnosis(one, one.judge(one.reader.read_text(LOG)))
    assert load_diagnosis(two, saved.id) == saved
    feedback = FeedbackRow(
        id="f",
        diagnosis_id=saved.id,
        entry_id="",
        verdict="right",
        cause="",
        comment="好",
        created_s=1.0,
        source="api",
    )
    one.store.records.put_feedback(feedback)
    assert two.store.records.get_feedback("f") == feedback
    one.store.preferences.put("slack:T:C", b"{}", now_s=1.0)
    assert two.store.preferences.get("slack:T:C") == b"{}"
    assert one.store.preferences.claim("event:1", now_s=1.0, keep_s=9.0)
    assert not two.store.preferences.claim("event:1", now_s=2.0, keep_s=9.0)


def test_a_conversation_goes_on_at_the_other(replicas: Replicas) -> None:
    """Its turns are counted on, and each server knows what was said at the other."""
    chats = [Chat(replicas.one), Chat(replicas.two)]
    replies = [chats[0].say(LOG)]
    for number in range(1, 4):
        said = f"what about rank {number}?"
        replies.append(chats[number % 2].say(said, conversation=replies[0].conversation))
    assert [reply.number for reply in replies] == [1, 2, 3, 4]


def test_one_server_makes_the_vectors(replicas: Replicas) -> None:
    """Each chunk has one vector of the model, whoever came first."""
    one = replicas.one
    one.apply([make_entry(f"v{n}", f"vector {n}") for n in range(5)])
    until(lambda: replicas.two.searcher.index_behind() == 0)
    with one.store.database.read() as connection:
        chunks = connection.execute("SELECT number FROM chunks ORDER BY number").fetchall()
        vectors = connection.execute("SELECT chunk FROM vectors ORDER BY chunk").fetchall()
    assert chunks == vectors
    one.delete([f"v{n}" for n in range(5)])


def test_keys_count_at_both(replicas: Replicas, serve: Serve) -> None:
    """A key made anywhere is taken everywhere, and refused within a moment once it is removed."""
    one, two = replicas.one, replicas.two
    place = keys_place(one.settings)
    with serve(one, one.settings) as first, serve(two, two.settings) as second:

        def status(address: str, key: str) -> int:
            return httpx.get(f"{address}/v1/causes", headers={"X-API-Key": key}).status_code

        assert status(first, "") == status(second, "") == 200
        key = add_key(place, "ann", "read", 600)
        for address in (first, second):
            until(lambda address=address: status(address, "tkb_wrong") == 401)
            assert status(address, key) == 200
        other = add_key(place, "bob", "read", 600)
        remove_key(place, "ann")
        for address in (first, second):
            until(lambda address=address: status(address, key) == 401)
            assert status(address, other) == 200
        remove_key(place, "bob")


@pytest.mark.parametrize("per_minute", [60, 600])
def test_servers_together_let_through_what_one_would(replicas: Replicas, per_minute: int) -> None:
    """Over time a key's limit, whichever server is asked; beyond it a burst and a second each."""
    services = (replicas.one, replicas.two)
    key = add_key(keys_place(services[0].settings), f"k{per_minute}", "read", per_minute)
    now, passed, seconds = 0.0, 0, 120
    guards = [Guard(keys_place(each.settings, each.store), clock=lambda: now) for each in services]
    for step in range(seconds + 1):
        now = float(step)
        for guard in guards:
            while status_of(guard, key) == 200:
                passed += 1
            guard.synchronise()
    limit = seconds / 60 * per_minute
    burst = per_minute / 60 * 10
    remove_key(keys_place(services[0].settings), f"k{per_minute}")
    assert limit <= passed <= limit + 2 * burst + 2 * per_minute / 60


def test_while_the_database_is_gone_answers_go_on(replicas: Replicas, serve: Serve) -> None:
    """Search and diagnosis as before, changes refused with what to do; all comes back by itself."""
    one, two = replicas.one, replicas.two
    entry = make_entry("wombat", "the wombat cable was loose", kind="incident")
    one.apply([entry])
    without_keys = Guard(keys_place(one.settings, one.store))
    key = add_key(keys_place(one.settings), "gone", "write", 600)
    until(lambda: "wombat" in found(two, "wombat cable"))
    two.store.refresh_copy()
    before = two.diagnose_text(LOG, language="en")
    with serve(two, two.settings) as address, httpx.Client(base_url=address) as client:
        client.headers["X-API-Key"] = key
        until(lambda: client.get("/v1/causes").status_code == 200)
        replicas.server.stop()
        try:
            started = time.monotonic()
            assert without_keys.synchronise()
            assert without_keys.open_to_all()
            after = two.diagnose_text(LOG, language="en")
            assert replace(after, took_ms=0) == replace(before, took_ms=0)
            assert "wombat" in found(two, "wombat cable")
            assert two.entry("wombat").chunks == entry.chunks
            assert client.post("/v1/search", json={"query": "wombat"}).status_code == 200
            assert client.post("/v1/diagnose", content=LOG).status_code == 200
            ready = client.get("/readyz")
            assert ready.status_code == 200
            assert "cannot be reached" in ready.json()["store_failure"]
            with pytest.raises(UnreachableStoreError):
                two.apply([make_entry("other", "x")])
            for language, says in (("en", "cannot be reached"), ("zh", "连不上数据库")):
                refused = client.get("/v1/diagnoses/x", headers={"Accept-Language": language})
                assert refused.status_code == 503
                assert refused.json()["type"].endswith(":store-unreachable")
                assert says in refused.json()["detail"]
                assert refused.json()["todo"]
            assert time.monotonic() - started < PATIENCE_S
            late = open_service(two.settings)
            assert replace(late.diagnose_text(LOG, language="en"), took_ms=0) == replace(
                before, took_ms=0
            )
            assert "wombat" in found(late, "wombat cable")
        finally:
            replicas.server.start()
        until(lambda: not client.get("/readyz").json()["store_failure"])
        until(one.store.is_reachable)
        one.delete(["wombat"])
        until(lambda: "wombat" not in found(two, "wombat cable"))
        two.apply([make_entry("numbat", "the numbat is back")])
        until(lambda: "numbat" in found(one, "numbat"))
        late.apply([make_entry("bilby", "the bilby came late")])
        until(lambda: "bilby" in found(one, "bilby late"))
        late.close()
        remove_key(keys_place(one.settings), "gone")
