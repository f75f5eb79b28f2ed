"""`timeout-kb move-store`: all of a knowledge base is elsewhere afterwards, or nothing is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from app.api.auth import add_key, keys_path, keys_place, read_keys
from app.cli import main as cli
from app.cli.common import State
from kb.settings import Settings
from kb.store import FeedbackRow, Store
from kb.store import moving as module
from kb.types.entries import Entry
from tests.kb.fakes import make_entry
from tests.postgres import PostgresServer


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state folder with something of every kind."""
    home = tmp_path / "home"
    store = Store.open(home / "kb.sqlite3")
    entries = [make_entry(f"e{n:04}", f"文本 {n}", "nul\0text") for n in range(1203)]
    store.upsert(entries)
    store.upsert([make_entry("incident-1", "a", kind="incident")])
    store.merge(
        make_entry("incident-2", "b", kind="incident", merged=("incident-1",)), ["incident-1"]
    )
    store.delete(["e0007"])
    numbers = store.chunk_changes_since(-1).chunks
    store.vectors.put("m", numbers, np.ones((len(numbers), 4), dtype=np.float32))
    store.records.put_diagnosis("d", b"{}", created_s=1.25)
    store.records.put_conversation("c", b"[]", now_s=2.5)
    store.records.put_feedback(
        FeedbackRow(
            id="f",
            diagnosis_id="d",
            entry_id="",
            verdict="right",
            cause="",
            comment="\0",
            created_s=0.1,
            source="api",
        )
    )
    store.preferences.put("slack:T:C", b"{}", now_s=1.0)
    store.preferences.claim("event", now_s=1.0, keep_s=9.0)
    store.close()
    add_key(keys_path(Settings(home=home)), "ann", "read")
    return home


def contents(store: Store) -> tuple[object, ...]:
    """What can be read of a store."""
    changes = store.chunk_changes_since(-1)

    def without_nul(entry: Entry) -> list[str]:
        return [chunk.text.replace("\0", "\ufffd") for chunk in entry.chunks]

    return (
        [(entry.id, without_nul(entry)) for entry in store.iter_entries()],
        store.digests(),
        store.facets(),
        changes,
        store.get("incident-1").id,
        store.vectors.get("m", changes.chunks, 4)[1].tolist(),
        store.records.get_diagnosis("d"),
        store.records.get_conversation("c", now_s=3.0),
        [row.created_s for row in store.records.list_feedback()],
        store.preferences.get("slack:T:C"),
        store.records.kept_sizes(),
    )


def run(*words: str) -> int:
    """The exit code of the verb."""
    state = State(settings_source=lambda: Settings(home=Path("/nonexistent")))
    return cli.run(["move-store", *words], state=state)


def read(place: Path | str) -> tuple[object, ...]:
    """What is at a place."""
    store = Store.open(place)
    try:
        return contents(store)
    finally:
        store.close()


def test_there_and_back_all_is_the_same(
    home: Path, postgres: PostgresServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Entries, numbers, vectors, records and keys; numbers that were used are not used again."""
    address, back = postgres.address(), tmp_path / "back"
    assert run(str(home), address) == 0
    assert "entries          1203" in capfd.readouterr().out
    before = read(home / "kb.sqlite3")
    assert read(address) == before
    shared = Settings(home=tmp_path / "x", store=address)
    keys = read_keys(keys_path(Settings(home=home)))
    assert read_keys(keys_place(shared)) == keys
    assert run(address, str(back)) == 0
    assert read(back / "kb.sqlite3") == before
    assert read_keys(keys_path(Settings(home=back))) == keys
    for place in (address, back / "kb.sqlite3"):
        store = Store.open(place)
        last = store.chunk_changes_since(-1)
        store.upsert([make_entry("new", "x")])
        added = store.chunk_changes_since(last.last_seq)
        assert added.last_seq == last.last_seq + 1
        assert min(added.entries) > max(*last.entries, *last.removed_entries)
        assert min(added.chunks) > max(*last.chunks, *last.removed_chunks)
        store.close()


@pytest.mark.parametrize("to_server", [True, False])
def test_a_place_that_is_not_empty_is_refused(
    home: Path,
    postgres: PostgresServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    to_server: bool,
) -> None:
    """What is there stays as it is."""
    target = postgres.address() if to_server else str(tmp_path / "other")
    assert run(str(home), target) == 0
    place: Path | str = target if to_server else tmp_path / "other" / "kb.sqlite3"
    before = read(place)
    assert run(str(home), target) == 1
    assert "is not empty" in capfd.readouterr().err
    assert read(place) == before


@pytest.mark.parametrize("to_server", [True, False])
@pytest.mark.parametrize("after", [5, 16])
def test_a_move_that_breaks_off_leaves_nothing_and_is_done_again(
    home: Path,
    postgres: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    to_server: bool,
    after: int,
) -> None:
    """The second try finds an empty place."""
    target = postgres.address() if to_server else str(tmp_path / "other")
    done: list[str] = []
    copy: Callable[..., int] = module._copied

    def interrupted(*arguments: object) -> int:
        rows = copy(*arguments)
        done.append("table")
        if len(done) == after:
            raise KeyboardInterrupt
        return rows

    with monkeypatch.context() as patched:
        patched.setattr(module, "_copied", interrupted)
        assert run(str(home), target) == 130
    assert run(str(home), target) == 0
    place: Path | str = target if to_server else tmp_path / "other" / "kb.sqlite3"
    assert read(place) == read(home / "kb.sqlite3")


def test_a_row_that_did_not_arrive_is_noticed(
    home: Path,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The target is compared before it counts."""
    batches = module._batches

    def lossy(connection: object, table: tuple[str, str, int], without: object) -> object:
        for rows in batches(connection, table, without):  # type: ignore[arg-type]
            is_target = type(connection).__name__ == "_Statements"
            yield rows[1:] if table[0] == "vectors" and is_target else rows

    address = postgres.address()
    with monkeypatch.context() as patched:
        patched.setattr(module, "_batches", lossy)
        assert run(str(home), address) == 1
    assert "did not take vectors as it was" in capfd.readouterr().err
    assert run(str(home), address) == 0


def test_a_home_without_a_database_is_told(
    tmp_path: Path, postgres: PostgresServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """None is made there."""
    assert run(str(tmp_path / "none"), postgres.address()) == 1
    assert "no database" in capfd.readouterr().err
    assert not (tmp_path / "none").exists()
