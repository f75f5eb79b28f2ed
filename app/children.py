"""Child processes that run other verbs of this program: their output, their end, their health."""

from __future__ import annotations

import collections
import contextlib
import http.client
import ipaddress
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.commands.common import note

KEPT_LINES = 20  # of a child's output, to show when it dies
LINE_CHARACTERS = 500
HEALTH_TIMEOUT_S = 5.0
ROOT = Path(__file__).resolve().parent.parent  # where `app` is imported from
# -P keeps the caller's folder off the path: an `app` there is not ours. Linux ends the child with
# its parent, however that one dies.
_CODE = """\
import signal, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
sys.path.append({root!r})
from app.cli import main
main()
"""


class Child:
    """A running `timeout-kb` of the same interpreter; its lines go to stderr and are kept."""

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        *,
        hidden: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Start it with further `settings`. Lines that begin with one of `hidden` are not shown."""
        self.name = name
        self._hidden = tuple(hidden)
        self._lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        # A session of its own: Ctrl-C reaches it through its parent, once.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE.format(root=str(ROOT)), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | dict(settings or {}),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        with stream:
            for raw in stream:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                self._lines.append(line[:LINE_CHARACTERS])
                if not line.startswith(self._hidden):
                    # Read on though nobody can be told: a full pipe would stop the child.
                    with contextlib.suppress(OSError):
                        note(line)

    def ended(self) -> bool:
        """Whether it is over."""
        return self._process.poll() is not None

    def outcome(self) -> str:
        """How it ended: ``exit code 1`` or ``signal SIGKILL``."""
        code = self._process.returncode
        if code is not None and code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit code {code}"

    def last_lines(self) -> tuple[str, ...]:
        """The last lines of its output, all of them read once it has ended."""
        if self.ended():
            self._reader.join(HEALTH_TIMEOUT_S)  # a grandchild may hold the pipe open
        return tuple(self._lines)

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def wait(self, timeout_s: float) -> None:
        """Wait for its end; after `timeout_s` it is killed."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._reader.join(HEALTH_TIMEOUT_S)


def answers(host: str, port: int, path: str) -> bool:
    """Whether an HTTP server answers `path` with 200."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = "::1" if ":" in host else "127.0.0.1"
    connection = http.client.HTTPConnection(host, port, timeout=HEALTH_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
