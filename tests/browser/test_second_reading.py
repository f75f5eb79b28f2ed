"""A language model reads along: what a person reads meanwhile stays where and as it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_diagnose import LOG
from tests.browser.test_hostile import LINES, nothing_happened
from tests.browser.test_press import PLACE
from tests.browser.test_reach import WIDE, readable
from tests.browser.visits import QUIET_MS, STILL, Site, Visit, new_context, running
from tests.kb.second_reader.conftest import ChatServer

pytestmark = pytest.mark.browser

HELD_S = 60  # longer no test takes to let the model answer
NO_POLL_MS = 2500  # two polls would have come in that time
QUESTIONS = {
    "en": "Did rank 2 print anything after its last step, and was its host out of memory?",
    "zh": "rank 2 在最后一个 step 之后还有没有输出？它所在的机器当时内存够不够？",
}


@pytest.fixture(scope="module")
def model() -> Iterator[ChatServer]:
    """The model's server."""
    server = ChatServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def site(model: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that asks it."""
    with running(
        tmp_path_factory.mktemp("with-model"),
        TIMEOUT_KB_LLM_BASE_URL=model.url,
        TIMEOUT_KB_LLM_MODEL="tiny",
        TIMEOUT_KB_LLM_TRUST="1",
    ) as started:
        yield started


Arrive = Callable[..., Visit]


@pytest.fixture
def arrive(chromium: Any, site: Site, root: Path) -> Iterator[Arrive]:
    """Opens the page for a visitor; nothing may fail or be asked of another host."""
    visits: list[Visit] = []
    screens = root / "artefacts" / "screens"
    screens.mkdir(parents=True, exist_ok=True)

    def arrive(**kind: Any) -> Visit:
        page = new_context(chromium, **kind).new_page()
        visits.append(Visit(page=page, site=site, screens=screens))
        visits[-1].watch(page)
        visits[-1].open()
        return visits[-1]

    yield arrive
    for here in visits:
        here.page.context.close()
        assert (here.foreign, here.errors) == ([], [])


@pytest.fixture
def release(model: ChatServer) -> Iterator[Callable[[str], None]]:
    """Lets the model, which waits until then, answer with these words."""
    event = threading.Event()
    words = ""

    def answer(question: dict[str, Any]) -> str:
        event.wait(HELD_S)
        return words

    def release(text: str) -> None:
        nonlocal words
        words = text
        event.set()

    model.answer = answer
    yield release
    event.set()


def opinion(ask: str) -> str:
    """The words of a model that has an opinion and a question."""
    return json.dumps({"causes": {"shm-limits": 0.6, "network-config": 0.2}, "ask": ask})


def own_log(visitor: str) -> str:
    """A log that no other visitor pastes, in a line the model is sent: an answer is asked once."""
    return LOG.replace("CUDA out of memory.", f"CUDA out of memory. Batch {visitor}.")


def slot(here: Visit) -> Any:
    """The model's place on the page."""
    return here.page.locator(".st-key-tk_second")


@pytest.mark.parametrize(
    ("language", "phone", "fails"),
    [("en", False, False), ("zh", True, False), ("en", True, True)],
    ids=["en-desktop-answered", "zh-phone-answered", "en-phone-failed"],
)
def test_nothing_moves_when_the_model_has_read(
    arrive: Arrive,
    release: Callable[[str], None],
    *,
    language: str,
    phone: bool,
    fails: bool,
) -> None:
    """By itself its place changes and nothing else: causes, unfolded lines, a half-typed word."""
    here = arrive(language=language, phone=phone)
    here.diagnose(own_log(f"{language}{phone:d}{fails:d}"))
    expect(slot(here)).to_contain_text("tiny")
    shot = f"second-{language}-{'phone' if phone else 'desktop'}"
    if not fails:
        slot(here).screenshot(path=here.screens / f"{shot}-waiting.png")
    around = here.page.locator(".tk-error details").first
    around.locator("summary").click()
    typed = here.page.locator("[class*=st-key-resolve_fix] textarea")
    here.page.locator("[data-testid=stExpander]").filter(has=typed).locator("summary").first.click()
    typed.type("half a w")
    here.page.wait_for_function(STILL, arg=QUIET_MS)
    causes = here.page.locator(".tk-cause").first
    place, height = causes.evaluate(PLACE), here.page.evaluate("document.body.scrollHeight")
    scrolled = here.page.evaluate("document.querySelector('.stMain').scrollTop")
    certainty = here.certainty.inner_text()

    release("It was the network." if fails else opinion(QUESTIONS[language]))
    expect(slot(here)).to_contain_text("JSON" if fails else QUESTIONS[language])
    here.settle()
    here.page.wait_for_function(STILL, arg=QUIET_MS)
    assert causes.evaluate(PLACE) == place
    assert here.page.evaluate("document.body.scrollHeight") == height
    assert here.page.evaluate("document.querySelector('.stMain').scrollTop") == scrolled
    assert here.certainty.inner_text() == certainty
    assert around.evaluate("one => one.open")
    expect(typed).to_have_value("half a w")
    assert here.page.evaluate(WIDE) == []
    readable(here)
    slot(here).screenshot(path=here.screens / f"{shot}-{'failed' if fails else 'answered'}.png")


def test_the_page_stops_asking(arrive: Arrive, release: Callable[[str], None]) -> None:
    """While the model reads the page looks every second whether it has; afterwards never again."""
    here = arrive(language="en")
    sent: list[object] = []
    with here.page.expect_event("websocket") as opened:
        here.open()

    def note(frame: object) -> None:
        sent.append(frame)

    opened.value.on("framesent", note)
    here.diagnose(own_log("stops"))
    before = len(sent)
    with opened.value.expect_event("framesent"):
        pass
    assert len(sent) > before
    release(opinion("?"))
    expect(slot(here)).to_contain_text("shared memory", ignore_case=True)
    here.settle()
    before = len(sent)
    here.page.wait_for_function(STILL, arg=NO_POLL_MS)
    assert len(sent) == before


def test_a_hostile_model_is_shown_as_text(arrive: Arrive, release: Callable[[str], None]) -> None:
    """What it asks is characters, before and after its answer is chosen."""
    here = arrive(language="en")
    here.diagnose(own_log("hostile"))
    release(opinion(" ".join(LINES[:2])))
    expect(slot(here)).to_contain_text("<script>window.hostile=1;alert(1)</script> <img src=")
    nothing_happened(here)
    here.page.locator(".st-key-second_show button").click()
    expect(here.page.locator(".tk-cause").first).to_contain_text("shm-limits")
    expect(here.page.locator(".tk-certainty").first).to_contain_text("Shared memory")
    nothing_happened(here)
