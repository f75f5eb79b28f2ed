"""The store on a PostgreSQL server: what differs from a file."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from kb.errors import SettingsError, StoreError, UnreachableStoreError
from kb.settings import Settings, load_settings
from kb.store import Store
from kb.store import postgres as module
from tests.kb.fakes import make_entry
from tests.postgres import PostgresServer, postgres_server
from tests.stored import stored_rows

SECRET = "hunter2-Zq"  # noqa: S105 - nobody's


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """The address of an empty knowledge base."""
    return postgres.address()


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    """An empty store."""
    store = Store.open(address)
    yield store
    store.close()


def test_nul_is_replaced(store: Store) -> None:
    """PostgreSQL keeps no NUL: it becomes the replacement character, in keys as in texts."""
    store.upsert([make_entry("a", "x\0y", source_key="file\0name")])
    assert store.get("a").chunks[0].text == "x\N{REPLACEMENT CHARACTER}y"
    assert store.upsert([make_entry("a", "x\0y", source_key="file\0name")])["unchanged"] == 1
    assert list(store.digests()) == ["file\N{REPLACEMENT CHARACTER}name"]


def test_a_source_of_any_length_is_known_again(store: Store) -> None:
    """Longer than what a B-tree takes, and of bytes that do not compress."""
    key = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(3000))
    store.upsert([make_entry("a", "x", source_key=key)])
    assert store.upsert([make_entry("b", "y", source_key=key)])["updated"] == 1
    assert store.ids() == ["b"]


def test_ids_are_in_the_order_of_their_bytes(store: Store) -> None:
    """Whatever the server's language sorts otherwise."""
    ids = ["B", "a", "Z", "ä", "_", "一"]
    store.upsert([make_entry(one, one) for one in ids])
    assert store.ids() == sorted(ids)


