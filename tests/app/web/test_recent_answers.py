"""The last answer of a tab: found by its name alone, bounded in number, size and time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.web import context
from app.web.components.answer_state import AnswerState
from app.web.recent_answers import KEPT_S, MOST_ANSWERS, RecentAnswers
from app.web.views.diagnose import STATE
from tests.app.web.views.test_diagnose import LOG, diagnose, home, text_of, visit

__all__ = ["home"]  # the state folder these visits use as well


@pytest.fixture(scope="module")
def answer() -> AnswerState:
    """A small answer."""
    service = context.service()
    return AnswerState(origin=service.judge(service.read_text(LOG)), pasted=LOG)


def test_a_tab_has_its_own_last_answer(answer: AnswerState) -> None:
    """The last one put under a name is given, to nobody who has another name."""
    recent, later = RecentAnswers(), replace(answer, pasted="later")
    recent.put("one", answer)
    recent.put("one", later)
    assert recent.get("one") is later
    assert recent.get("other") is None


def test_an_answer_goes_after_a_day(answer: AnswerState) -> None:
    """What is older is not given, and the next one put clears it away."""
    now = 0.0
    recent = RecentAnswers(clock=lambda: now)
    recent.put("one", answer)
    now = KEPT_S
    assert recent.get("one") is answer
    now = KEPT_S + 1
    assert recent.get("one") is None
    recent.put("other", answer)
    now = 0.0
    assert recent.get("one") is None


def test_the_oldest_makes_room(answer: AnswerState) -> None:
    """Neither the pasted texts together nor the answers are more than the bound."""
    recent = RecentAnswers(most_chars=3 * len(LOG))
    for name in "abcd":
        recent.put(name, answer)
    assert [name for name in "abcd" if recent.get(name)] == ["b", "c", "d"]
    many = RecentAnswers(most_chars=1 << 40)
    for number in range(MOST_ANSWERS + 1):
        many.put(str(number), answer)
    assert (many.get("0"), many.get("1")) == (None, answer)


def reload_of(tab: str) -> AppTest:
    """A new session in a tab that has its name already."""
    page = visit()
    page.session_state["tab"] = tab
    return page.run()


def test_a_reload_keeps_text_and_answer() -> None:
    """A new session of the same tab shows both again; that of another tab shows the empty form."""
    first = diagnose(LOG)
    headline = first.session_state[STATE].answers["en"].headline
    again = reload_of(first.session_state["tab"])
    assert headline in text_of(again)
    assert again.text_area(key="paste").value == LOG
    other = reload_of("another-tab")
    assert headline not in text_of(other)
    assert other.text_area(key="paste").value in ("", None)
