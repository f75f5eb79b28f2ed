"""What is observed of threads: own cases are left out, projects stay together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.service import Service
from kb.train.samples import (
    CASE_WEIGHT,
    case_samples,
    judge,
    relate,
    thread_address,
    thread_samples,
)
from kb.types.entries import Entry
from kb.types.vocabulary import UNKNOWN
from tests.kb.train.examples import TIMEOUT_LOG, thread


@pytest.fixture(scope="module")
def case(small: Service) -> Entry:
    """A case with a cause."""
    return next(case for case in small.knowledge.cases if case.causes[0].id != UNKNOWN)


def symptoms(case: Entry) -> str:
    """What the case's English reporter saw."""
    return next(s.text for s in case.sections if s.role == "symptoms" and s.language == "en")


@pytest.mark.parametrize(
    "url",
    ["https://GitHub.com/a/b/issues/7", "https://github.com/a/b/issues/7/", "https://github.com/a/b/issues/7#issuecomment-1"],
)  # fmt: skip
def test_a_thread_has_one_address(url: str) -> None:
    """Case, closing slash and the place inside a thread do not matter."""
    assert thread_address(url) == "https://github.com/a/b/issues/7"


def test_a_thread_s_own_case_is_left_out(small: Service, case: Entry) -> None:
    """The case that stands on the incident's thread is found for it, and not when it is judged."""
    own = replace(thread("one", text=symptoms(case)), url=f"{case.url}#issuecomment-5")
    relations = relate([own], small)
    assert case.id in relations.own["one"]
    assert set(relations.own["one"]) <= set(relations.excluded["one"])
    found = [hit.entry_id for hit in judge(own.text, small).hits]
    judged = [hit.entry_id for hit in judge(own.text, small, relations.excluded["one"]).hits]
    assert case.id in found
    assert case.id not in judged
    assert relations.group(own.repo) == relations.group(case.project)


def test_a_repost_s_case_is_left_out_too(small: Service, case: Entry) -> None:
    """An incident that repeats another's story may not use the other's case."""
    story = symptoms(case) + " and every time it stops at the very same place of the second epoch"
    first = replace(thread("first", text=story), url=case.url)
    again = thread("again", text=f"hello, {story}")
    relations = relate([first, again], small)
    assert relations.own["again"] == ()
    assert case.id in relations.excluded["again"]
    assert relations.group(again.repo) == relations.group(first.repo)


def test_samples_carry_the_label(small: Service) -> None:
    """Cause, equally defensible causes and the project's group go from incident to sample."""
    one = thread("one", cause="rank-crash", also=("memory-pressure",), text=TIMEOUT_LOG)
    (made,) = thread_samples([one], small, relate([one], small))
    assert (made.cause, made.also, made.group) == ("rank-crash", ("memory-pressure",), "owner/one")
    assert made.weight == 1.0
    assert any(signal.kind == "log" for signal in made.signals)


def test_each_case_gives_a_sample_a_language(small: Service) -> None:
    """Two for every case with a known cause, of little weight, under its cause."""
    known = [case for case in small.knowledge.cases if case.causes[0].id != UNKNOWN]
    made = case_samples(small, relate([], small))
    assert [item.cause for item in made] == [case.causes[0].id for case in known for _ in "ze"]
    assert {item.weight for item in made} == {CASE_WEIGHT}
