"""Anybody's text on the page is text: nothing in it runs, is fetched, or becomes a part of it."""

from __future__ import annotations

import urllib.parse

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.visits import DESKTOP, PHONE, Visit

pytestmark = pytest.mark.browser

FOREIGN = "http://192.0.2.7"  # an address nobody has; a request to it would be noted
LINES = (
    "<script>window.hostile=1;alert(1)</script>",
    f'<img src="{FOREIGN}/a.png" onerror="window.hostile=2;alert(2)">',
    f"![picture]({FOREIGN}/b.png) [click](javascript:window.hostile=3) **bold** `code`",
    f'<a href="javascript:alert(4)">x</a> <iframe src="{FOREIGN}/c"></iframe>',
    "$$\\href{javascript:alert(5)}{x}$$ :material/home: :red[red] <svg/onload=alert(6)>",
    "</code></div></section><h1 id=injected>injected</h1><style>*{display:none}</style>",
    "\x1b[31mred\x1b[0m \x1b]8;;javascript:alert(7)\x07link\x1b]8;;\x07 \u202egnirts\u202c",
)
LOG = (
    "\n".join(f"[rank1]: RuntimeError: CUDA out of memory {line}" for line in LINES)
    + f"\n[rank1]: {'A' * 10_000}\n"
    + "\n".join(
        "[rank0]:[E311 02:52:03.118204611 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum=25874, OpType=ALLREDUCE{line}, "
        "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600042 milliseconds"
        for line in ("", *LINES)
    )
)
INJECTED = (
    "#injected",
    "img[src*='192.0.2']",
    "iframe[src*='192.0.2']",
    "a[href^='javascript:']",
    "svg[onload]",
    ".stMain [onerror]",
    ".stMain script",
    ".stMain .katex",
)


def nothing_happened(here: Visit) -> None:
    """No script ran and no element came out of the text (foreign requests are noted by a visit)."""
    for selector in INJECTED:
        expect(here.page.locator(selector)).to_have_count(0)
    assert here.page.evaluate("window.hostile") is None
    assert here.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_hostile_log_is_shown_as_text(visit: OpenPage) -> None:
    """Diagnosed and unfolded, the log is characters; no line of it makes the page wider."""
    here = visit()
    here.diagnose(LOG)
    expect(here.page.locator(".tk-quote").filter(has_text="<script>").first).to_be_visible()
    here.page.get_by_text("The log around the evidence").click()
    shown = here.page.locator(".tk-line:visible").filter(has_text="onerror").first
    expect(shown).to_be_visible()
    for screen in (DESKTOP, PHONE):
        here.page.set_viewport_size(screen)
        nothing_happened(here)
        assert here.page.evaluate("document.querySelector('.stMain').scrollWidth <= innerWidth")


def test_a_hostile_message_is_shown_as_text(visit: OpenPage) -> None:
    """So it is in the chat, in what was said and in what was answered, and after a reload."""
    here = visit("chat")
    here.say(LOG)
    here.say("it hangs with <img src=x onerror=alert(8)> **b** [x](javascript:alert(9)), why?")
    asked = here.page.get_by_test_id("stChatMessage").nth(2)
    expect(asked).to_contain_text("<img src=x onerror=alert(8)> **b** [x](javascript:alert(9))")
    nothing_happened(here)
    here.page.reload()
    expect(here.page.get_by_test_id("stChatMessage")).to_have_count(4)
    nothing_happened(here)


def test_a_hostile_address_is_shown_as_text(visit: OpenPage) -> None:
    """What an address carries into a page is characters, too."""
    tags = urllib.parse.quote("<img src=x onerror=window.hostile=1><h1 id=injected>")
    here = visit()
    for path in ("search?q=", "cases?id=", "causes?id=", "?d=", "chat?c="):
        here.open(path + tags)
        here.settle()
        expect(here.page.locator("h1, [role=alert]").first).to_be_visible()
        nothing_happened(here)
        expect(here.page.locator("img[src=x]")).to_have_count(0)
