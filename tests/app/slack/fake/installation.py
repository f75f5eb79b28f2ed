"""The bot as a process of its own at work in a fake Slack, and what must hold of all it says."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.app.slack.fake.delivery import ACK_S
from tests.app.slack.fake.fake_slack import POLL_S, FakeSlack
from tests.app.slack.fake.harmless import links, mentions
from tests.app.slack.fake.manifest import Manifest
from tests.app.slack.fake.workspace import Channel, Message, Workspace

COMMAND = [sys.executable, "-c", "from app.cli.main import main; main()", "slack"]
ROOT = Path(__file__).resolve().parents[4]
START_S = 60.0
STOP_S = 20.0
PUBLIC_URL = "https://kb.example.org"  # of the page, where a bot is told it
DONE = frozenset({"white_check_mark", "warning", "grey_question"})  # reactions at the end


def free_port() -> int:
    """A port nobody uses now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class BotProcess:
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
    def output(self) -> str:
        """All it wrote to its standard streams."""
        return "".join(self.lines)

    @property
    def address(self) -> str:
        """Where Slack's requests go in HTTP mode."""
        return f"http://127.0.0.1:{self.port}/slack/events"

    def start(self) -> BotProcess:
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
                raise AssertionError(f"the bot did not start:\n{self.output[-4000:]}")
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


@dataclass(frozen=True, kw_only=True)
class Installation:
    """A Slack with two workspaces and a bot that serves both."""

    slack: FakeSlack
    bot: BotProcess
    alpha: Workspace
    beta: Workspace


def check_all_visible(slack: FakeSlack, known_urls: Collection[str]) -> None:
    """Within Slack's limits, calling nobody, linking only what the knowledge base knows."""
    problems, slack.problems = slack.problems, []
    assert problems == []
    assert slack.api.too_soon == []
    assert slack.elsewhere.seen == []
    for where, payload in slack.visible():
        assert mentions(payload) == [], where
        strange = [
            link
            for link in links(payload)
            if link not in known_urls and not link.startswith(f"{PUBLIC_URL}/?d=")
        ]
        assert strange == [], where


def check_secrets(slack: FakeSlack, bot: BotProcess) -> None:
    """No token of Slack's in what the bot wrote to its log."""
    tokens = [workspace.bot_token for workspace in slack.workspaces.values()]
    for token in (*tokens, slack.app_token, slack.signing_secret):
        assert token not in bot.output


def finished(slack: FakeSlack, asked: Message) -> str:
    """The reaction the bot puts on a message when it is done with it."""

    def done() -> str:
        return next((name for name in asked.reacted if name in DONE), "")

    return slack.until(done, what=f"end of the answer to {asked.text[:60]!r}")


def answered(slack: FakeSlack, channel: Channel, asked: Message) -> Message:
    """The one answer to a message in a channel, complete."""
    finished(slack, asked)
    answers = slack.answers(channel, asked)
    assert len(answers) == 1, [message.text for message in answers]
    return answers[0]


@contextmanager
def installed(
    manifest: Manifest,
    home: Path,
    known_urls: Collection[str],
    *,
    mode: Literal["socket", "http"] = "socket",
    ack_s: float = ACK_S,
    **settings: str,
) -> Iterator[Installation]:
    """A Slack with two workspaces and a running bot; at the end all it said is checked."""
    slack = FakeSlack(manifest, ack_s=ack_s, mode=mode)
    slack.start()
    alpha, beta = slack.workspace("alpha"), slack.workspace("beta")
    bot = BotProcess(slack, home, mode=mode, **settings).start()
    yield Installation(slack=slack, bot=bot, alpha=alpha, beta=beta)
    code = bot.stop()
    check_all_visible(slack, known_urls)
    check_secrets(slack, bot)
    slack.stop()
    assert code == 0, bot.output[-4000:]
