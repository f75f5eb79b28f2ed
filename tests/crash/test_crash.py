"""A small round of `make crash`, and how it tells what was acknowledged from what was not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.campaign import holds
from tests.crash.facts import Fact, Line, merged


def test_nothing_is_lost_and_nothing_half(root: Path) -> None:
    """Two kills at the same moments as ever: the folder opens, and all of it is as it should be."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.crash", "2", "905"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.rstrip().endswith("0 things wrong")
    assert sum(int(count) for count in re.findall(r"([0-9]+) done ", run.stdout)) > 0


def test_what_was_under_way_may_be_or_not() -> None:
    """Only what was said to be done must hold; what failed or was cut off is looked up."""
    lines = [
        Line("begin", "resolve", (Fact("outcome", "a", ""),)),
        Line("done", "resolve", (Fact("outcome", "a", "rank-crash"),)),
        Line("begin", "resolve", (Fact("outcome", "b", ""),)),
        Line("failed", "resolve: disk", ()),
        Line("begin", "delete", (Fact("entry", "c", ""),)),
    ]
    known, unsure = merged({("entry", "c"): "word"}, lines)
    assert known == {("entry", "c"): "word", ("outcome", "a"): "rank-crash"}
    assert unsure == {("outcome", "b"), ("entry", "c")}


@pytest.mark.parametrize(
    ("kind", "value", "now", "fine"),
    [
        ("entry", "word", "word", True),
        ("entry", "word", "", False),
        ("entry", "", "there", False),
        ("chat", "3", "4", True),
        ("chat", "3", "2", False),
        ("chat", "3", "", False),
    ],
)
def test_a_conversation_alone_may_have_gone_on(kind: str, value: str, now: str, fine: bool) -> None:
    """All else is as it was acknowledged."""
    assert holds(kind, value, now) is fine
