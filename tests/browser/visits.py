"""A site, a browser and a visitor: what browser tests and the README's pictures use."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START = "from app.cli.main import main; main()"
START_S = 300  # two servers on a busy machine
STOP_S = 120
POLL_S = 0.1  # between two looks at what the servers say
WAIT_MS = 120_000  # for an element; an answer takes a second, on a busy machine a hundred
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
LOCALES = {"zh": "zh-CN", "en": "en-US"}
TALLEST = 12_000  # pixels of a picture
QUIET_MS = 400  # without a change: then nothing is still to come
STILL = (Path(__file__).parent / "still.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Addresses of the running page and API, the state folder of both, and who started them."""

    page: str
    api: str
    home: Path
    pid: int


@contextlib.contextmanager
def running(home: Path, **variables: str) -> Iterator[Site]:
    """`timeout-kb up` on free ports with its state in `home`, which is there already.

    `variables` are further ones of its environment.

    Raises:
        RuntimeError: it did not tell its addresses in time.
    """
    environment = {key: value for key, value in os.environ.items() if "TIMEOUT_KB" not in key}
    said = home / "up.log"
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", START, "up", "--port", "0", "--web-port", "0"],
            env={**environment, "TIMEOUT_KB_HOME": str(home), **variables},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            page, api = _addresses(process, said)
            yield Site(page=page, api=api, home=home, pid=process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=STOP_S)


def _addresses(process: subprocess.Popen[bytes], said: Path) -> tuple[str, str]:
    """The addresses of page and API, which are told once both answer."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        told = said.read_text(errors="replace")
        page = re.search(r"^page: (http\S+)", told, re.MULTILINE)
        api = re.search(r"^API: +(http\S+)", told, re.MULTILINE)
        if page and api:
            return page[1], api[1]
        if process.poll() is not None:
            break
        time.sleep(POLL_S)
    raise RuntimeError(f"no page: {said.read_text(errors='replace')}")


def chromium_path() -> str | None:
    """Where Debian's Chromium is, if it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextlib.contextmanager
def browser(path: str) -> Iterator[Any]:
    """Chromium without a window, driven by Playwright."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield launched
        launched.close()


def new_context(launched: Any, *, language: str, phone: bool = False, dark: bool = False) -> Any:
    """A browser with a language, a screen and a theme of its own, and nothing stored yet."""
    context = launched.new_context(
        locale=LOCALES[language],
        viewport=PHONE if phone else DESKTOP,
        color_scheme="dark" if dark else "light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(WAIT_MS)
    return context


@dataclass(slots=True, kw_only=True)
class Visit:
    """A page of the browser with what it asked other hosts for and what failed in it."""

    page: Any
    site: Site
    screens: Path
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self, page: Any) -> None:
        """Note what a page asks other hosts for, script errors and dialogs."""
        own = (self.site.page, self.site.page.replace("http", "ws", 1), "data:", "blob:")

        def note(request: Any) -> None:
            if not request.url.startswith(own):
                self.foreign.append(request.url)

        def dismiss(dialog: Any) -> None:
            self.errors.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("request", note)
        page.on("websocket", note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", dismiss)

    def open(self, path: str = "") -> None:
        """Go to a path of the site and wait for the page to stand."""
        self.page.goto(f"{self.site.page}/{path}")
        self.page.locator(".st-key-tk_top .tk-brand").wait_for()

    def go(self, number: int) -> None:
        """Press the page of that number in the navigation, counted from 0."""
        self.page.get_by_test_id("stTopNavLink").nth(number).click()

    @property
    def box(self) -> Any:
        """The box for the log."""
        return self.page.locator(".st-key-paste textarea")

    @property
    def verdict(self) -> Any:
        """The heading of the answer."""
        return self.page.locator(".tk-verdict .tk-h1")

    @property
    def certainty(self) -> Any:
        """The line that says how sure which cause is and why."""
        return self.page.locator(".tk-certainty")

    def diagnose(self, log: str) -> None:
        """Put a log into the box, press the button and wait for the whole answer."""
        self.box.fill(log)
        self.page.locator(".st-key-run button").click()
        self.verdict.wait_for()
        self.settle()

    def say(self, message: str) -> Any:
        """Say something in the chat; gives the finished reply's message."""
        said = self.page.get_by_test_id("stChatMessage")
        before = said.count()
        box = self.page.get_by_test_id("stChatInputTextArea")
        box.fill(message)
        box.press("Enter")
        return self.reply(before)

    def reply(self, before: int) -> Any:
        """The reply that follows so many messages, once it is whole: then it has suggestions."""
        answer = self.page.get_by_test_id("stChatMessage").nth(before + 1)
        answer.locator("[class*=st-key-chat_suggestion_]").first.wait_for()
        self.settle()
        return answer

    def settle(self) -> None:
        """Wait until the page is drawn to its end: until then parts of the last one are left."""
        self.page.locator(".stApp[data-test-script-state=notRunning]").wait_for()

    def text(self) -> str:
        """All that a person can read on the page."""
        return str(self.page.locator("body").inner_text())

    def shot(self, name: str) -> Path:
        """Keep a picture of the whole page: what scrolls in it is stretched to its full height."""
        self.settle()
        size = self.page.viewport_size
        tall = "Math.max(innerHeight, document.querySelector('.stMain').scrollHeight)"
        self.page.wait_for_function(STILL, arg=QUIET_MS)
        height = min(TALLEST, self.page.evaluate(tall))
        self.page.set_viewport_size({"width": size["width"], "height": height})
        self.page.wait_for_function(STILL, arg=QUIET_MS)  # charts are painted anew
        path = self.screens / f"{name}.png"
        self.page.screenshot(path=path)
        self.page.set_viewport_size(size)
        return path
