"""A log pasted into one line gets its lines back; words stay words."""

from __future__ import annotations

import pytest

from kb.text.flat_log import log_in

WATCHDOG = (
    "[rank0]:[E311 02:52:03.118204611 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=412, OpType=ALLREDUCE, NumelIn=77, NumelOut=77, "
    "Timeout(ms)=600000) ran for 600042 milliseconds before timing out."
)
ERROR = "[rank1]: RuntimeError: the loader lost its shard map"
PRINTED = "2026-01-02 10:11:12 INFO step 41 loss 2.5"


def test_lines_that_a_browser_joined_are_parted() -> None:
    """A tag of a rank and a date begin a line wherever they stand."""
    assert log_in(ERROR + WATCHDOG + PRINTED).split("\n") == [ERROR, WATCHDOG, PRINTED]


def test_a_log_with_its_lines_stays_as_it_is() -> None:
    """What has line breaks needs none."""
    assert log_in(f"{ERROR}\n{WATCHDOG}") == f"{ERROR}\n{WATCHDOG}"


@pytest.mark.parametrize(
    "words", ["it hangs while saving a checkpoint", "保存断点时卡住怎么办", "driver 545 or 535?"]
)
def test_words_are_no_log(words: str) -> None:
    """A question is not offered for diagnosis."""
    assert log_in(words) == ""
