"""A look at a running job at regular times, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Polling:
    """Calls `look` every `pause_s` seconds until `stop`, which sets the event it is given."""

    def __init__(self, look: Callable[[threading.Event], None], pause_s: float) -> None:
        self._look, self._pause_s = look, pause_s
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.wait(self._pause_s):
            self._look(self._ends)

    def stop(self) -> None:
        """End, after what is being told."""
        self._ends.set()
        self._thread.join()
