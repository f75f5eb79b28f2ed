"""Backups are of one moment, checked and few; the latest takes a damaged database's place."""

from __future__ import annotations

import json
import multiprocessing
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kb.errors import NotFoundError, StoreError
from kb.store import Store
from kb.store import backup as module
from kb.store.backup import BACKUPS, Backup, back_up, backups, restore_database
from kb.store.check import check_database
from kb.store.database import DATABASE, SqliteDatabase
from tests.kb.fakes import make_entry
from tests.stored import stored_rows


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state folder with entries, keys, captures, and what is derived."""
    home = tmp_path / "home"
    store = Store.open(home / DATABASE)
    store.upsert([make_entry(f"e{number}", "text " * 50) for number in range(20)])
    store.close()
    (home / "keys.json").write_text("keys")
    for name in ("learned/0001.json", "captures/a.tar.zst", "index/CURRENT", "cache/x", "logs/l"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(name)
    (home / "changes.lock").touch()
    return home


@pytest.fixture
def minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a minute later."""
    count = iter(range(60))
    monkeypatch.setattr(module, "_now", lambda: datetime(2026, 1, 2, 3, next(count), tzinfo=UTC))


def damage(home: Path) -> None:
    """Make most pages of the database unreadable."""
    path = home / DATABASE
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def test_a_backup_holds_what_cannot_be_made_anew(home: Path) -> None:
    """The database as one file, keys, learned weights, captures; its owner's alone."""
    made = back_up(home, home / BACKUPS)
    files = {p.relative_to(made.folder).as_posix() for p in made.folder.rglob("*") if p.is_file()}
    data = {DATABASE, "keys.json", "learned/0001.json", "captures/a.tar.zst"}
    assert files == data | {"manifest.json"}
    assert set(made.manifest.files) == data
    assert made.manifest.entries == 20
    for path in (home / BACKUPS, made.folder, *made.folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert list(backups(home / BACKUPS)) == [made]


@pytest.mark.usefixtures("minutes")
def test_the_oldest_go(home: Path, tmp_path: Path) -> None:
    """So does what a killed backup left; each has a name of its own."""
    folder = tmp_path / "elsewhere"
    (folder / "20260101T000000Z.building").mkdir(parents=True)
    made = [back_up(home, folder, keep=3) for _ in range(5)]
    assert list(backups(folder)) == made[:1:-1]
    assert sorted(p.name for p in folder.iterdir()) == [
        "20260102T030200Z",
        "20260102T030300Z",
        "20260102T030400Z",
        "LOCK",
    ]


def test_two_in_a_second_do_not_meet(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later one is the latest by its name, too."""
    monkeypatch.setattr(module, "_now", lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    first, second = back_up(home, home / BACKUPS), back_up(home, home / BACKUPS)
    assert [one.folder.name for one in backups(home / BACKUPS)] == [
        "20260102T030405Z-000",
        "20260102T030405Z",
    ]
    assert (first.folder.name, second.folder.name) == ("20260102T030405Z", "20260102T030405Z-000")


def test_a_backup_under_writes_is_of_one_moment(home: Path) -> None:
    """Entries come in threes: every copy holds whole threes, and no writer waits to the end."""
    store = Store.open(home / DATABASE)
    done = threading.Event()

    def write() -> None:
        for batch in range(1000):
            store.upsert([make_entry(f"b{batch}-{n}", f"w{n} " * 40) for n in range(3)])
            if done.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    counts = [back_up(home, home / BACKUPS).manifest.entries for _ in range(4)]
    done.set()
    writer.join()
    store.close()
    assert all((count - 20) % 3 == 0 for count in counts)
    assert counts == sorted(counts)


@pytest.mark.usefixtures("minutes")
@pytest.mark.parametrize("victim", [DATABASE, "keys.json", "manifest.json"])
def test_a_damaged_backup_is_none(home: Path, victim: str) -> None:
    """The one before it counts."""
    first, second = back_up(home, home / BACKUPS), back_up(home, home / BACKUPS)
    path = second.folder / victim
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert list(backups(home / BACKUPS)) == [first]


def test_a_backup_of_another_format_is_none(home: Path) -> None:
    """A newer program's stays where it is and is not put back by this one."""
    made = back_up(home, home / BACKUPS)
    path = made.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    assert list(backups(home / BACKUPS)) == []


def test_a_damaged_database_makes_no_backup(home: Path) -> None:
    """The refusal names both commands; the backups that are there stay."""
    made = back_up(home, home / BACKUPS, keep=1)
    damage(home)
    with pytest.raises(StoreError, match=r"doctor --repair.*timeout-kb backup") as caught:
        back_up(home, home / BACKUPS, keep=1)
    assert caught.value.reason == "store_damaged"
    assert list(backups(home / BACKUPS)) == [made]
    assert {path.name for path in (home / BACKUPS).iterdir()} == {"LOCK", made.folder.name}


def test_an_entry_that_cannot_be_read_is_damage(home: Path) -> None:
    """Also where SQLite sees none: the pages are whole, what stands in them is not."""
    database = SqliteDatabase(home / DATABASE)
    with database.write() as connection:
        connection.execute("UPDATE entries SET body = substr(body, 9) WHERE id = 'e7'")
    database.close()
    store = Store.open(home / DATABASE)
    for failing in (
        lambda: list(store.iter_entries()),
        lambda: check_database(home / DATABASE),
        lambda: back_up(home, home / BACKUPS),
    ):
        with pytest.raises(StoreError) as caught:
            failing()
        assert caught.value.reason == "store_damaged"
    store.close()


def test_a_database_without_its_id_is_damaged(home: Path) -> None:
    """The row is not made anew: an index of the former id would count as another store's."""
    database = SqliteDatabase(home / DATABASE)
    with database.write() as connection:
        connection.execute("DELETE FROM meta WHERE key = 'store_id'")
    database.close()
    with pytest.raises(StoreError, match="lost its id") as caught:
        Store.open(home / DATABASE)
    assert caught.value.reason == "store_damaged"


def test_no_database_no_backup(tmp_path: Path) -> None:
    """Nothing is made in its place."""
    with pytest.raises(NotFoundError, match="there is no database"):
        back_up(tmp_path, tmp_path / BACKUPS)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_the_earlier_ones(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk refuses at the end: nothing half stays."""
    made = back_up(home, home / BACKUPS, keep=1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "publish_folder", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        back_up(home, home / BACKUPS, keep=1)
    assert caught.value.reason == "backup_disk"
    assert list(backups(home / BACKUPS)) == [made]
    assert {path.name for path in (home / BACKUPS).iterdir()} == {"LOCK", made.folder.name}


def damaged_after_a_backup(home: Path) -> Backup:
    """The latest backup of a home that was written in afterwards and then damaged."""
    made = back_up(home, home / BACKUPS)
    store = Store.open(home / DATABASE)
    store.upsert([make_entry("later", "x")])
    store.close()
    damage(home)
    return made


def test_a_database_put_back_is_that_of_the_backup(home: Path) -> None:
    """The damaged one lies beside it, byte by byte; the index of the former one is gone."""
    made = damaged_after_a_backup(home)
    before = (home / DATABASE).read_bytes()
    (home / f"{DATABASE}-wal").write_bytes(b"left by a crash")
    aside = restore_database(home, made)
    check_database(home / DATABASE)
    store = Store.open(home / DATABASE)
    assert store.ids() == sorted(f"e{number}" for number in range(20))
    store.close()
    assert (aside / DATABASE).read_bytes() == before
    assert (aside / f"{DATABASE}-wal").read_bytes() == b"left by a crash"
    assert stat.S_IMODE((home / DATABASE).stat().st_mode) == 0o600
    assert not (home / "index").exists()
    again = back_up(home, home / BACKUPS)
    assert set(again.manifest.files) == set(made.manifest.files)


@pytest.mark.parametrize("step", ["sync", "_second_name"])
def test_a_repair_that_ends_midway_is_done_again(
    home: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the moment, there is a database in place, and the next try succeeds."""
    made = damaged_after_a_backup(home)

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, step, end)
        with pytest.raises(KeyboardInterrupt):
            restore_database(home, made)
    assert (home / DATABASE).exists()
    restore_database(home, made)
    assert stored_rows(home / DATABASE, "SELECT count(*) FROM entries") == [(20,)]


def hold_open(path: Path, opened: object, leave: object) -> None:
    """In another process: have the database open."""
    store = Store.open(path)
    store.count()
    opened.set()  # type: ignore[attr-defined]
    leave.wait()  # type: ignore[attr-defined]


def test_a_database_in_use_is_not_replaced(home: Path) -> None:
    """A server would go on writing into the file that is moved aside."""
    made = back_up(home, home / BACKUPS)
    context = multiprocessing.get_context("spawn")
    opened, leave = context.Event(), context.Event()
    other = context.Process(target=hold_open, args=(home / DATABASE, opened, leave))
    other.start()
    try:
        assert opened.wait(60)
        with pytest.raises(StoreError, match="open in another process — stop the servers"):
            restore_database(home, made)
    finally:
        leave.set()
        other.join()
