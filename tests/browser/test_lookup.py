"""A visitor looks something up, judges an answer, and writes down what was learnt."""

from __future__ import annotations

import json
import re
import time
import urllib.parse
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.visits import Visit

pytestmark = pytest.mark.browser

FOUND_S = 60.0  # at most from "saved" on the page to a hit through the API; at once, usually
POLL_S = 0.02
UNIQUE = "quokkaloader"
LOG = (
    f"[rank1]: RuntimeError: {UNIQUE} lost its shard map while reading part 88\n"
    "[rank0]:[E311 02:52:03.118204611 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=412, OpType=ALLREDUCE, NumelIn=77, NumelOut=77, "
    "Timeout(ms)=600000) ran for 600042 milliseconds before timing out.\n"
)


def choose(here: Visit, label: str, option: str) -> None:
    """Choose from a list by typing, as a person does."""
    box = here.page.get_by_role("combobox", name=label, exact=True).last
    box.click()
    box.press_sequentially(option)
    here.page.get_by_role("option").filter(has_text=option).first.click()


def test_a_search_stays_in_the_address(visit: OpenPage) -> None:
    """Question and filter go into the address; a reload shows the same hits and the same filter."""
    here = visit("search")
    box = here.page.get_by_role("textbox")
    box.fill("hangs while saving a checkpoint")
    box.press("Enter")
    expect(here.page.locator("article").first).to_be_visible()
    here.settle()
    here.page.get_by_text("Filters", exact=True).click()
    here.settle()
    choose(here, "Backend", "gloo")
    expect(here.page).to_have_url(re.compile("backend=gloo"))
    here.settle()
    expect(here.page.get_by_text("Filters (1 chosen)")).to_be_visible()
    titles = here.page.locator("article h3").all_inner_texts()
    assert "q=hangs" in here.page.url
    here.page.reload()
    expect(here.page.get_by_text("Filters (1 chosen)")).to_be_visible()
    expect(here.page.get_by_role("textbox").first).to_have_value("hangs while saving a checkpoint")
    expect(here.page.locator("article h3")).to_have_text(titles)
    assert "backend=gloo" in here.page.url


def said_wrong(table: Any) -> int:
    """How many answers were judged wrong, by the rows of the page of figures."""
    return sum(int(row.locator("td").nth(2).inner_text()) for row in table.locator("tr").all())


def test_a_judgement_is_counted(visit: OpenPage) -> None:
    """What it was instead is kept in a person's own words, and counted on the page of figures."""
    here = visit()
    table = here.page.locator("table").filter(has_text="said wrong").locator("tbody")
    here.open("quality")
    here.settle()
    before = said_wrong(table)  # the server is the session's: other tests judge answers too
    here.open()
    here.diagnose(LOG)
    here.page.get_by_text("What was it?").click()
    here.page.locator(".st-key-resolve_fix textarea").fill("copied it again")
    choose(here, "Cause", "Something else")
    here.page.locator(".st-key-resolve_own_cause input").fill("it was the shard map")
    here.page.get_by_role("button", name="Save as an incident").click()
    expect(here.page.get_by_text("Saved in your words")).to_be_visible()
    expect(here.page.get_by_text("You said on")).to_contain_text("it was the shard map")
    here.shot("outcome")
    here.page.goto(here.page.get_by_text("Added as").locator("a").evaluate("one => one.href"))
    expect(here.page.locator("p", has_text="copied it again").first).to_be_visible()
    here.open("quality")
    table.wait_for()
    here.settle()
    assert said_wrong(table) == before + 1


def test_a_judgement_is_changed_and_taken_back(visit: OpenPage) -> None:
    """After a reload, and in another tab that came by the link: the browser is known again."""
    here = visit()
    here.diagnose(LOG.replace("SeqNum=412", "SeqNum=413"))
    here.page.get_by_text("What was it?").click()
    choose(here, "Cause", "checkpoint-io")
    here.page.get_by_role("button", name="Save as an incident").click()
    expect(here.page.get_by_text("You said on")).to_contain_text("checkpoint")
    here.page.locator(".st-key-keep button").click()
    expect(here.page).to_have_url(re.compile("d="))
    here.page.reload()
    expect(here.page.get_by_text("You said on")).to_contain_text("checkpoint")
    here.shot("feedback-again")
    other = visit(f"?{here.page.url.partition('?')[2]}")
    expect(other.page.get_by_text("You said on")).to_contain_text("checkpoint")
    choose(other, "Cause", "rank-crash")
    other.page.get_by_role("button", name="Change it").click()
    expect(other.page.get_by_text("You said on")).to_contain_text("One rank died first")
    other.page.get_by_role("button", name="Take it back").click()
    expect(other.page.get_by_text("Taken back.")).to_be_visible()
    expect(other.page.get_by_text("You said on")).to_have_count(0)
    other.shot("feedback-taken-back")


