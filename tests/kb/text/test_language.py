"""Which language a text is written in, and which one an answer is given in."""

from __future__ import annotations

import pytest

from kb.text.language import answer_language, detect_language, has_han, language_choice
from kb.types.vocabulary import Language

LOG_LINE = (
    "[rank1]:[E 2025-01-02 03:04:05.678 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=7, OpType=_ALLGATHER_BASE, Timeout(ms)=600000)"
)


@pytest.mark.parametrize(
    ("written", "language"),
    [
        pytest.param("八张卡训练到一半卡住", "zh", id="zh"),
        pytest.param("training hangs on eight cards", "en", id="en"),
        pytest.param(f"{LOG_LINE}\n{LOG_LINE}", "en", id="log"),
        pytest.param(f"训练卡住了，日志如下：\n{LOG_LINE}\n" * 2, "zh", id="zh-with-log"),
        pytest.param(f"{LOG_LINE}\n" * 40 + "第二轮就这样了，怎么办", "zh", id="zh-under-long-log"),
        pytest.param("NPU 上跑 HCCL AllReduce 报 timeout", "zh", id="zh-with-names"),
        pytest.param("訓練到一半逾時", "zh", id="traditional"),
        pytest.param(
            "The dataset lies in /data/训练 and every worker reads it from there, then it hangs "
            "at the first step of the second epoch without any message",
            "en",
            id="en-with-path",
        ),
        pytest.param("[INFO] 超时", "zh", id="only-a-log-line-in-zh"),
        pytest.param("", "en", id="empty"),
        pytest.param("12345 !!", "en", id="no-words"),
    ],
)
def test_language_is_the_persons_not_the_programs(written: str, language: str) -> None:
    """Program output is English everywhere; what decides is the words around it."""
    assert detect_language(written) == language


@pytest.mark.parametrize(
    ("han", "latin", "language"),
    [
        pytest.param(16, 115, "zh", id="eight-percent"),
        pytest.param(16, 116, "en", id="just-below"),
        pytest.param(1, 7, "zh", id="one-character"),
        pytest.param(1, 8, "en", id="one-character-below"),
    ],
)
def test_share_of_chinese(han: int, latin: int, language: str) -> None:
    """1.6 characters count as a word, and 8 % of the words make a Chinese text."""
    assert detect_language("训" * han + " word" * latin) == language


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("训", True),
        ("\u3400", True),
        ("\u4dbf", True),
        ("\u9fff", True),
        ("é。", False),
        ("", False),
    ],
)
def test_chinese_characters(text: str, has: bool) -> None:
    """Both blocks of unified ideographs count to their ends; punctuation does not."""
    assert has_han(text) is has


ZH_LOG = "训练卡住了\n[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective timeout"
EN_LOG = "training hangs\n[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective timeout"


@pytest.mark.parametrize(
    ("requested", "configured", "text", "fallback", "language"),
    [
        ("en", "zh", ZH_LOG, "zh", "en"),
        ("zh", "en", EN_LOG, "en", "zh"),
        (None, "zh", EN_LOG, "en", "zh"),
        ("", "en", ZH_LOG, "zh", "en"),
        (None, "", ZH_LOG, "en", "zh"),
        (None, None, EN_LOG, "zh", "en"),
        (None, "", " \n", "zh", "zh"),
        (None, "", "", "zh-CN", "zh"),
        (None, "", "", "de", "en"),
        (None, "", "", "", "en"),
        (None, "", "", None, "en"),
    ],
)
def test_policy(
    requested: str | None, configured: str | None, text: str, fallback: str | None, language: str
) -> None:
    """The first that is known decides: requested, configured, the text's, the fallback, English."""
    assert answer_language(requested, configured, text, fallback=fallback) == language


@pytest.mark.parametrize(
    ("requested", "configured", "choice"),
    [("en", "zh", "en"), (None, "zh", "zh"), (None, "", None), ("", None, None)],
)
def test_choice(requested: str | None, configured: str | None, choice: Language | None) -> None:
    """Without a request or a setting nothing is chosen yet: the text decides."""
    assert language_choice(requested, configured) == choice
