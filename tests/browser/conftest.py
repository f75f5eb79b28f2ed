"""A real browser on a real page: the servers of `timeout-kb up` and Debian's Chromium.

Screenshots go to ``artefacts/screens`` of the checkout, where CI keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.visits import Site, Visit, browser, chromium_path, new_context, running

OpenPage = Callable[..., Visit]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a test of this folder fail once: Streamlit's own timing on a busy machine is not ours.

    A second run is counted as such in pytest's summary. `-p no:rerunfailures` shows every failure.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def site(built_home: Callable[[], Path]) -> Iterator[Site]:
    """`timeout-kb up` on free ports with a state folder of its own."""
    with running(built_home()) as started:
        yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright; the test is skipped where there is none.

    Ends with the file: Playwright's event loop would be in the way of tests that run their own.
    """
    path = chromium_path()
    if path is None:
        pytest.skip("needs Chromium (Debian's package chromium)")
    with browser(path) as launched:
        yield launched


@pytest.fixture(scope="module")
def opener(chromium: Any, site: Site, root: Path) -> Iterator[OpenPage]:
    """Opens pages in browsers that are shared by language, screen and theme: scripts load once."""
    screens = root / "artefacts" / "screens"
    screens.mkdir(parents=True, exist_ok=True)
    contexts: dict[tuple[str, bool, bool], Any] = {}

    def open_page(
        path: str = "", *, language: str = "en", phone: bool = False, dark: bool = False
    ) -> Visit:
        kind = (language, phone, dark)
        if kind not in contexts:
            contexts[kind] = new_context(chromium, language=language, phone=phone, dark=dark)
        made = Visit(page=contexts[kind].new_page(), site=site, screens=screens)
        made.watch(made.page)
        made.open(path)
        return made

    yield open_page
    for context in contexts.values():
        context.close()


@pytest.fixture
def visit(opener: OpenPage) -> Iterator[OpenPage]:
    """Opens the page as a visitor with a language and a screen of their own.

    Every visit has to end without a request to another host, a script error or a dialog.
    """
    visits: list[Visit] = []

    def open_page(path: str = "", **kind: Any) -> Visit:
        visits.append(opener(path, **kind))
        return visits[-1]

    yield open_page
    for made in visits:
        # Browsers are shared, and an open menu is remembered: it would cover the next page.
        made.page.evaluate("localStorage.clear()")
        made.page.close()
    assert [made.foreign for made in visits if made.foreign] == []
    assert [made.errors for made in visits if made.errors] == []
