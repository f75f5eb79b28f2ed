"""A button pressed once has been pressed: whatever the page is drawing, and wherever it stands."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.test_lookup import LOG, choose
from tests.browser.visits import QUIET_MS, Visit

pytestmark = pytest.mark.browser

PIXELS = 1  # of rounding
PRESS_WHILE_DRAWN = """next => {
  const app = document.querySelector('.stApp');
  const watch = new MutationObserver(() => {
    if (app.dataset.testScriptState !== 'running') return;
    watch.disconnect();
    next.click();
  });
  watch.observe(app, {attributes: true});
}"""
OPENED_AND_REACHED = """([summary, inside]) => {
  summary.click();
  inside.scrollIntoView();
  return summary.closest('details').scrollTop;
}"""
RESTS = """([one, quiet]) => {
  const now = one.getBoundingClientRect().y + document.querySelector(".stMain").scrollTop;
  if (window.tkPlace?.now !== now) window.tkPlace = {now, looks: 0, since: performance.now()};
  window.tkPlace.looks += 1;
  const {since, looks} = window.tkPlace;
  return performance.now() - since >= quiet && looks * 30 >= quiet;
}"""
PLACE = "one => one.getBoundingClientRect().y + document.querySelector('.stMain').scrollTop"


def press_and_switch(here: Visit, button: Any, language: str) -> None:
    """Press a button and, while the page is drawn for that, switch the language."""
    here.settle()
    switch = here.page.get_by_role("radio", name=language)
    switch.evaluate(PRESS_WHILE_DRAWN)
    button.click()
    expect(switch).to_be_checked()


def said_right(here: Visit) -> int:
    """How many answers were judged right so far, by the quality page in English."""
    here.go(7)
    here.page.get_by_role("heading", name="What people said").wait_for()
    here.settle()
    rows = here.page.locator("table").filter(has_text="said wrong").locator("tbody tr")
    return sum(int(row.locator("td").nth(1).inner_text()) for row in rows.all())


def test_a_press_outlives_the_next_event(visit: OpenPage) -> None:
    """Diagnosed and kept by one press each, though the next one follows; then judged and deleted.

    Switching the language ends the drawing of the page that the press began.
    """
    here = visit()
    find = here.page.locator
    before = said_right(here)  # the server is the session's: other tests judge answers too
    here.go(0)
    here.box.fill(LOG)
    press_and_switch(here, find(".st-key-run button"), "中文")
    expect(here.verdict).to_be_visible()

    press_and_switch(here, find(".st-key-keep button"), "English")
    expect(here.page.get_by_test_id("stCode").filter(has_text="?d=")).to_be_visible()

    here.page.get_by_text("What was it?").click()
    choose(here, "Cause", "rank-crash")
    here.settle()
    find(".st-key-record button").click()
    entry = find(".tk-good a[href*='cases']")
    expect(entry).to_have_count(1)

    address = entry.evaluate("one => one.href")
    here.page.goto(address)
    here.page.get_by_text(re.compile("删除这条记录|Delete this entry")).first.click()
    here.settle()
    find(".st-key-delete_entry button").click()
    here.settle()
    here.page.goto(address)
    expect(here.page.get_by_role("alert")).to_be_visible()  # no such entry

    here.open("?lang=en")
    assert said_right(here) == before + 1


def test_an_example_outlives_the_next_event(visit: OpenPage) -> None:
    """So does an example, which is put into the box and diagnosed."""
    here = visit()
    example = here.page.locator("[class*=st-key-example_rank-behind] button")
    press_and_switch(here, example, "中文")
    expect(here.certainty).to_contain_text("各 rank 发出的集合通信不一致")


def hold(here: Visit, *parts: str) -> list[Any]:
    """Have the browser wait for parts of the page; gives the requests that wait."""
    held: list[Any] = []

    def keep(route: Any) -> None:
        held.append(route)

    for part in parts:
        here.page.route(f"**/{part}.*.js", keep)
    return held


def moved_by(here: Visit, held: list[Any], button: Any, late: Any) -> float:
    """Pixels a button moves when what the browser waits for comes at last."""
    here.page.evaluate("document.fonts.ready.then(() => true)")
    # On a busy machine what stands above grows for a while.
    here.page.wait_for_function(RESTS, arg=[button.element_handle(), QUIET_MS])
    before = button.evaluate(PLACE)
    assert held
    for request in held:
        request.continue_()
    expect(late).to_be_visible()
    return float(button.evaluate(PLACE) - before)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_nothing_moves_when_the_box_comes_late(visit: OpenPage, phone: bool) -> None:
    """An example stands where it will stand before the box and the files above it are there."""
    here = visit(phone=phone)
    held = hold(here, "TextArea", "TextInput", "FileUploader")
    here.page.reload()
    expect(here.page.get_by_text("Try an example:")).to_be_visible()
    example = here.page.locator("[class*=st-key-example_words-only] button")
    expect(example).to_be_visible()
    here.settle()
    files = here.page.get_by_test_id("stFileUploaderDropzone")
    assert abs(moved_by(here, held, example, files)) <= PIXELS
    expect(here.box).to_be_visible()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_nothing_moves_when_a_chart_comes_late(visit: OpenPage, phone: bool) -> None:
    """What stands below the chart does not wait for it to find its place."""
    here = visit(phone=phone)
    held = hold(here, "ArrowVegaLiteChart", "DownloadButton")
    here.diagnose(LOG)
    chart = here.page.locator(".stVegaLiteChart svg, .stVegaLiteChart canvas").first
    below = here.page.get_by_text("lines in")
    assert abs(moved_by(here, held, below, chart)) <= PIXELS


def test_an_opening_box_is_not_scrolled(visit: OpenPage) -> None:
    """A button in a box that still opens is where it will be: nothing can scroll the box itself."""
    here = visit()
    here.diagnose(LOG)
    button = here.page.locator(".st-key-record button")
    box = here.page.locator("details").filter(has=button)
    handles = [box.locator("summary").first.element_handle(), button.element_handle()]
    assert here.page.evaluate(OPENED_AND_REACHED, handles) == 0
    button.click()
    expect(here.page.locator(".tk-good a[href*='cases']")).to_be_visible()
