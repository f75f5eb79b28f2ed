"""A thread that keeps the index up to a database that other machines change as well."""

from __future__ import annotations

import threading

from kb.errors import KBError
from kb.index.chunk_index import ChunkIndex
from kb.index.live import SearchIndex
from kb.index.publisher import Publisher
from kb.store import Store

POLL_S = 5.0  # a lost notification costs this much
RETRY_S = 1.0  # after the server could not be reached
CLOSING_S = 2.0  # the thread notices within a moment


class Follower:
    """Brings index and local copy up to the store whenever somebody has changed it.

    Where servers share what they build, a second thread publishes what this one has.
    """

    def __init__(self, store: Store, index: ChunkIndex) -> None:
        """Start to follow."""
        self._store, self._index = store, index
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-follower", daemon=True)
        self._thread.start()
        self._publisher: Publisher | None = None
        if isinstance(index, SearchIndex) and index.shared:
            self._publisher = Publisher(store, index, index.shared)
            self._publisher.start()

    def close(self) -> None:
        """Stop, and close the store: its end is what wakes the thread."""
        self._stopped.set()
        if self._publisher is not None:
            self._publisher.close()
        self._store.close()
        self._thread.join(CLOSING_S)

    def _run(self) -> None:
        wait_s = 0.0  # what changed before anybody listened is looked for first
        while not self._stopped.is_set():
            try:
                self._store.wait(wait_s)
                self._store.refresh_copy()
                following = self._index.follow()
                wait_s = POLL_S
            except KBError:  # the database may go at any moment, and be closed at any
                wait_s = 0.0
                self._stopped.wait(RETRY_S)
                continue
            if following is not None:
                following.join()
