"""A look at a running job at regular times, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Polling:
    """Calls `look` every `pause_s` seconds until `stop`; `stopped` is set from then on."""

    def __init__(self, look: Callable[[threading.Event], None], pause_s: float) -> None:
        self._look, self._pause_s = look, pause_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._pause_s):
            self._look(self._stopped)

    def stop(self) -> None:
        """End, after what is being told."""
        self._stopped.set()
        self._thread.join()
