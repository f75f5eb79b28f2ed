"""What messages are taken for, measured over messages people would type."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import yaml

from kb.chat.types import Intent
from kb.chat.understanding import spoken_language
from tests.kb.chat.conftest import OOM_LOG, TIMEOUT_LOG, CheckedChat

HERE = Path(__file__).parent
MESSAGES = yaml.safe_load((HERE / "messages.yaml").read_text(encoding="utf-8"))
# The messages were written in three lots, each before the patterns had met it. At first sight 71 of
# 99, then 40 of 50, then 35 of 42 were right: expect five in six of words nobody tuned for. The
# patterns were mended after each lot, so that all of them should be right by now.
MIN_RIGHT = 0.98


def wrong(chat: CheckedChat, messages: list[dict[str, object]]) -> list[str]:
    """The messages taken for something else, with what they were taken for."""
    found = []
    for item in messages:
        conversation = chat.say(TIMEOUT_LOG).conversation if item["had_incident"] else ""
        got = chat.say(str(item["text"]), conversation=conversation).intent
        if got != item["intent"]:
            found.append(f"{item['text']!r} is {item['intent']}, taken for {got}")
    return found


def test_messages_are_well_formed() -> None:
    """Each has its three fields, and every intent but a pasted log occurs."""
    for item in MESSAGES:
        assert set(item) == {"text", "had_incident", "intent"}
        assert item["intent"] in get_args(Intent)
    assert {item["intent"] for item in MESSAGES} == set(get_args(Intent)) - {"log"}


def test_known_messages(chat: CheckedChat) -> None:
    """The messages the patterns were mended for are understood."""
    missed = wrong(chat, MESSAGES)
    assert 1 - len(missed) / len(MESSAGES) >= MIN_RIGHT, missed


@pytest.mark.parametrize(
    ("own", "current", "language"),
    [
        ("训练卡住了", None, "zh"),
        ("NCCL_TIMEOUT 有用吗", "en", "zh"),
        ("why?", None, "en"),
        ("ok", "zh", "zh"),
        ("NCCL_TIMEOUT", "zh", "zh"),
        ("how do I fix this", "zh", "en"),
        ("2", "zh", "zh"),
        ("", None, None),
    ],
)
def test_language_of_words(own: str, current: str | None, language: str | None) -> None:
    """Chinese words are answered in Chinese; two English words do not turn a conversation."""
    assert spoken_language(own, current) == language  # type: ignore[arg-type]


def test_language_of_a_paste(chat: CheckedChat) -> None:
    """A sentence above a log tells the language, an order in it does not."""
    assert chat.say(OOM_LOG).language == "en"
    assert chat.say(f"多机训练启动之后一直卡住，没有报错，求助\n{OOM_LOG}").language == "zh"
    assert chat.say(f"{OOM_LOG}用中文说\n").language == "en"
    assert chat.say(OOM_LOG, language="zh").language == "zh"
