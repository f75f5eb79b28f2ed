"""The bot as a process of its own, pointed at a fake Slack."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.slack.fake_slack import POLL_S, FakeSlack

COMMAND = [sys.executable, "-c", "from app.cli import main; main()", "slack"]
ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0
STOP_S = 20.0


def free_port() -> int:
    """A port nobody uses now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Bot:
    """`timeout-kb slack` with the state folder `home`; what it says is kept."""

    def __init__(
        self, slack: FakeSlack, home: Path, *, mode: str = "socket", **settings: str
    ) -> None:
        """Not started yet; `settings` are further ones by name, such as ``max_body="1024"``."""
        self.slack = slack
        self.home = home
        self.mode = mode
        self.port = free_port()
        self.lines: list[str] = []
        self.process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        tokens = ",".join(space.bot_token for space in slack.workspaces.values())
        chosen = {
            "home": str(home),
            "slack_mode": mode,
            "slack_api_url": slack.api_address,
            "slack_files_host": slack.files_host,
            "slack_bot_token": tokens,
            "log_level": "debug",
            "port": str(self.port),
        }
        secret = {
            "socket": {"slack_app_token": slack.app_token},
            "http": {"slack_signing_secret": slack.signing_secret},
        }[mode]
        merged = chosen | secret | settings
        self.environment = {
            f"TIMEOUT_KB_{name.upper()}": value for name, value in merged.items()
        } | {"PATH": os.environ.get("PATH", ""), "PYTHONUNBUFFERED": "1"}

    @property
    def said(self) -> str:
        """All it wrote to its standard streams."""
        return "".join(self.lines)

    @property
    def address(self) -> str:
        """Where Slack's requests go in HTTP mode."""
        return f"http://127.0.0.1:{self.port}/slack/events"

    def start(self) -> Bot:
        """Start, and wait until Slack can reach it."""
        before = self.slack.sockets.opened
        self.process = subprocess.Popen(
            COMMAND,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()
        self.slack.http.address = self.address
        deadline = time.monotonic() + START_S
        while not self._reachable(before):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"the bot did not start:\n{self.said[-4000:]}")
            time.sleep(POLL_S)
        return self

    def _read(self, process: subprocess.Popen[str]) -> None:
        if process.stdout is not None:
            self.lines.extend(process.stdout)

    def _reachable(self, before: int) -> bool:
        if self.mode == "socket":
            return self.slack.sockets.opened > before
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self, *, number: signal.Signals = signal.SIGTERM) -> int:
        """End it and give its exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        code = self.process.wait()
        if self._reader is not None:
            self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code