def test_changes_are_numbered_in_the_order_of_their_commits(address: str) -> None:
    """Of many writers none hides a change from who reads on from the last number."""
    stores = [Store.open(address) for _ in range(3)]
    followed: list[tuple[int, ...]] = []
    done = threading.Event()

    def follow() -> None:
        seq = 0
        with_end = False
        while not with_end:
            with_end = done.is_set()
            changes = stores[0].chunk_changes_since(seq)
            followed.append(changes.chunks)
            seq = changes.last_seq

    def write(store: Store, name: str) -> None:
        for number in range(20):
            store.upsert([make_entry(f"{name}{number}", "x")])

    follower = threading.Thread(target=follow)
    follower.start()
    writers = [
        threading.Thread(target=write, args=(store, f"w{n}-")) for n, store in enumerate(stores)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    follower.join()
    assert stores[0].last_seq() == 60
    assert sorted(number for chunks in followed for number in chunks) == sorted(
        stores[0].chunk_changes_since(0).chunks
    )
    for store in stores:
        store.close()


def test_a_change_wakes_who_waits(address: str, store: Store) -> None:
    """At once, from another connection; a kept diagnosis wakes nobody."""
    other = Store.open(address)
    store.wait(0.01)  # listens from here on
    other.records.put_diagnosis("d", b"{}", created_s=1.0)
    started = time.monotonic()
    store.wait(0.2)
    assert time.monotonic() - started >= 0.2
    other.upsert([make_entry("a", "x")])
    started = time.monotonic()
    store.wait(30)
    assert time.monotonic() - started < 5
    other.close()


def test_a_store_that_is_closed_while_it_connects_leaves_no_connection(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for changes opens a connection; a close at that moment does not know it yet."""
    opened: list[psycopg.Connection[object]] = []
    connect = store.database._connect  # type: ignore[attr-defined]

    def connect_late() -> psycopg.Connection[object]:
        opened.append(connect())
        store.close()
        return opened[-1]

    monkeypatch.setattr(store.database, "_connect", connect_late)
    store.wait(0.01)
    assert [one.closed for one in opened] == [True]


def test_one_at_a_time_has_a_lock(address: str, store: Store) -> None:
    """Another process's store waits for it; another name is another lock."""
    other, order = Store.open(address), []
    held, given_back = threading.Event(), threading.Event()

    def second() -> None:
        held.wait()
        with other.lock("another"):
            order.append("another")
            given_back.set()
        with other.lock("turn"):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with store.lock("turn"):
        held.set()
        given_back.wait()
        order.append("first")
    thread.join()
    assert order == ["another", "first", "second"]
    other.close()


def test_a_shared_lock_keeps_out_who_wants_it_alone(address: str, store: Store) -> None:
    """Who does not wait hears that at once; another store's locks are others."""
    other, foreign = Store.open(address), Store.open(f"{address}x")
    with (
        store.lock("a", shared=True) as first,
        other.lock("a", shared=True, wait=False) as second,
        other.lock("a", wait=False) as alone,
        foreign.lock("a", wait=False) as elsewhere,
    ):
        assert (first, second, alone, elsewhere) == (True, True, False, True)
    with other.lock("a", wait=False) as alone, store.lock("a", shared=True, wait=False) as first:
        assert (alone, first) == (True, False)
    other.close()
    foreign.close()


def test_two_programs_may_make_the_tables_at_once(address: str) -> None:
    """All find the same knowledge base."""
    ids: list[str] = []

    def make() -> None:
        store = Store.open(address)
        ids.append(store.id)
        store.close()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 4
    assert len(set(ids)) == 1


def test_tables_of_a_newer_program_are_refused(address: str, store: Store) -> None:
    """Nothing is changed in them, and the versions are named."""
    with store.database.write() as connection:
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'schema_version'")
    with pytest.raises(StoreError, match="schema version 2, this program has 1") as caught:
        Store.open(address)
    assert caught.value.reason == "store_newer"


def test_tables_of_an_older_program_are_migrated(
    address: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step once, in a transaction with the number of the version."""
    monkeypatch.setattr(module, "POSTGRES_VERSION", 3)
    monkeypatch.setattr(
        module,
        "MIGRATIONS",
        {1: ("ALTER TABLE models ADD extra TEXT",), 2: ("CREATE TABLE more (x TEXT)",)},
    )
    for _ in range(2):
        Store.open(address).close()
    query = "SELECT value FROM meta WHERE key = 'schema_version'"
    assert stored_rows(store, query) == [("3",)]
    assert stored_rows(store, "SELECT extra FROM models") == stored_rows(
        store, "SELECT x FROM more"
    )


def test_a_silent_writer_loses_its_place(
    address: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends a transaction that does nothing, so the next writer is served."""
    monkeypatch.setattr(module, "IDLE_TIMEOUT_S", 1)
    silent = Store.open(address)

    def write() -> None:
        with silent.database.write() as connection:
            time.sleep(1.5)
            connection.execute("SELECT 1")

    with pytest.raises(StoreError):
        write()
    store.upsert([make_entry("a", "x")])
    silent.close()


def test_who_waits_too_long_is_told(
    address: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer gives up in time, with a reason; nothing is changed."""
    monkeypatch.setattr(module, "LOCK_TIMEOUT_S", 1)
    waiting = Store.open(address)
    with store.database.write(), pytest.raises(StoreError) as caught:
        waiting.upsert([make_entry("a", "x")])
    assert caught.value.reason == "store_busy"
    assert store.ids() == []
    waiting.close()


@pytest.mark.parametrize(
    "form",
    [
        "postgresql://ann:{}@127.0.0.1:1/db",
        "postgres://ann:{}@127.0.0.1:1/db?connect_timeout=2",
        "host=127.0.0.1 port=1 user=ann dbname=db password={}",
    ],
)
def test_a_password_is_never_said(form: str) -> None:
    """The refusal names who and where; neither it nor what it came from quotes the password."""
    with pytest.raises(UnreachableStoreError, match=r"ann@127\.0\.0\.1:1/db") as caught:
        Store.open(form.format(SECRET))
    error: BaseException | None = caught.value
    assert (caught.value.http_status, caught.value.reason) == (503, "store_unreachable")
    while error is not None:
        assert SECRET not in f"{error!r} {vars(error)}"
        error = error.__cause__
    assert SECRET not in repr(Settings(store=form.format(SECRET)))


@pytest.mark.parametrize("text", [f"postgresql://ann:{SECRET}@[x/db", f"host=x {SECRET}", SECRET])
def test_an_address_that_is_none_is_not_quoted(text: str) -> None:
    """It may hold a password."""
    with pytest.raises(SettingsError) as caught:
        Store.of(load_settings({"TIMEOUT_KB_STORE": text}))
    assert caught.value.reason == "setting_store"
    assert SECRET not in f"{caught.value} {caught.value.values}"


def test_a_role_that_may_not_write_is_told(postgres: PostgresServer, store: Store) -> None:
    """Who may make no schema reads what right is missing."""
    with psycopg.connect(postgres.address(), autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(StoreError) as caught:
        Store.open(postgres.address().replace("user=tkb", "user=guest"))
    assert caught.value.reason == "store_refused"


def test_a_server_that_comes_back_is_used_again() -> None:
    """While it is gone all fails at once; afterwards all is as it was."""
    with postgres_server() as server:
        store = Store.open(server.address())
        store.upsert([make_entry("a", "x")])
        server.stop()
        started = time.monotonic()
        for call in (store.ids, store.last_seq, lambda: store.delete(["a"])):
            with pytest.raises(UnreachableStoreError):
                call()
        assert time.monotonic() - started < 2
        server.start()
        time.sleep(module.RETRY_S)
        assert store.ids() == ["a"]
        assert store.delete(["a"]) == 1
        store.close()


def test_the_driver_is_loaded_only_where_it_is_used() -> None:
    """Who keeps the knowledge base in a file needs no package for it."""
    code = "import sys, kb.bootstrap, app.doctor; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
