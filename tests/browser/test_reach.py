"""The page for everybody: by keyboard alone, on a phone, in the dark; and its pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.visits import DESKTOP, PHONE, QUIET_MS, STILL, Visit

pytestmark = pytest.mark.browser

LEAST_CONTRAST = 4.5  # of text on its ground, WCAG 2.2 AA
MOST_TABS = 80  # from one thing to the next; a long answer has many links
CAUSE = ".st-key-resolve_cause_zh"
DARK_GROUND, LIGHT_GROUND = "rgb(16, 20, 24)", "rgb(255, 255, 255)"
PAGES = {  # path in the navigation: what stands once the page does
    "diagnose": (0, ".tk-verdict"),
    "chat-start": (1, "[class*=st-key-page]"),
    "board": (2, "h1"),
    "search": (3, "article"),
    "cases": (4, "article"),
    "causes": (5, "article"),
    "notes": (6, "article"),
    "quality": (7, ".tk-table .tk-bar"),
}
PLACEHOLDER_FITS = """field => {
  const style = getComputedStyle(field), pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return pen.measureText(field.placeholder).width <= room;
}"""
FAINT = (Path(__file__).parent / "faint.js").read_text(encoding="utf-8")
WIDE = (Path(__file__).parent / "wide.js").read_text(encoding="utf-8")


def readable(here: Visit) -> None:
    """Every text on the page stands out from its ground."""
    found: dict[str, Any] = here.page.evaluate(FAINT, LEAST_CONTRAST)
    assert found["faint"] == {}
    assert found["count"] > len(PAGES)


def look(here: Visit, *, phone: bool, dark: bool) -> None:
    """Take a screen and a theme, and wait until the page has them."""
    here.page.set_viewport_size(PHONE if phone else DESKTOP)
    here.page.emulate_media(color_scheme="dark" if dark else "light")
    expect(here.page.locator(".stApp")).to_have_css(
        "background-color", DARK_GROUND if dark else LIGHT_GROUND
    )
    here.page.evaluate(
        "document.getAnimations().filter(one => one.effect.getTiming().iterations !== Infinity)"
        ".forEach(one => one.finish())"
    )
    here.page.wait_for_function(STILL, arg=QUIET_MS)  # charts are painted anew


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_on_every_screen(visit: OpenPage, language: str) -> None:
    """No page scrolls sideways, and all its text is readable, on a phone and a desk, dark or light.

    One visitor walks through all of them, as a person does.
    """
    here = visit(language=language)
    here.page.locator("[class*=st-key-example_rank-behind] button").click()
    here.verdict.wait_for()
    for name, (number, there) in PAGES.items():
        look(here, phone=False, dark=False)
        if number:
            here.go(number)
        expect(here.page.locator(there).first).to_be_visible()
        here.settle()
        others = ((False, True), (True, False)) if name == "diagnose" else ()
        for phone, dark in ((False, False), (True, True), *others):
            look(here, phone=phone, dark=dark)
            assert here.page.evaluate(WIDE) == []
            if phone == dark:
                readable(here)
            screen = "phone" if phone else "desktop"
            here.shot(f"{name}-{language}-{screen}-{'dark' if dark else 'light'}")


@pytest.mark.parametrize(
    ("path", "language"),
    [("cases?id=funasr-oom-on-rank-2-others-time-out", "en"), ("causes?id=rank-crash", "zh")],
)
def test_one_entry_on_every_screen(visit: OpenPage, path: str, language: str) -> None:
    """So do the pages of one case and of one cause."""
    here = visit(path, language=language)
    expect(here.page.locator(".tk-list").first).to_be_visible()
    here.settle()
    name = f"{path.partition('?')[0].removesuffix('s')}-{language}"
    for phone, dark in ((False, False), (True, True)):
        look(here, phone=phone, dark=dark)
        assert here.page.evaluate(WIDE) == []
        readable(here)
        here.shot(f"{name}-{'phone-dark' if phone else 'desktop-light'}")


def test_the_keyboard_is_enough(visit: OpenPage) -> None:
    """Tab reaches the box, Ctrl+Enter diagnoses, Tab and arrows reach and move the switch.

    Then Tab goes through the answer in its order: a command, what people said, the first cause.
    """
    here = visit()
    keys = here.page.keyboard
    tab_to(here, "textarea")
    keys.insert_text(
        "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.31 GiB\n"
        "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=25874, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600042 milliseconds\n"
    )
    keys.press("Control+Enter")
    expect(here.verdict).to_contain_text("Rank 2 ran out")
    here.settle()
    tab_to(here, "[role=radio]", key="Shift+Tab")
    keys.press("ArrowLeft")
    keys.press("Space")
    expect(here.verdict).to_contain_text("显存耗尽")
    here.settle()
    here.page.evaluate("navigator.clipboard.writeText('before')")
    tab_to(here, "[data-testid=stCode] button")
    keys.press("Enter")
    here.page.wait_for_function("async () => (await navigator.clipboard.readText()) !== 'before'")
    tab_to(here, f"details:has({CAUSE}) > summary")
    keys.press("Enter")
    tab_to(here, f"{CAUSE} input")
    keys.type("rank-crash")
    keys.press("Enter")
    here.settle()
    tab_to(here, ".st-key-record button")
    keys.press("Enter")
    expect(here.page.locator(".tk-note").filter(has_text="原因已记下")).to_be_visible()
    tab_to(here, ".tk-cause a")


def tab_to(here: Visit, selector: str, *, key: str = "Tab") -> None:
    """Press Tab, forwards or backwards, until the focus is on such an element."""
    for _ in range(MOST_TABS):
        here.page.keyboard.press(key)
        if here.page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{MOST_TABS} tabs do not reach {selector}")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_a_phone_has_room_for(visit: OpenPage, language: str) -> None:
    """What can be done with an answer is two rows; the search's example is not cut off."""
    here = visit(language=language, phone=True)
    here.page.locator("[class*=st-key-example_words] button").click()
    here.verdict.wait_for()
    here.settle()
    boxes = []
    for key in ("copy", "keep", "talk"):
        button = here.page.locator(f".st-key-{key} button")
        expect(button).to_be_visible()
        boxes.append(button.bounding_box())
    copy, keep, talk = boxes
    assert round(copy["y"]) == round(keep["y"]) < round(talk["y"])
    assert round(copy["x"]) == round(talk["x"])
    assert abs(keep["x"] + keep["width"] - talk["x"] - talk["width"]) < 1
    here.open(f"search?lang={language}")
    field = here.page.locator("[class*=st-key-search] input").first
    expect(field).to_be_visible()
    assert field.evaluate(PLACEHOLDER_FITS)


def test_the_navigation_of_a_phone(visit: OpenPage) -> None:
    """On a phone the pages stand behind one button, lead where they say, and give way to it."""
    here = visit(phone=True)
    for name in ("Causes", "Cases"):
        here.settle()  # a press while the page is still drawn opens what the last run then closes
        here.page.get_by_test_id("stExpandSidebarButton").click()
        here.page.get_by_role("link", name=name, exact=True).click()
        expect(here.page.get_by_role("heading", level=1)).to_have_text(name)
        expect(here.page.get_by_test_id("stSidebarNav")).not_to_be_in_viewport()


def test_the_pictures_of_the_readme_are_there(root: Path) -> None:
    """Both pictures are kept, small enough for a README, and 1280 pixels wide."""
    for language in ("en", "zh"):
        content = (root / "tests" / "browser" / "screens" / f"page-{language}.png").read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert int.from_bytes(content[16:20], "big") == DESKTOP["width"]
        assert len(content) <= 300 * 1024
