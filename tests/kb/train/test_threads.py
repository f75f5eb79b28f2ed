"""Threads are read, near-duplicates found, boilerplate is not one, groups close over links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.train.threads import MIN_QUERY_CHARS, linked, load_threads, near_duplicates
from tests.kb.train.examples import thread

STORY = "the job stops after the second epoch when the last batch of the night shift is short"
OTHER = "a fresh cluster never gets past the first barrier since the cables were swapped"
WATCHDOG = (
    "watchdog caught collective operation timeout ran for many milliseconds before timing out"
)


def test_a_repost_is_a_near_duplicate() -> None:
    """The same story with another greeting is one; each names the other, nobody else is named."""
    found = near_duplicates(
        [
            thread("first", text=f"hello all {STORY}"),
            thread("again", text=f"dear maintainers {STORY}"),
            thread("other", text=OTHER),
        ]
    )
    assert found == {"again": ("first",), "first": ("again",)}


def test_lines_of_software_make_no_duplicates() -> None:
    """Lines that stand in three posts do not count, however much of each they are."""
    posts = [
        thread(str(n), text=f"{WATCHDOG} report {'abc'[n]} {OTHER[n * 9 :]}") for n in range(2)
    ]
    third = thread("third", text=WATCHDOG)
    assert "third" in near_duplicates([thread("x", text=WATCHDOG), third])
    assert "third" not in near_duplicates([*posts, third])


def test_links_close_over_chains() -> None:
    """a-b and b-c make one group named a; d-e another; the order of pairs does not matter."""
    pairs = [("b", "c"), ("e", "d"), ("a", "b")]
    expected = {"a": "a", "b": "a", "c": "a", "d": "d", "e": "d"}
    assert linked(pairs) == linked(pairs[::-1]) == expected


def test_a_thread_is_its_post_its_label_and_its_answer(tmp_path: Path) -> None:
    """Title, words and log are the post, root cause and fix the answer; empty lines do not count.

    A title nobody wrote is none; a post that tells its cause, or says little, measures nothing.
    """
    label = {"url": "https://example.org/1", "repo": "a/b", "cause": "alpha", "also": ["beta"]}
    common = label | {"title": "T", "query_text": "w" * MIN_QUERY_CHARS, "query_log": None}
    lines = [
        common | {"id": "1", "lang": "en", "root_cause": "R1", "fix": "F1"},
        common | {"id": "2", "lang": "mixed", "query_text": "words", "query_log": "log"},
        common | {"id": "3", "lang": "zh", "title": "[title not kept]", "text_leaks_cause": True},
    ]
    path = tmp_path / "threads.jsonl"
    path.write_text("\n\n".join(json.dumps(line) for line in lines), "utf-8")
    first, second, third = load_threads(path)
    assert (first.text, first.answer) == (f"T\n{'w' * MIN_QUERY_CHARS}", "R1 F1")
    assert (first.cause, first.also, first.repo) == ("alpha", ("beta",), "a/b")
    assert (second.text, second.log, second.language) == ("T\nwords\nlog", "log", "mixed")
    assert third.text == "w" * MIN_QUERY_CHARS
    assert [one.measurable for one in (first, second, third)] == [True, False, False]


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A line that is no labelled thread is an input error that names file and line."""
    path = tmp_path / "other.jsonl"
    path.write_text('\n{"id": 1}\n', "utf-8")
    with pytest.raises(InputError, match=r"other\.jsonl, line 2"):
        load_threads(path)
    with pytest.raises(InputError, match="No such file"):
        load_threads(tmp_path / "none.jsonl")
