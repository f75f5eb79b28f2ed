"""What a person reads is in the language they chose or their browser speaks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser

CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH, SWITCH = "English", "中文"
HEADINGS = {
    "zh": ("可能的根因", "其他证据", "怎么修", "下一步", "相似案例", "时间线"),
    "en": ("Causes", "More evidence", "Fixes", "Next", "Similar cases", "Timeline"),
}


@pytest.mark.parametrize(
    ("language", "lead", "pages"),
    [
        (
            "zh",
            "粘贴超时日志，看根因",
            ["诊断", "对话", "团队故障", "搜索", "案例库", "根因", "问答", "准确度"],
        ),
        (
            "en",
            "Paste a timeout log, see the cause",
            ["Diagnose", "Chat", "Team incidents", "Search", "Cases", "Causes", "Notes", "Quality"],
        ),
    ],
)
def test_the_browser_decides_at_first(
    visit: OpenPage, language: str, lead: str, pages: list[str]
) -> None:
    """A first visit without a choice is in the language of the browser."""
    here = visit(language=language)
    expect(here.page.get_by_role("heading", level=1)).to_have_text(lead)
    expect(here.page.get_by_test_id("stTopNavLink")).to_have_text(pages)
    expect(here.page.locator("html")).to_have_attribute("lang", language)
    chosen = here.page.get_by_role("radio", checked=True)
    expect(chosen).to_have_text(ENGLISH if language == "en" else SWITCH)


def test_the_switch_turns_an_answer(visit: OpenPage) -> None:
    """Verdict and headings change with the switch, both ways, and the diagnosis stays the same."""
    here = visit()
    here.page.get_by_role("button", name="One rank behind").click()
    expect(here.certainty).to_contain_text("Ranks issued different collectives")
    share = re.search(r"\d+%", here.certainty.inner_text())
    assert share is not None
    for name, language, verdict in (
        (SWITCH, "zh", "各 rank 发出的集合通信不一致"),
        (ENGLISH, "en", "Ranks issued different collectives"),
    ):
        here.page.get_by_role("radio", name=name).click()
        expect(here.certainty).to_contain_text(verdict)
        expect(here.certainty).to_contain_text(share[0])
        for heading in HEADINGS[language]:
            shown = here.page.get_by_role("heading", name=heading, exact=True).first
            expect(shown).to_be_visible()
        assert f"lang={language}" in here.page.url
        expect(here.page.locator("html")).to_have_attribute("lang", language)
    left = [
        heading
        for heading in here.page.get_by_role("heading").all_inner_texts()
        if CHINESE.search(heading)
    ]
    assert left == []


def test_a_choice_is_kept(visit: OpenPage) -> None:
    """The language chosen holds on the other pages and after a reload, against the browser's."""
    here = visit()
    here.page.get_by_role("radio", name=SWITCH).click()
    expect(here.page.get_by_role("heading", level=1)).to_have_text("粘贴超时日志，看根因")
    here.page.reload()
    expect(here.page.get_by_role("heading", level=1)).to_have_text("粘贴超时日志，看根因")
    for number, title in ((3, "搜索"), (5, "根因"), (7, "准确度")):
        here.go(number)
        expect(here.page.get_by_role("heading", level=1)).to_have_text(title)
        expect(here.page).to_have_url(re.compile("lang=zh"))
