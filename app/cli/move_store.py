"""`timeout-kb move-store`: a knowledge base from a state folder into a database, or back."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import State, language_option
from kb.errors import NotFoundError, StoreError
from kb.settings import is_address

if TYPE_CHECKING:
    from kb.store import Store
    from kb.store.connection import Connection


@click.command("move-store")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@language_option
@click.pass_context
def command(context: click.Context, source: str, target: str, language: None) -> None:
    """Copy a knowledge base FROM one place TO another, empty one, and compare the two.

    A place is a state folder or the address of a PostgreSQL database. Stop the servers first. All
    of it is moved, with the keys, or nothing; FROM stays as it is.
    """
    state = context.find_object(State) or State()
    with closing(_source(source)) as reading, closing(_target(target)) as writing:
        counts = _moved(reading, writing, _keys(source, reading), target)
        for table, rows in counts.items():
            click.echo(f"{table:16} {rows}")
        words = state.words()
        click.echo(words("doctor.store_moved", source=reading.name, target=writing.name))


def _source(place: str) -> Store:
    """The store at a place where there is one."""
    from kb.store import Store
    from kb.store.database import DATABASE

    if is_address(place):
        return Store.open(place)
    path = Path(place).expanduser() / DATABASE
    if not path.is_file():
        raise NotFoundError(
            f"there is no database in {path.parent}",
            todo="the first command that reads a log makes it",
            reason="no_database",
            values={"path": str(path.parent)},
        )
    return Store.open(path)


def _target(place: str) -> Store:
    """The store at a place, made if missing."""
    from kb.store import Store
    from kb.store.database import DATABASE

    if is_address(place):
        return Store.open(place)
    if _keys_file(place).exists():
        raise StoreError(
            f"{place} is not empty",
            todo="name an empty database, or move its knowledge base away first",
            reason="store_not_empty",
            values={"path": place},
        )
    return Store.open(Path(place).expanduser() / DATABASE)


def _keys_file(place: str) -> Path:
    from app.api.auth import KEYS_FILE

    return Path(place).expanduser() / KEYS_FILE


def _keys(place: str, store: Store) -> bytes | None:
    """The keys at a place, None where there are none."""
    from app.api.stored_keys import SCOPE

    if is_address(place):
        return store.preferences.get(SCOPE)
    return _keys_file(place).read_bytes() if _keys_file(place).exists() else None


def _moved(reading: Store, writing: Store, keys: bytes | None, target: str) -> dict[str, int]:
    """Move everything; returns the number of rows by table."""
    from app.api.stored_keys import SCOPE
    from kb.files.atomic import write_file
    from kb.store.moving import move_store

    def move_keys(connection: Connection) -> None:
        if keys is not None and is_address(target):
            row = (SCOPE, time.time(), keys)
            connection.execute("INSERT INTO preferences VALUES (?, ?, ?)", row)
        elif keys is not None:
            write_file(_keys_file(target), keys, mode=0o600, durable=True)

    try:
        return move_store(reading.database, writing.database, without=(SCOPE,), finish=move_keys)
    except BaseException:
        if not is_address(target):
            _keys_file(target).unlink(missing_ok=True)
        raise
