"""Files that are not what they should be, full disks, killed writers: nothing is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kb.errors import StoreError
from kb.store import Store
from kb.store.database import APPLICATION_ID, STATEMENTS, VERSION
from tests.kb.fakes import make_entry
from tests.stored import stored_rows

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store.open(tmp_path / "kb.sqlite3")


def test_a_half_made_database_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that fails in the middle leaves no table, and the next opening makes them all."""
    path = tmp_path / "kb.sqlite3"
    with monkeypatch.context() as patched:
        patched.setattr("kb.store.database.STATEMENTS", (*STATEMENTS, "CREATE TABLE meta (x)"))
        with pytest.raises(StoreError, match="meta already exists"):
            Store.open(path)
    assert stored_rows(path, "SELECT name FROM sqlite_master") == []
    assert Store.open(path).ids() == []
    assert stored_rows(path, "PRAGMA user_version") == [(VERSION,)]


def damage(path: Path, kind: str) -> None:
    """Make the file at `path` unusable in one way."""
    if kind == "text":
        path.write_bytes(b"this is not a database, it is a text " * 100)
    elif kind == "header":
        content = bytearray(path.read_bytes())
        content[:64] = os.urandom(64)
        path.write_bytes(bytes(content))
    elif kind == "pages":
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        path.write_bytes(bytes(content))
    else:
        connection = sqlite3.connect(path)
        if kind in ("newer", "older"):
            step = 1 if kind == "newer" else -1
            connection.execute(f"PRAGMA user_version = {VERSION + step}")
        else:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID + 1}")
        connection.commit()
        connection.close()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "text",
            "is not a database, or is damaged .* — put the latest backup in its place",
        ),
        (
            "header",
            "is not a database, or is damaged .* — put the latest backup in its place",
        ),
        (
            "pages",
            "damaged .* — put the latest backup in its place",
        ),
        ("newer", "has schema version 2, this program has 1 — run the timeout-kb that made it"),
        ("older", "has schema version 0, this program has 1 — run the timeout-kb that made it"),
        ("foreign", "is a database of another program — set TIMEOUT_KB_HOME"),
    ],
)
def test_an_unusable_file_is_named_with_the_next_step(
    tmp_path: Path, kind: str, message: str
) -> None:
    """The person reads which file, what is wrong, and what to do; the file is not touched."""
    path = tmp_path / "kb.sqlite3"
    store = Store.open(path)
    store.upsert([make_entry(f"e{number}", "text " * 50) for number in range(50)])
    store.close()
    damage(path, kind)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message) as caught:
        list(Store.open(path).iter_entries())
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_a_database_of_another_version_is_no_matter_of_rights(tmp_path: Path) -> None:
    """It has labels of its own: who upgrades is not sent to look at rights and disk space."""
    path = tmp_path / "kb.sqlite3"
    Store.open(path).close()
    damage(path, "newer")
    with pytest.raises(StoreError) as caught:
        list(Store.open(path).iter_entries())
    assert caught.value.reason == "store_version"
    values = {"path": str(path), "version": str(VERSION + 1), "wanted": str(VERSION)}
    assert caught.value.values == values


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """The next step is another folder."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="make the folder writable, or set TIMEOUT_KB_HOME"):
        Store.open(tmp_path / "file" / "kb.sqlite3")


def test_a_directory_in_the_files_place_is_named(tmp_path: Path) -> None:
    """Something that is no file at all gives a message, not a traceback."""
    (tmp_path / "kb.sqlite3").mkdir()
    with pytest.raises(StoreError, match="cannot be opened or created"):
        Store.open(tmp_path / "kb.sqlite3")


def test_a_closed_store_says_so(store: Store) -> None:
    """Use after close is an error of ours, not of SQLite's."""
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.ids()


FILL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from kb.errors import StoreError
from kb.store import Store
from tests.kb.fakes import make_entry
store = Store.open(Path({path!r}))
store.upsert([make_entry("kept", "x")])
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    store.upsert([make_entry(f"e{{n}}", "text " * 5000) for n in range(200)])
except StoreError as error:
    print(error)
"""


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """When the file cannot grow the batch is refused with a reason and the rest stays."""
    path = tmp_path / "kb.sqlite3"
    script = FILL.format(root=str(ROOT), path=str(path))
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "the disk is full" in run.stdout
    assert "free space" in run.stdout
    assert Store.open(path).ids() == ["kept"]


WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from kb.store import Store
from tests.kb.fakes import make_entry

class Told(list):
    def __iter__(self):
        for item in super().__iter__():
            print(item.id, flush=True)
            yield item

store = Store.open(Path({path!r}))
for batch in range(1000):
    store.upsert(Told(make_entry(f"b{{batch}}-{{n}}", f"text {{n}}", "two") for n in range(5)))
"""


@pytest.mark.parametrize("lines", [1, 2, 7, 13, 15, 16, 24, 38, 55, 70])
def test_a_killed_writer_leaves_whole_batches(tmp_path: Path, lines: int) -> None:
    """After kill -9 inside a transaction the store opens with whole batches only."""
    path = tmp_path / "kb.sqlite3"
    script = WRITE.format(root=str(ROOT), path=str(path))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        assert child.stdout is not None
        for _ in range(lines):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    store = Store.open(path)
    ids = store.ids()
    assert stored_rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert len(ids) >= (lines - 1) // 5 * 5
    assert set(ids) == {f"b{b}-{n}" for b in range(len(ids) // 5) for n in range(5)}
    assert all(len(entry.chunks) == 2 for entry in store.iter_entries())
    assert store.last_seq() == len(ids) // 5


def test_writers_and_readers_of_several_threads_do_not_fail(store: Store) -> None:
    """Every batch of every writer arrives, and a reader never sees half of one."""
    torn: list[int] = []
    done = threading.Event()

    def write(name: str) -> None:
        other = Store.open(store.path)  # as another process would
        for batch in range(8):
            other.upsert([make_entry(f"{name}-{batch}-{n}", "x") for n in range(4)])
        other.close()

    def read() -> None:
        while not done.is_set():
            torn.extend(count for count in [len(store.ids())] if count % 4)

    writers = [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
    reader = threading.Thread(target=read)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert torn == []
    assert len(store.ids()) == 2 * 8 * 4
    assert store.last_seq() == 2 * 8