def test_a_deleted_incident_is_brought_back(visit: OpenPage) -> None:
    """The list offers it right after the deletion; its page says that it is back."""
    here = visit()
    here.diagnose(LOG.replace("SeqNum=412", "SeqNum=414"))
    here.page.get_by_text("What was it?").click()
    here.page.locator(".st-key-record button").click()
    identifier = here.page.get_by_text("Added as").locator("a").inner_text()
    here.open(f"cases?id={identifier}")
    here.page.get_by_text("As it was handed in").click()
    expect(here.page.get_by_text(f"{UNIQUE} lost its shard map").first).to_be_visible()
    here.shot("incident-whole")
    here.page.get_by_text("Delete this entry").click()
    here.page.get_by_role("button", name="Delete it", exact=True).click()
    expect(here.page.get_by_text("Deleted.")).to_be_visible()
    here.shot("deleted")
    here.page.get_by_role("button", name="Undo: bring").click()
    expect(here.page.get_by_text("It is back.")).to_be_visible()
    expect(here.page).to_have_url(re.compile(identifier))
    here.shot("restored")


def test_incidents_are_merged_on_the_page(visit: OpenPage) -> None:
    """One chosen from the list becomes part of this one, and its address leads here."""
    here = visit()
    ids = []
    for number in (415, 416):
        here.open()
        here.page.evaluate("sessionStorage.clear()")
        here.open()
        here.diagnose(LOG.replace("SeqNum=412", f"SeqNum={number}"))
        here.page.get_by_text("What was it?").click()
        here.page.locator(".st-key-record button").click()
        ids.append(here.page.get_by_text("Added as").locator("a").inner_text())
    one, other = ids
    here.open(f"cases?id={one}")
    here.page.get_by_text("The same incident as another one?").click()
    choose(here, "Records to merge into this one", other)
    here.page.keyboard.press("Escape")
    here.shot("merge")
    here.page.get_by_role("button", name="Merge into this one").click()
    expect(here.page.get_by_text("Merged.")).to_be_visible()
    here.shot("merged")
    here.open(f"cases?id={other}")
    expect(here.page.get_by_text(other).first).to_be_visible()


def test_an_incident_is_found_at_once(visit: OpenPage) -> None:
    """A log written down with cause and fix is a hit in the API without a restart, and in the page.

    Page and API are processes of their own: what one writes the other has to notice.
    """
    here = visit()
    here.diagnose(LOG)
    here.page.get_by_text("What was it?").click()
    here.page.locator(".st-key-record button").click()
    entry = here.page.get_by_text("Added as").locator("a")
    identifier = entry.inner_text()
    choose(here, "Cause", "One rank died first")
    here.page.locator(".st-key-resolve_fix textarea").fill(f"restored the map of {UNIQUE}")
    here.page.get_by_role("button", name="Change it").click()
    expect(here.page.get_by_text("Saved: similar incidents will refer to it.")).to_be_visible()
    found = through_api(here, UNIQUE, identifier)
    assert found["cause"] == "rank-crash"

    here.page.goto(f"{here.site.page}/search?q={UNIQUE}")
    hit = here.page.locator("article").first
    expect(hit).to_contain_text("incident")
    hit.locator("h3 a").click()
    expect(here.page.get_by_text("resolved", exact=True)).to_be_visible()
    expect(
        here.page.get_by_text(f"restored the map of {UNIQUE}").locator("visible=true").first
    ).to_be_visible()


def through_api(here: Visit, query: str, identifier: str) -> dict[str, str]:
    """The resolved incident as the API finds it, or a failure after a minute."""
    address = f"{here.site.api}/v1/search?{urllib.parse.urlencode({'q': query})}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + FOUND_S
    while True:
        with direct.open(address, timeout=FOUND_S) as answer:
            hits = json.loads(answer.read())["hits"]
        mine = [hit for hit in hits if hit["entry_id"] == identifier and hit["cause"]]
        if mine:
            return dict(mine[0])
        if time.monotonic() > deadline:
            return pytest.fail(f"{identifier} is not among {[hit['entry_id'] for hit in hits]}")
        time.sleep(POLL_S)
