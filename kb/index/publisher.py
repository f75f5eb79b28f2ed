"""A thread that publishes this server's index for others when it is worth a copy.

Every server has one, and the store's lock lets one publish at a time.
"""

from __future__ import annotations

import logging
import math
import threading
import time

from kb.errors import KBError
from kb.index.live import SearchIndex
from kb.index.shared_generations import SharedGenerations
from kb.index.snapshot import Manifest
from kb.store import Store

FIRST_S = 5.0  # a command that ends at once publishes nothing
CHECK_S = 30.0  # two small files are read
# Who fetches adds the rest by itself: 0.4 s for so many chunks (tests/bench/bench_generations.py)
CHUNKS = 1_000
LAG_S = 3_600.0  # fewer changes cost who fetches little, a copy costs all of the index
CLOSING_S = 2.0
_log = logging.getLogger(__name__)


class Publisher:
    """Publishes after a build, after `CHUNKS` changed chunks and `LAG_S` after any change."""

    def __init__(self, store: Store, index: SearchIndex, shared: SharedGenerations) -> None:
        """Prepare; `start` starts the thread."""
        self._store, self._index, self._shared = store, index, shared
        self._stopped = threading.Event()
        self._base: tuple[int, int] | None = None  # of the index at the last look
        self._lag_since = math.inf
        self._failure = ""
        self._thread = threading.Thread(target=self._run, name="index-publisher", daemon=True)

    def start(self) -> None:
        """Look for something to publish from now on, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop; a copy that is under way is given up."""
        self._stopped.set()
        self._thread.join(CLOSING_S)

    def publish_due(self, now_s: float) -> bool:
        """Publish where that is due; whether it was done.

        A failure is a line of the log, once as long as it stays the same.

        Args:
            now_s: seconds of a clock that only goes forward.
        """
        try:
            snapshot = self._index.published()
            done = self._is_due(snapshot.manifest, now_s) and self._shared.publish(
                snapshot, stopped=self._stopped
            )
        except (KBError, OSError) as error:
            return self._failed(error)
        self._failure = ""
        return done

    def _failed(self, error: Exception) -> bool:
        if str(error) != self._failure:
            what = error.what if isinstance(error, KBError) else error
            _log.warning("generation_not_published: %s", what)
        self._failure = str(error)
        return False

    def _is_due(self, own: Manifest, now_s: float) -> bool:
        """Whether `own` should replace what is published; remembers what it saw."""
        base = own.files.get(own.base)
        is_built = self._base not in (None, base)
        latest = self._shared.latest()
        if latest is None:
            self._base = base
            return True
        if own.seq <= latest.seq:
            self._base, self._lag_since = base, math.inf
            return False
        self._lag_since = min(self._lag_since, now_s)
        if self._base is None:
            self._base = base
        return (
            is_built
            or now_s - self._lag_since >= LAG_S
            or len(self._store.chunk_changes_since(latest.seq).chunks) >= CHUNKS
        )

    def _run(self) -> None:
        wait_s = FIRST_S
        while not self._stopped.wait(wait_s):
            self.publish_due(time.monotonic())
            wait_s = CHECK_S
