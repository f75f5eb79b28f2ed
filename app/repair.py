"""A damaged database, replaced by the latest backup that is whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kb.errors import InputError, NotFoundError, StoreError
from kb.knowledge.labels import Words
from kb.settings import Settings
from kb.store.backup import BACKUPS, backups, restore_database
from kb.store.check import check_database
from kb.store.database import DATABASE


def repair_database(settings: Settings, words: Words, folder: Path | None = None) -> Iterator[str]:
    """Repair the database where it is damaged; a line for each step, after it.

    Raises:
        InputError: the database is a server's.
        NotFoundError: no backup in `folder` (default: the state folder's own) is whole.
        StoreError: the database is wrong in another way than damage, or in use.
    """
    if settings.shared_store:
        raise InputError(
            "the knowledge base is in a database, which is repaired where it runs",
            todo="pg_restore puts a dump of it back",
            reason="repair_server",
        )
    path = settings.home / DATABASE
    try:
        if path.exists():
            check_database(path)
    except StoreError as error:
        if error.reason != "store_damaged":
            raise
        yield words("doctor.repair_found", **error.values)
    else:
        yield words("doctor.repair_nothing")
        return
    folder = folder or settings.home / BACKUPS
    backup = next(backups(folder), None)
    if backup is None:
        raise NotFoundError(
            f"there is no backup in {folder} that is whole",
            todo="name the folder with --from if backups lie elsewhere; else move the database "
            "file away and run `timeout-kb ingest` again over your sources",
            reason="no_backup",
            values={"path": str(folder)},
        )
    manifest = backup.manifest
    values = {"day": manifest.made_at, "entries": manifest.entries, "path": backup.folder}
    yield words("doctor.repair_backup", **values)
    yield words("doctor.repair_aside", path=restore_database(settings.home, backup))
    yield words("doctor.repair_done")
