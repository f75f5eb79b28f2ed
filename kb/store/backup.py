"""Backups of a state folder: checked copies in folders of their own, and one put back.

Each is built aside and published by one rename. Nothing in it is derived: the search index and the
caches are made anew from the database. The copy of the database is of one moment, whoever writes
meanwhile: https://www.sqlite.org/backup.html
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kb.errors import NotFoundError, StoreError
from kb.files.atomic import publish_folder, sync
from kb.files.state_folder import locked, make_state_folder
from kb.store.check import check_connection
from kb.store.database import DATABASE, SqliteDatabase

BACKUPS = "backups"  # in the state folder, where no other place is named
BACKUP_FORMAT = 1
KEPT = 7  # a week of daily ones
MANIFEST = "manifest.json"
LOCK = "LOCK"
READ_BYTES = 1 << 20
DERIVED = frozenset({"cache", "index", "locks", "logs", "opened.json", BACKUPS})
_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z(-[0-9]{3})?\Z")
_UNFINISHED = ".building"
_ASIDE = "damaged-"  # begins the folder a damaged database is kept in
_BESIDE = ("-wal", "-shm")  # what SQLite keeps beside a database
_IN_USE_BYTE = 128  # of the -shm file: whoever has the database open holds it (walformat.html)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """What a backup holds: size and SHA-256 of each file by its path below the backup's folder."""

    format: int = BACKUP_FORMAT
    made_at: str  # ISO 8601, UTC
    entries: int
    files: Mapping[str, tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup whose files are as they were written."""

    folder: Path
    manifest: BackupManifest

    @property
    def size(self) -> int:
        """Of all files, in bytes."""
        return sum(size for size, _ in self.manifest.files.values())


def back_up(home: Path, folder: Path, *, keep: int = KEPT) -> Backup:
    """Copy and check what `home` holds, into a new folder below `folder`; the oldest ones go.

    Servers and writers may go on meanwhile.

    Args:
        home: the state folder.
        folder: of all backups; made where it is missing.
        keep: how many stay, the new one among them.

    Raises:
        NotFoundError: there is no database yet.
        StoreError: the database is damaged, or the disk refuses; earlier backups stay.
    """
    home, folder = home.resolve(), folder.resolve()
    if not (home / DATABASE).is_file():
        raise NotFoundError(
            f"there is no database in {home}",
            todo="the first command that reads a log makes it",
            reason="no_database",
            values={"path": str(home)},
        )
    try:
        make_state_folder(folder)
        with locked(folder / LOCK):
            for unfinished in folder.glob(f"*{_UNFINISHED}"):
                shutil.rmtree(unfinished)
            made = _built(home, folder)
            for former in _folders(folder)[keep:]:
                shutil.rmtree(former)
            return made
    except OSError as error:
        raise StoreError(
            f"the backup in {folder} cannot be written: {error.strerror or error}",
            todo="free space, or name another folder with --to; earlier backups are as they were",
            reason="backup_disk",
            values={"path": str(folder), "why": str(error.strerror or error)},
        ) from error


def backups(folder: Path) -> Iterator[Backup]:
    """The backups below `folder` that are as they were written, the latest first."""
    for place in _folders(folder):
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            manifest = msgspec.json.decode((place / MANIFEST).read_bytes(), type=BackupManifest)
            if manifest.format == BACKUP_FORMAT and _is_whole(place, manifest):
                yield Backup(folder=place, manifest=manifest)


def restore_database(home: Path, backup: Backup) -> Path:
    """Put a backup's database in the place of that of `home`; returns where the former is kept.

    The search index goes: numbers of the former database mean something else in this one. Ended
    at any moment, the database in place is the former one or the backup's.

    Raises:
        StoreError: another process has the database open, or the disk refuses.
    """
    target = home / DATABASE
    aside = home / f"{_ASIDE}{_now():%Y%m%dT%H%M%SZ}"
    restored = home / f"{DATABASE}.restored"
    try:
        with _nobody_uses(target):
            make_state_folder(aside)
            _copy(backup.folder / DATABASE, restored)
            sync(restored)
            shutil.rmtree(home / "index", ignore_errors=True)
            if target.exists():
                _second_name(target, aside / DATABASE)
            for suffix in _BESIDE:  # those of the former database would be read into the new one
                beside = target.with_name(f"{DATABASE}{suffix}")
                if beside.exists():
                    beside.replace(aside / beside.name)
            restored.replace(target)
            sync(home)
    except OSError as error:
        restored.unlink(missing_ok=True)
        raise StoreError(
            f"{target} cannot be replaced: {error.strerror or error}",
            todo="free space or make the folder writable, and try again",
            reason="store_full",
            values={"path": str(target), "why": str(error.strerror or error)},
        ) from error
    return aside


@contextlib.contextmanager
def _nobody_uses(path: Path) -> Iterator[None]:
    """Refuse to go on while another process has the database at `path` open.

    Raises:
        StoreError: one has.
    """
    beside = path.with_name(f"{path.name}-shm")
    if not beside.exists():
        yield
        return
    with beside.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _IN_USE_BYTE)
        except OSError:
            raise StoreError(
                f"{path} is open in another process",
                todo="stop the servers of this state folder first",
                reason="store_open",
                values={"path": str(path)},
            ) from None
        yield


def _built(home: Path, folder: Path) -> Backup:
    now = _now()
    taken = {path.name for path in folder.iterdir()}
    names = (f"{now:%Y%m%dT%H%M%SZ}{suffix}" for suffix in ("", *(f"-{n:03}" for n in range(1000))))
    final = folder / next(name for name in names if name not in taken)
    built = final.with_name(final.name + _UNFINISHED)
    try:
        built.mkdir(mode=0o700)
        entries = _copy_database(home / DATABASE, built / DATABASE)
        for path in _own_files(home, folder):
            with contextlib.suppress(FileNotFoundError):  # replaced or deleted meanwhile
                _copy(path, built / path.relative_to(home))
        files = {
            path.relative_to(built).as_posix(): (path.stat().st_size, _digest(path))
            for path in sorted(built.rglob("*"))
            if path.is_file()
        }
        made_at = now.isoformat(timespec="seconds")
        manifest = BackupManifest(made_at=made_at, entries=entries, files=files)
        _create(built / MANIFEST).write_bytes(msgspec.json.encode(manifest))
        publish_folder(built, final)
    finally:
        shutil.rmtree(built, ignore_errors=True)
    return Backup(folder=final, manifest=manifest)


def _copy_database(source: Path, target: Path) -> int:
    """Copy the database as it is at this moment, check the copy, and count its entries."""
    database = SqliteDatabase(source)
    with (
        database.errors(),
        contextlib.closing(database.connect()) as reading,
        contextlib.closing(sqlite3.connect(_create(target))) as copy,
    ):
        reading.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        return check_connection(copy, source, thorough=True)


def _own_files(home: Path, folder: Path) -> Iterator[Path]:
    """The files of a state folder beside its database that nothing else makes anew."""
    for path in sorted(home.rglob("*")):
        first = path.relative_to(home).parts[0]
        passed_over = first in DERIVED or first.startswith((DATABASE, _ASIDE))
        if passed_over or path.is_symlink() or not path.is_file():
            continue
        if path.suffix != ".lock" and not path.is_relative_to(folder):
            yield path


def _folders(folder: Path) -> list[Path]:
    """The folders of published backups, the latest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if _NAME.match(path.name)), reverse=True)


def _is_whole(place: Path, manifest: BackupManifest) -> bool:
    return DATABASE in manifest.files and all(
        (place / name).stat().st_size == size and _digest(place / name) == digest
        for name, (size, digest) in manifest.files.items()
    )


def _create(path: Path) -> Path:
    """An empty file for its owner alone."""
    path.parent.mkdir(mode=0o700, exist_ok=True, parents=True)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return path


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as reading:
        target.unlink(missing_ok=True)
        with _create(target).open("wb") as writing:
            shutil.copyfileobj(reading, writing, READ_BYTES)


def _second_name(path: Path, name: Path) -> None:
    try:
        name.hardlink_to(path)
    except OSError:  # a file system without second names
        _copy(path, name)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _now() -> datetime:
    return datetime.now(UTC)
