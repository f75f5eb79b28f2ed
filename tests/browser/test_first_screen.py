"""What eight kinds of answer show without scrolling, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.first_screen import (
    PARTS,
    WIDTHS,
    ask,
    kinds,
    measure,
    resize,
    resolve_earlier,
)
from tests.browser.visits import Site, Visit, new_context, running

pytestmark = pytest.mark.browser

KINDS = kinds()
WITHOUT_CAUSE = frozenset({"first step", "certainty"})  # what an answer without a timeout lacks
RED, AMBER = "rgb(156, 28, 28)", "rgb(122, 74, 0)"
WAITED = frozenset({"mismatch", "unknown"})  # kinds whose line is a wait, no error
EDGE = "getComputedStyle(document.querySelector('.tk-error .tk-quote')).borderLeftColor"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose team has met one of the incidents before."""
    with running(tmp_path_factory.mktemp("first-screen")) as started:
        resolve_earlier(started, KINDS["met"].earlier)
        yield started


@pytest.fixture(scope="module", params=["en", "zh"])
def context(chromium: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A browser with one of the languages."""
    made = new_context(chromium, language=request.param)
    yield made
    made.close()


@pytest.fixture
def here(context: Any, site: Site, root: Path) -> Iterator[Visit]:
    """A visitor in a tab that holds no answer yet."""
    visit = Visit(page=context.new_page(), site=site, screens=root / "artefacts")
    visit.open()
    yield visit
    visit.page.close()


@pytest.mark.parametrize("name", KINDS)
def test_the_first_screen_answers(here: Visit, name: str) -> None:
    """Headline, first step, certainty, culprit and copy button stand on it; nothing stands twice.

    The line's edge is red where something broke and amber where a rank only waited.
    """
    ask(here, KINDS[name])
    for width in WIDTHS:
        resize(here, width)
        found = measure(here)
        lacking = {part for part, end in found["ends"].items() if end is None}
        assert lacking == (WITHOUT_CAUSE if name == "refused" else set())
        ends = [end for part in PARTS if (end := found["ends"][part]) is not None]
        assert max(ends) <= found["fold"]
        assert ends == sorted(ends)
        assert (found["overflow"], found["twice"]) == (0, [])
    if name != "dumps":
        assert here.page.evaluate(EDGE) == (AMBER if name in WAITED else RED)
