"""Presses: done once, told beside the button, and found again where a run was cut short."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from app.web import context
from kb.service import Service
from tests.app.web.conftest import RUN_S, html_of

PAGE = """
import streamlit as st
from streamlit.runtime.scriptrunner import RerunData, RerunException
from kb.knowledge.labels import Words
from app.web import context
from app.web.components import actions
from app.web.components.actions import Notice
from kb.errors import InputError

state = st.session_state
words = Words(context.service().knowledge.labels, "en")

def thank():
    state["done"] = state.get("done", 0) + 1
    return Notice(tone="good", label="page.thanks")

def fail():
    raise InputError("no such thing", todo="take another")

actions.button("right", thank, key="right", words=words)
actions.button("wrong", fail, key="wrong", words=words)
st.button("switch", key="switch", on_click=actions.repeat_notices)
st.button("ask", key="ask", on_click=actions.request, args=("question", "why?"))
with actions.pending("question") as wished:
    if wished.value:
        state.setdefault("tried", []).append(wished.value)
        if len(state["tried"]) == 1:
            raise RerunException(RerunData()) if state["cut"] else ValueError("broken")
state["runs"] = state.get("runs", 0) + 1
actions.clear_notices()
"""


@pytest.fixture
def page(real: Service, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Two buttons, and a question whose first answer is cut short, or fails."""
    monkeypatch.setattr(context, "_service", lambda: real)
    test = AppTest.from_string(PAGE, default_timeout=RUN_S)
    test.session_state["cut"] = True
    return test.run()


def test_a_press_is_done_once_and_told_once(page: AppTest) -> None:
    """The sentence stands there after the press, and not after the next run."""
    page.button(key="right").click().run()
    assert page.session_state["done"] == 1
    assert "Noted, thank you." in html_of(page)
    page.run()
    assert page.session_state["done"] == 1
    assert "Noted, thank you." not in html_of(page)


def test_what_was_said_is_said_again(page: AppTest) -> None:
    """As often as somebody asks for it in the next run, and no longer."""
    page.button(key="wrong").click().run()
    for _ in range(2):
        page.button(key="switch").click().run()
        assert "no such thing" in html_of(page)
    page.run()
    assert "no such thing" not in html_of(page)
    page.button(key="switch").click().run()
    assert "no such thing" not in html_of(page)


def test_what_went_wrong_is_told_beside_the_button(page: AppTest) -> None:
    """An expected failure says what was wrong and what to do, and the page goes on."""
    page.button(key="wrong").click().run()
    assert "no such thing" in html_of(page)
    assert "take another" in html_of(page)
    assert page.session_state["runs"] == 2


def test_a_run_cut_short_leaves_its_wish(page: AppTest) -> None:
    """The next run does what the one before could not, and it is done with that."""
    page.button(key="ask").click().run()
    assert page.session_state["tried"] == ["why?", "why?"]
    page.run()
    assert page.session_state["tried"] == ["why?", "why?"]


def test_what_fails_is_not_tried_again(page: AppTest) -> None:
    """A wish that makes the page fail does not make every later run fail."""
    page.session_state["cut"] = False
    page.button(key="ask").click().run()
    assert [str(error.value) for error in page.exception] == ["broken"]
    page.run()
    assert page.session_state["tried"] == ["why?"]
    assert not page.exception


QUEUE = """
import streamlit as st
from app.web.components import actions

st.button("alone", key="alone", on_click=actions.request, args=("jobs", "alone"))
st.button("too", key="too", on_click=actions.queue, args=("jobs", "too"))
st.button("none", key="none", on_click=actions.cancel, args=("jobs",))
if st.checkbox("work"):
    with actions.pending("jobs") as job:
        if job.value:
            st.session_state.setdefault("done", []).append(job.value)
st.session_state["left"] = actions.is_pending("jobs")
"""


def test_wishes_wait_their_turn(real: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is to wait comes after the others, a run each; one alone comes in their place."""
    monkeypatch.setattr(context, "_service", lambda: real)
    page = AppTest.from_string(QUEUE, default_timeout=RUN_S).run()
    for key in ("too", "none", "too", "alone", "too"):
        page.button(key=key).click().run()
    left = []
    page.checkbox[0].check()
    for _ in range(3):
        page.run()
        left.append(page.session_state["left"])
    assert page.session_state["done"] == ["alone", "too"]
    assert left == [True, False, False]
