"""The measure of fixes: places of known fixes, the halves, what the golden file may name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evaluation.known_fixes import (
    APART,
    GOLDEN_FIXES,
    TUNED,
    AskedFix,
    fix_figures,
    load_known_fixes,
    missed,
)
from kb.knowledge.load import read_knowledge


def asked(name: str, shown: str, under: str, *, right: bool = True) -> AskedFix:
    """A thread that fix ``k`` helped; fixes are letters in the order shown."""
    return AskedFix(
        thread=name,
        cause="c",
        known=("k",),
        first_cause="c" if right else "d",
        shown=tuple(shown),
        under_cause=tuple(under),
    )


def test_places_of_known_fixes() -> None:
    """First, among three, where the cause is right, and under the true cause."""
    items = [
        asked("one", "kab", "kab"),
        asked("two", "abk", "abk"),
        asked("three", "abck", "abck"),
        asked("four", "xyz", "k", right=False),
    ]
    means = {name: (one.mean, three.mean) for name, (one, three) in fix_figures(items).items()}
    assert means["as answered"] == (0.25, 0.5)
    assert means["where the cause is right"] == pytest.approx((1 / 3, 2 / 3))
    assert means["under the true cause"] == (0.5, 0.75)
    assert [item.thread for item in missed(items)] == ["three"]


def test_a_thread_met_again_is_helped_by_its_own_case() -> None:
    """The fix of its own case counts as the one that is known."""
    again = replace(asked("one", "", ""), again=("x/fix-1", "own/fix-1"), own=frozenset({"own"}))
    first, three = fix_figures([again])["met again"]
    assert (first.mean, three.mean) == (0.0, 1.0)


def test_the_golden_fixes_are_shipped(data_dir: Path) -> None:
    """Each thread stands there once, and both halves are of some size."""
    known = load_known_fixes(data_dir / "golden" / GOLDEN_FIXES, read_knowledge(data_dir))
    assert len({item.thread for item in known}) == len(known) >= 70
    halves = [asked(item.thread, "", "").half for item in known]
    assert min(halves.count(TUNED), halves.count(APART)) >= 30


def test_a_fix_nobody_ships_is_refused(tmp_path: Path, data_dir: Path) -> None:
    """A slip in the file is an error with its line, not a miss."""
    path = tmp_path / "fixes.jsonl"
    path.write_text(json.dumps({"thread": "t", "fixes": ["rank-crash/nothing"]}) + "\n", "utf-8")
    with pytest.raises(InputError, match="line 1: no fix 'rank-crash/nothing'"):
        load_known_fixes(path, read_knowledge(data_dir))
