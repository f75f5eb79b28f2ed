"""Keys and counts of requests in a database that several servers share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kb.settings import Settings

if TYPE_CHECKING:
    from kb.store import Store

SCOPE = "api-keys"  # of the preference that holds what is a file otherwise
LOCK = "keys.lock"


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """Where keys lie that all servers of a database take: as a file's content, in its store.

    Without a `store` it is opened for each call, as commands do.
    """

    settings: Settings
    store: Store | None = None

    def __str__(self) -> str:
        return "the keys in the database"

    def read_bytes(self) -> bytes:
        """The content.

        Raises:
            FileNotFoundError: there were never any keys.
            StoreError: the database cannot be read.
        """
        with self._opened() as store:
            content = store.preferences.get(SCOPE)
        if content is None:
            raise FileNotFoundError(SCOPE)
        return content

    def write(self, content: bytes) -> None:
        """Replace the content.

        Raises:
            StoreError: the database cannot be written.
        """
        with self._opened() as store:
            store.preferences.put(SCOPE, content, now_s=time.time())

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let one process at a time read, change and write the keys."""
        with self._opened() as store, store.lock(LOCK):
            yield

    def add_requests(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add to the requests counted by key (its digest); returns those of all servers.

        Raises:
            StoreError: the database cannot be written.
        """
        with self._opened() as store, store.database.write(alone=False) as connection:
            connection.executemany(
                "INSERT INTO request_counts VALUES (?, ?) ON CONFLICT (digest) DO UPDATE "
                "SET requests = request_counts.requests + excluded.requests",
                sorted(counts.items()),
            )
            return dict(connection.execute("SELECT digest, requests FROM request_counts"))

    @contextmanager
    def _opened(self) -> Iterator[Store]:
        from kb.store import Store

        if self.store is not None:
            yield self.store
            return
        store = Store.open(self.settings.store)
        try:
            yield store
        finally:
            store.close()
