"""What the store asks of a database, whichever it is.

Statements are written once, in what SQLite and PostgreSQL both take: question marks for
parameters, ``ON CONFLICT`` in place of ``INSERT OR …``, no ids of last rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Rows(Protocol):
    """What a statement gave, or how many rows it changed (of all, where it ran for many)."""

    @property
    def rowcount(self) -> int:
        """Rows that were changed."""

    def fetchone(self) -> Any:  # noqa: ANN401 - as the drivers say
        """The next row, None after the last."""

    def fetchall(self) -> list[Any]:
        """The rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection inside a transaction."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Run a statement."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """Run a statement for each of `rows`."""


class Database(Protocol):
    """A file or a server's database; safe to use from many threads.

    Attributes:
        name: said in messages; without a password.
    """

    name: str

    @property
    def path(self) -> Path | None:
        """The file, None where a server has it."""

    def prepare(self) -> str:
        """Make or migrate the tables; returns the identity of this database.

        Raises:
            StoreError: it cannot be used; the message says what to do.
        """

    def read(self) -> AbstractContextManager[Connection]:
        """A connection in a read transaction: every statement sees the same state."""

    def write(self, *, alone: bool = True) -> AbstractContextManager[Connection]:
        """A connection in a write transaction: all of it happens or nothing.

        One writer at a time. One that is not `alone` may run beside others where the database can
        have several; it must neither read nor change the number of the last change.
        """

    def lock(
        self, name: str, *, shared: bool = False, wait: bool = True
    ) -> AbstractContextManager[bool]:
        """Let nobody else into the block, in no thread and no process that shares the database.

        With `shared` only those who lock it without. Gives whether it was locked: without `wait`
        the block runs also where it was not. `name` is also the file's below the state folder,
        where the database is a file.
        """

    def wait(self, limit_s: float) -> None:
        """Until somebody may have changed an entry, or so many seconds have passed."""

    def keep_numbers(self, connection: Connection) -> None:
        """Use no number of an entry or a chunk again that was written or removed."""

    def close(self) -> None:
        """Close every connection that is not in use; those in use close when they come back."""
