"""The time a capture may take, and other programs run within it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

CAPTURE_S = 20.0  # for all of it: a person waits, and a job's time limit runs
SLICE_S = 0.1  # how soon a capture that is stopped ends
MAX_OUTPUT = 4 * 1024 * 1024  # bytes kept of a program's output; of a longer one the end


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOutput:
    """What a program printed; `failure` says why there is no more, empty where it ended well."""

    output: bytes = b""
    failure: str = ""


class Budget:
    """Seconds that are left; `stop`, once set, takes them all."""

    def __init__(self, limit_s: float = CAPTURE_S, stop: threading.Event | None = None) -> None:
        self._started_s = time.monotonic()
        self._ends_s = self._started_s + limit_s
        self._stop = stop or threading.Event()

    @property
    def left_s(self) -> float:
        """Seconds left, 0 at the end."""
        return 0.0 if self._stop.is_set() else max(0.0, self._ends_s - time.monotonic())

    @property
    def spent_s(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._started_s

    def end(self) -> None:
        """Take the time that is left: what runs ends at once."""
        self._stop.set()

    def pause(self, seconds: float) -> None:
        """Wait so long, or until there is no time left."""
        self._stop.wait(min(seconds, self.left_s))

    def run(
        self, command: Sequence[str], limit_s: float, *, most: int = MAX_OUTPUT
    ) -> ProgramOutput:
        """Run a program to its end, for at most `limit_s`; whatever goes wrong is told.

        Of what it prints the last `most` bytes stay.
        """
        ends_s = time.monotonic() + min(limit_s, self.left_s)
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # what it starts goes with it
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            return ProgramOutput(failure=error.strerror or str(error))
        while True:
            try:
                output, errors = process.communicate(timeout=SLICE_S)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() >= ends_s or not self.left_s:
                    return _ended(process)
        text = errors.decode("utf-8", "replace").strip()
        failure = (text or f"exit code {process.returncode}") if process.returncode else ""
        return ProgramOutput(output=output[-most:], failure=failure)


def _ended(process: subprocess.Popen[bytes]) -> ProgramOutput:
    """What a program printed that took too long, and is no more; one the kernel holds is left."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        output, _ = process.communicate(timeout=1.0)
    except subprocess.TimeoutExpired:
        output = b""
    return ProgramOutput(output=output[-MAX_OUTPUT:], failure="took too long")
