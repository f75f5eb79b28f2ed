"""What every index does to follow the store: in the background, one at a time, not too often."""

from __future__ import annotations

import logging
import math
import threading
import time

from kb.errors import KBError, UnreachableIndexError, UnreachableStoreError
from kb.store import Store

RETRY_S = 60.0  # after the index could not be brought up to date: a build may take minutes
_log = logging.getLogger(__name__)


class IndexUpkeep:
    """Brings an index up to `store`; a kind of index says how in `_bring_up` and `_last_seq`.

    Attributes:
        failure: why it could not be brought up to date when that was last tried; empty otherwise.
    """

    def __init__(self, store: Store) -> None:
        """Nothing is read before it is asked for."""
        self.failure = ""
        self._store = store
        self._following = threading.Lock()
        self._failed_at = -math.inf

    def _last_seq(self) -> int:
        """Number of the store's last change that is known to be in the index; 0 without one."""
        raise NotImplementedError

    def _bring_up(self) -> bool:
        """What `catch_up` promises."""
        raise NotImplementedError

    def behind(self) -> int:
        """How many changes of the store the index lacks."""
        return abs(self._store.last_seq() - self._last_seq())

    def follow(self) -> threading.Thread | None:
        """Start to bring the index up to the store, in the thread returned, where it is behind.

        None where it is not, where that is going on, or failed a moment ago.
        """
        if not self.behind() or time.monotonic() - self._failed_at < RETRY_S:
            return None
        if not self._following.acquire(blocking=False):
            return None
        thread = threading.Thread(target=self._follow, name="index-follower", daemon=True)
        thread.start()
        return thread

    def _follow(self) -> None:
        try:
            self.catch_up()
        except KBError:
            _log.warning("index_not_followed", exc_info=True)
        finally:
            self._following.release()

    def catch_up(self) -> bool:
        """Bring the index up to the store's last change; whether that changed anything.

        Raises:
            SearchIndexError: the index cannot be written.
            StoreError: the database cannot be read, or the vectors not be written.
        """
        try:
            changed = self._bring_up()
        except KBError as error:
            # a server that is gone is asked again with the next search, by its own measure
            away = isinstance(error, UnreachableStoreError | UnreachableIndexError)
            self.failure, self._failed_at = str(error), -math.inf if away else time.monotonic()
            raise
        self.failure, self._failed_at = "", -math.inf
        return changed
