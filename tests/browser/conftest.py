"""A real browser on a real page: the servers of `timeout-kb up` and Debian's Chromium.

Screenshots go to ``artefacts/screens`` of the checkout, where CI keeps them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

START = "from app.cli import main; main()"
START_S = 120
POLL_S = 0.1  # between two looks at what the servers say
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Addresses of the running page and API, and the state folder of both."""

    page: str
    api: str
    home: Path


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`timeout-kb up` on free ports with a state folder of its own."""
    home = tmp_path_factory.mktemp("browser-home")
    environment = {key: value for key, value in os.environ.items() if "TIMEOUT_KB" not in key}
    said = home / "up.log"
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", START, "up", "--port", "0", "--web-port", "0"],
            env={**environment, "TIMEOUT_KB_HOME": str(home)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            page, api = _addresses(process, said)
            yield Site(page=page, api=api, home=home)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


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
    return pytest.fail(f"no page: {said.read_text(errors='replace')}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright; the test is skipped where there is none."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium (Debian's package chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@dataclass(slots=True)
class Visit:
    """A page of the browser with what it asked other hosts for and what failed in it."""

    page: Any
    foreign: list[str]
    errors: list[str]
    screens: Path

    def shot(self, name: str) -> Path:
        """Keep a picture of the whole page."""
        path = self.screens / f"{name}.png"
        self.page.screenshot(path=path, full_page=True)
        return path


@pytest.fixture
def visit(chromium: Any, site: Site, root: Path) -> Iterator[Callable[..., Visit]]:
    """Opens the page as a visitor with a language and a screen of their own."""
    screens = root / "artefacts" / "screens"
    screens.mkdir(parents=True, exist_ok=True)
    contexts = []

    def open_page(
        path: str = "", *, language: str = "en", phone: bool = False, dark: bool = False
    ) -> Visit:
        context = chromium.new_context(
            locale=LOCALES[language],
            viewport=PHONE if phone else DESKTOP,
            color_scheme="dark" if dark else "light",
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(20_000)
        contexts.append(context)
        made = Visit(page=context.new_page(), foreign=[], errors=[], screens=screens)

        def note(request: Any) -> None:
            if not request.url.startswith(
                (site.page, "data:", "blob:", site.page.replace("http", "ws", 1))
            ):
                made.foreign.append(request.url)

        made.page.on("request", note)
        made.page.on("pageerror", lambda error: made.errors.append(str(error)))
        made.page.on("dialog", lambda dialog: (made.errors.append("dialog"), dialog.dismiss()))
        made.page.goto(f"{site.page}/{path}")
        return made

    yield open_page
    for context in contexts:
        context.close()
