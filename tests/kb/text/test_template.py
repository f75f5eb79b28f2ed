"""Templates of lines: what differs from run to run is masked."""

from __future__ import annotations

import time

import pytest

from kb.text.template import line_template


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("step 12 loss 2.5e-3", "step 1,300 loss 1.25"),
        ("2026-01-02 03:04:05,123 INFO up", "2025-11-12 23:44:55,001 INFO up"),
        ("saved /ckpt/run-1/step_5.pt", "saved /mnt/other/step_900.pt"),
        ("at 0x7fff01 of 3f2a9c1b77", "at 0xdeadbeef of 0011aa22bb"),
        ("\x1b[32mtrain 45%|████▌   | 45/100", "train 7%|▋       | 7/100"),
        ("epoch   3", "epoch 4"),
    ],
    ids=["numbers", "times", "paths", "ids", "bars", "spaces"],
)
def test_runs_say_the_same(one: str, other: str) -> None:
    """Two lines of one statement have one template."""
    assert line_template(one) == line_template(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("loading data", "loading model"), ("rank 3 failed", "rank 3 done"), ("deadbeef", "feedface")],
)
def test_words_count(one: str, other: str) -> None:
    """Other words are another template, words of a to f alone too."""
    assert line_template(one) != line_template(other)


def test_what_has_no_words_has_no_template() -> None:
    """Numbers and bars alone say nothing."""
    assert line_template("=== 12 === 0.5") == ""


@pytest.mark.parametrize("text", ["1." * 50_000, "a1" * 50_000, "=" * 100_000, "0x" * 50_000])
def test_time_is_linear(text: str) -> None:
    """A hostile line of a hundred thousand characters takes no longer than its length."""
    started = time.perf_counter()
    line_template(text)
    assert time.perf_counter() - started < 2
