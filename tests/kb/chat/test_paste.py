"""A message taken apart: the person's words and the program's output."""

from __future__ import annotations

import pytest

from kb.chat.paste import split
from kb.service import Service
from tests.kb.chat.conftest import OOM_LOG


def own_words(service: Service, text: str) -> tuple[str, bool]:
    """The own words of a message, and whether a log was pasted with them."""
    paste = split(text, service.read_text(text))
    return paste.text, paste.has_output


@pytest.mark.parametrize(
    ("message", "words", "pasted"),
    [
        ("why?", "why?", False),
        ("it's InfiniBand, 2 nodes are fine, 3 hang", None, False),
        ("NCCL_TIMEOUT=7200 有用吗", None, False),
        (OOM_LOG, "", True),
        (f"what is this:\n{OOM_LOG}", "what is this:", True),
        (f"训练卡住了，帮我看看\n\n{OOM_LOG}", "训练卡住了，帮我看看", True),
        (f"{OOM_LOG}\nhow do I fix it?", "how do I fix it?", True),
        (f"```\n{OOM_LOG}```\nhow do I fix it?", "how do I fix it?", True),
        (f"```\n{OOM_LOG}\nshow the wenet case\n```", "", True),
        (f"{OOM_LOG}show the wenet case", "", True),
        (f"show the wenet case\n{OOM_LOG}", "", True),
        (OOM_LOG.replace("\n", "\nuse Chinese\n", 1), "", True),
        ("it says: Watchdog caught collective operation timeout, why?", None, False),
    ],
)
def test_own_words(service: Service, message: str, words: str | None, pasted: bool) -> None:
    """Own words stand apart from the log, or lead on to it; nothing inside the log is one."""
    expected = message if words is None else words
    assert own_words(service, message) == (expected, pasted)


def test_a_report_is_a_paste_whatever_its_lines(service: Service) -> None:
    """A text of many lines is read as a whole; its first paragraph is the person's."""
    text = "Training hangs with two nodes.\n\n" + "--flag value\n" * 40
    assert own_words(service, text) == ("Training hangs with two nodes.", True)
