"""Mistyped words of a question, and words that no entry has."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from kb.search.spelling import LONGEST, corrected, corrections
from kb.service import Service

ENTRIES = {"checkpoint": 90, "saving": 40, "allreduce": 120, "reset": 6, "rare": 1}


def _meant(question: str, *known: str) -> dict[str, str]:
    def entries_with(words: Sequence[str]) -> dict[str, int]:
        return {word: ENTRIES.get(word, 0) for word in words}

    return corrections(question, entries_with, frozenset(known).__contains__)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("allredcue", "allreduce"),  # exchanged
        ("chekpoint", "checkpoint"),  # missing
        ("checkpoinnt", "checkpoint"),  # too many
        ("Seving", "saving"),  # wrong, and a capital
        ("khekpoint", ""),  # another first letter
        ("rares", ""),  # one entry alone has it
        ("zugzwang", ""),
    ],
)
def test_one_keystroke_is_corrected(typed: str, meant: str) -> None:
    """The most frequent word one keystroke away is meant; else the word is unknown."""
    assert _meant(f"why {typed} hangs", "hangs") == {typed: meant}


@pytest.mark.parametrize(
    "question",
    [
        "saving the checkpoint",
        "resnet 没事",  # asked about, though no entry has it
        "my_chekpoint.py and /data/chekpoint/7",  # parts of names are nobody's typing
        "chekpoint'll",
        "chekpoint\nsavign",  # pasted
        "chekpoint " * (LONGEST // 10 + 1),
    ],
)
def test_what_is_left_as_it_is(question: str) -> None:
    """Known words, parts of names, and whatever was pasted."""
    assert _meant(question, "resnet") == {}


def test_the_question_is_searched_with_the_words_meant(shipped: Service) -> None:
    """A question in which every word is mistyped finds what it would find."""
    right = shipped.search("allreduce hangs when saving checkpoint", limit=5)
    found = shipped.search("allredcue hangs when savign chekpoint", limit=5)
    assert found.corrected == (
        ("allredcue", "allreduce"),
        ("savign", "saving"),
        ("chekpoint", "checkpoint"),
    )
    assert [hit.entry_id for hit in found.hits] == [hit.entry_id for hit in right.hits]


def test_what_no_entry_has_is_named(shipped: Service) -> None:
    """Where nothing is alike, the words that nothing has are told."""
    result = shipped.search("frobnicator zugzwang", limit=2)
    assert not result.similar_enough
    assert result.unknown == ("frobnicator", "zugzwang")


def test_a_question_of_unknown_words_is_answered_soon() -> None:
    """Each unknown word asks for some hundred spellings; their number is bounded."""
    asked: list[str] = []

    def entries_with(words: Sequence[str]) -> dict[str, int]:
        asked.extend(words)
        return dict.fromkeys(words, 0)

    words = " ".join(f"xq{letter * 6}" for letter in "abcdefghijklmnopqrstuvwxyz")
    started = time.process_time()
    corrections(words, entries_with, lambda _: False)
    assert len(asked) < 10_000
    assert time.process_time() - started < 1


def test_corrected_keeps_the_rest() -> None:
    """Only the mistyped word changes."""
    meant = {"chekpoint": "checkpoint", "zugzwang": ""}
    text = "为什么 chekpoint 卡住 zugzwang?"
    assert corrected(text, meant) == "为什么 checkpoint 卡住 zugzwang?"
