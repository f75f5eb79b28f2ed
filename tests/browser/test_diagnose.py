"""A visitor with a log: pastes or uploads it, reads the answer, takes the fix and hands it on."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.visits import PHONE, QUIET_MS, STILL, Site, Visit, new_context

pytestmark = pytest.mark.browser

OOM_LINE = 5
LOG = (
    "torch==2.4.1 world_size=4\n"
    "step 3180 loss 1.8421\n"
    "step 3190 loss 1.8377\n"
    "[rank2]: Traceback (most recent call last):\n"
    "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.31 GiB on blade-17.\n"
    "[rank0]:[E311 02:52:03.118204611 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=25874, OpType=ALLREDUCE, NumelIn=131072, NumelOut=131072, "
    "Timeout(ms)=600000) ran for 600042 milliseconds before timing out.\n"
)
PER_RANK = (
    "[E519 23:24:1{rank}.640881205 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=_ALLGATHER_BASE, NumelIn=4194304, "
    "NumelOut=33554432, Timeout(ms)=600000) ran for 600056 milliseconds before timing out.\n"
    "[E519 23:24:1{rank}.641020118 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank "
    "{rank}] Timeout at NCCL work: {seq}, last enqueued NCCL work: {last}, last completed NCCL "
    "work: {done}.\n"
)


@pytest.fixture(scope="module")
def answered(opener: OpenPage) -> Iterator[Visit]:
    """A visitor who pasted the log and reads; nothing they do asks another host for anything."""
    here = opener()
    here.diagnose(LOG)
    here.settle()
    yield here
    here.page.close()
    assert (here.foreign, here.errors) == ([], [])


def test_a_pasted_log_is_answered(answered: Visit) -> None:
    """Headline, certainty and first cause are there; the culprit line is quoted with its place."""
    here = answered
    expect(here.verdict).to_contain_text("Rank 2 ran out of GPU memory")
    expect(here.certainty).to_contain_text("One rank died first")
    expect(here.certainty).to_contain_text(f"line {OOM_LINE}")
    expect(here.page.locator(".tk-cause").first).to_contain_text("1. One rank died first")
    culprit = here.page.locator(".tk-error")
    expect(culprit.locator(".tk-quote")).to_have_text(LOG.splitlines()[OOM_LINE - 1])
    culprit.locator("summary").click()
    near = culprit.locator(".tk-line").filter(has_text="Tried to allocate 7.31 GiB")
    expect(near.locator(".tk-no")).to_have_text(str(OOM_LINE))


SCREENS = {"desktop": (False, 1280, 800), "phone": (True, 390, 844)}
HEAD = {
    "headline": ".tk-verdict .tk-h1",
    "first fix": ".tk-first",
    "its copy button": ".st-key-tk_head [data-testid=stCode] button",
    "certainty": ".tk-certainty",
    "culprit line": ".tk-error .tk-quote",
}


@pytest.mark.parametrize(
    ("example", "screen", "language"),
    [
        ("rank-out-of-memory", "phone", "en"),
        ("rank-out-of-memory", "desktop", "zh"),
        ("rank-behind", "phone", "zh"),
        ("rank-behind", "desktop", "en"),
        ("save-on-rank0", "phone", "zh"),
    ],
)
def test_the_head_is_on_the_first_screen(
    visit: OpenPage, example: str, screen: str, language: str
) -> None:
    """What happened, what to do, how sure and which line: all of it without scrolling, in order."""
    phone, width, height = SCREENS[screen]
    here = visit(language=language, phone=phone)
    here.page.set_viewport_size({"width": width, "height": height})
    here.page.locator(f"[class*=st-key-example_{example}] button").click()
    here.verdict.wait_for()
    here.settle()
    here.page.wait_for_function(STILL, arg=QUIET_MS)
    assert here.page.evaluate("document.querySelector('.stMain').scrollTop") == 0
    boxes = {name: here.page.locator(where).first.bounding_box() for name, where in HEAD.items()}
    ends = {name: box["y"] + box["height"] for name, box in boxes.items()}
    assert {name: end for name, end in ends.items() if end > height} == {}
    tops = [box["y"] for box in boxes.values()]
    assert tops == sorted(tops)
    assert max(box["x"] + box["width"] for box in boxes.values()) <= width


def test_the_command_of_a_fix_is_copied(answered: Visit) -> None:
    """The copy button of the first fix puts exactly its command on the clipboard."""
    here = answered
    expect(here.page.get_by_role("heading", name="Fixes").first).to_be_visible()
    code = here.page.locator("[data-testid=stCode]:visible").first
    command = code.locator("code").inner_text()
    assert re.match(r"[a-z]+ \S", command)
    here.page.evaluate("navigator.clipboard.writeText('before')")
    code.hover()
    code.get_by_role("button", name="Copy to clipboard").click()
    here.page.wait_for_function(
        "async wanted => (await navigator.clipboard.readText()).trim() === wanted",
        arg=command.strip(),
    )


def test_a_similar_case_opens(answered: Visit) -> None:
    """The link of the case that is the same incident leads to the page of that case."""
    here = answered
    link = here.page.locator(".tk-met a").first
    title = link.inner_text()
    with here.page.expect_popup() as opened:
        link.click()
    here.watch(opened.value)
    expect(opened.value.locator(".tk h1")).to_have_text(title)
    expect(opened.value.get_by_role("heading", name="Symptom")).to_be_visible()
    opened.value.close()


def test_control_enter_diagnoses(visit: OpenPage) -> None:
    """The key the box names does what the button does."""
    here = visit()
    here.box.fill(LOG)
    here.box.press("Control+Enter")
    expect(here.certainty).to_contain_text("One rank died first")


def test_several_files_are_one_run(visit: OpenPage) -> None:
    """Logs of four ranks, one of them compressed, are read together; the one behind is named."""
    here = visit()
    files = []
    for rank in range(4):
        behind = rank == 2
        seq = 9683 if behind else 9684
        text = PER_RANK.format(rank=rank, seq=seq, last=seq + (0 if behind else 2), done=seq - 1)
        content = gzip.compress(text.encode()) if behind else text.encode()
        files.append(
            {
                "name": f"rank{rank}.log{'.gz' if behind else ''}",
                "mimeType": "application/octet-stream",
                "buffer": content,
            }
        )
    here.page.locator("input[type=file]").first.set_input_files(files)
    expect(here.page.get_by_role("button", name="Remove rank2.log.gz")).to_be_visible()
    here.page.locator(".st-key-run button").click()
    expect(here.verdict).to_contain_text("Rank 2 fell behind")
    names = here.page.get_by_text("rank0.log, rank1.log, rank2.log.gz, rank3.log", exact=True)
    expect(names).to_be_visible()


def test_an_example_is_one_click(visit: OpenPage) -> None:
    """An example is put into the box and diagnosed by the same click, and so is the next one."""
    here = visit()
    here.page.get_by_role("button", name="One rank out of memory").click()
    expect(here.certainty).to_contain_text("One rank died first")
    here.settle()
    here.page.get_by_text("Change the input, or diagnose another log").click()
    expect(here.box).to_have_value(re.compile("OutOfMemoryError"))
    here.page.get_by_role("button", name="Ascend link setup").click()
    happened = here.page.locator(".tk-pairs").filter(has_text="hccl")
    expect(happened.last).to_be_visible()
    expect(here.box).to_have_value(re.compile("HCCL"))


def test_a_kept_diagnosis_is_handed_on(answered: Visit, chromium: Any) -> None:
    """Its link opens for somebody else, in their language, with the answer and without the log."""
    here = answered
    here.page.locator(".st-key-keep button").click()
    link = here.page.get_by_test_id("stCode").filter(has_text="?d=").locator("code")
    expect(link).to_be_visible()
    address = link.inner_text().strip()
    assert address.startswith(f"{here.site.page}/?d=")
    context = new_context(chromium, language="zh")
    there = Visit(page=context.new_page(), site=here.site, screens=here.screens)
    there.watch(there.page)
    there.page.goto(address)
    expect(there.verdict).to_contain_text(re.compile("rank 2 ?显存耗尽"))
    expect(there.certainty).to_contain_text("某个进程先崩溃")
    expect(there.page.get_by_text("的诊断，不含整份日志")).to_be_visible()
    expect(there.page.get_by_text("step 3180 loss 1.8421")).to_have_count(0)
    context.close()
    assert (there.foreign, there.errors) == ([], [])


COPY_SHOWN = """button => {
  let shown = 1;
  for (let at = button; at; at = at.parentElement) shown *= getComputedStyle(at).opacity;
  return getComputedStyle(button).visibility === "visible" && shown;
}"""


def test_what_is_typed_outlives_a_reload(visit: OpenPage) -> None:
    """Unsent text is there again, before an answer and changed after one; what was sent is not."""
    here = visit()
    here.box.fill("rank 3 hangs in all_reduce")
    here.page.reload()
    expect(here.box).to_have_value("rank 3 hangs in all_reduce")
    here.diagnose(LOG)
    here.page.reload()
    expect(here.verdict).to_be_visible()
    expect(here.box).to_have_value(LOG)
    here.page.get_by_text("Change the input").click()
    here.box.fill("and rank 4 as well")
    here.page.reload()
    expect(here.verdict).to_be_visible()
    expect(here.box).to_have_value("and rank 4 as well")


def test_texts_can_be_copied_without_a_mouse(chromium: Any, site: Site, root: Path) -> None:
    """On a touch screen each copy button is shown, those of the menu as well."""
    context = chromium.new_context(viewport=PHONE, locale="en-US", has_touch=True, is_mobile=True)
    here = Visit(page=context.new_page(), site=site, screens=root / "artefacts" / "screens")
    here.open()
    here.diagnose(LOG)
    here.page.locator(".st-key-copy button").click()
    codes = here.page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")
    expect(codes).to_have_count(2)
    for button in codes.get_by_role("button").all():
        assert button.evaluate(COPY_SHOWN) == 1
    here.page.screenshot(path=here.screens / "copy-phone.png")
    context.close()
