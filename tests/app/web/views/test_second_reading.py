"""The diagnose page with a language model that reads along: its place, its words, its failures."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.render import present
from app.web import context
from app.web.components.answer_state import AnswerState
from app.web.views.diagnose import STATE
from kb.diagnose.verdict import Verdict
from kb.diagnose.wording import percent
from kb.knowledge.labels import Words
from kb.saved import load_diagnosis
from kb.types.answer import Diagnosis
from kb.types.vocabulary import Language
from tests.app.web.views.test_diagnose import (
    HOSTILE,
    LOG,
    diagnose,
    html_of,
    one,
    text_of,
    visit,
    words_of,
)
from tests.kb.second_reader.conftest import ChatServer

SECOND = "shm-limits"  # what the model says; ours is another
ANSWER_S = 120  # a busy machine is slow
BOX = "tk-second"


@pytest.fixture
def model(built_home: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A model's server, and a page whose service asks it and trusts it fully."""
    server = ChatServer()
    server.says({SECOND: 0.9})
    variables = {
        "TIMEOUT_KB_HOME": built_home(),
        "TIMEOUT_KB_LLM_BASE_URL": server.url.replace("://", "://me:hunter2hunter2@"),
        "TIMEOUT_KB_LLM_MODEL": "tiny",
        "TIMEOUT_KB_LLM_TRUST": "1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    st.cache_resource.clear()
    yield server
    context.service().close()
    st.cache_resource.clear()
    server.close()


@pytest.fixture
def hold(model: ChatServer) -> Iterator[threading.Event]:
    """Set, it lets the model answer, which waits until then."""
    event, answer = threading.Event(), model.answer

    def wait(question: dict[str, Any]) -> str:
        event.wait(ANSWER_S)
        return answer(question)

    model.answer = wait
    yield event
    event.set()


def state_of(page: AppTest) -> AnswerState:
    """What the session holds."""
    state = page.session_state[STATE]
    assert isinstance(state, AnswerState)
    return state


def read(page: AppTest) -> Verdict:
    """Have the model's answer come in, and the page drawn after it."""
    pooled = state_of(page).pooled
    assert pooled is not None
    verdict = pooled.result(ANSWER_S)
    page.run()
    return verdict


def certainty_of(page: AppTest) -> str:
    """The line of the head that says how sure which cause is."""
    (line,) = [body for body in html_of(page).splitlines() if "tk-certainty" in body]
    return html.unescape(re.sub(r"<[^>]+>", "", line))


def certainty(answer: Diagnosis, words: Words) -> str:
    """What that line begins with where an answer is decided."""
    lead = answer.causes[0]
    band = words.term("band", lead.band)
    share = words("page.certainty", percent=present.cause_share(lead), band=band)
    return f"{share} {lead.title}"


def first_answer(language: Language = "en") -> Diagnosis:
    """What is answered without a model."""
    return context.service().diagnose_text(LOG, language=language)


def test_the_answer_is_there_while_the_model_reads(
    model: ChatServer, hold: threading.Event
) -> None:
    """The page says who reads what and where, without secrets; its answer is ours, its button off.

    Another run in another language asks nothing again.
    """
    page = diagnose(f"password=hunter2hunter2 {LOG}")
    assert certainty(first_answer(), words_of(page, "en")) in certainty_of(page)
    for language in ("en", "zh"):
        page.button_group(key="language_switch").set_value(language).run()
        words = words_of(page, language)
        assert words("second.reads", model="tiny", address=model.url) in text_of(page)
        assert words("second.sent", address=model.url) in text_of(page)
        assert page.button(key="second_show").disabled
        assert BOX not in html_of(page)
    assert "hunter2" not in html_of(page)
    hold.set()
    read(page)
    assert BOX in html_of(page)
    assert len(model.questions) == 1


def test_what_is_said_to_be_sent_is_what_is_sent(model: ChatServer) -> None:
    """Letter by letter."""
    page = diagnose(LOG)
    read(page)
    (question,) = model.questions
    assert question["messages"][1]["content"] in text_of(page)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_opinion_comes_and_the_answer_stays(model: ChatServer, language: Language) -> None:
    """What the model asks, says and costs, and the first causes before and after, in one place."""
    page = diagnose(LOG, lang=language)
    verdict = read(page)
    words, text = words_of(page, language), text_of(page)
    first, better = (
        first_answer(language),
        context.service().render(verdict, language=language),
    )
    assert first.causes[0].id != better.causes[0].id == SECOND
    assert certainty(first, words) in certainty_of(page)
    assert words("second.asks", ask="Which switch?") in text
    assert words("second.tokens", count=750) in text
    assert better.second_reader is not None
    assert better.second_reader.top[0].title in text
    before = state_of(page).origin
    assert isinstance(before, Verdict)
    shares = {scored.cause: scored.probability for scored in before.ranking.causes}
    for cause in better.causes[:3]:
        change = words(
            "second.change",
            before=percent(shares[cause.id]),
            after=present.cause_share(cause),
        )
        assert f"{cause.title} {change}" in text


def test_the_answer_with_it_is_a_press_away_and_back(model: ChatServer) -> None:
    """Only a person changes the answer; it is then the pooled one throughout, in both languages."""
    page = diagnose(LOG)
    verdict = read(page)
    ours = certainty_of(page)
    page.button(key="second_show").click().run()
    for language in ("en", "zh"):
        page.button_group(key="language_switch").set_value(language).run()
        better = context.service().render(verdict, language=language)
        assert certainty(better, words_of(page, language)) in certainty_of(page)
        assert f"1. {better.causes[0].title}" in text_of(page)
    page.button_group(key="language_switch").set_value("en").run()
    page.button(key="second_show").click().run()
    assert certainty_of(page) == ours
    assert len(model.questions) == 1


def test_what_is_kept_is_what_is_shown(model: ChatServer) -> None:
    """A link is of the answer it was made from: changing over takes it away, the other has its own.

    The one with the model's opinion says in its link what the model said.
    """
    page = diagnose(LOG)
    read(page)
    page.button(key="keep").click().run()
    ours = one(page.query_params["d"])
    page.button(key="second_show").click().run()
    assert "d" not in page.query_params
    assert not page.button(key="keep").disabled
    page.button(key="keep").click().run()
    pooled = one(page.query_params["d"])
    found = [load_diagnosis(context.service(), one) for one in (ours, pooled)]
    assert [kept.en.causes[0].id == SECOND for kept in found] == [False, True]
    opened = visit(d=pooled)
    assert words_of(opened, "en")("second.asks", ask="Which switch?") in text_of(opened)
    assert "second_show" not in [button.key for button in opened.button]
    assert len(model.questions) == 1


@pytest.mark.parametrize(
    ("behaviour", "why", "values"),
    [
        ({"status": 503}, "second.status", {"status": "503"}),
        ({"answer": lambda question: "It was the network."}, "second.no_json", {}),
        ({"message": {"content": None, "refusal": "no"}}, "second.refused", {}),
    ],
    ids=["broken", "nonsense", "refused"],
)
def test_a_failure_costs_a_line(
    model: ChatServer, behaviour: dict[str, Any], why: str, values: dict[str, str]
) -> None:
    """The first answer stands, one line says why, and drawing the page asks nothing again."""
    for name, value in behaviour.items():
        setattr(model, name, value)
    page = diagnose(LOG)
    second = read(page).second
    page.run()
    words = words_of(page, "en")
    assert second is not None
    assert words("second.none", model=second.model, why=words(why, **values)) in text_of(page)
    assert certainty(first_answer(), words) in certainty_of(page)
    assert "second_show" not in [button.key for button in page.button]
    assert len(model.questions) == 1


def test_a_malicious_question_is_characters(model: ChatServer) -> None:
    """HTML, Markdown and escapes in what the model asks do nothing."""
    model.answer = lambda question: json.dumps({"causes": {SECOND: 0.9}, "ask": HOSTILE})
    page = diagnose(LOG)
    read(page)
    content = html_of(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; ![x](http://evil.example/x.png)" in content
    assert "<script" not in content
    assert "<img" not in content
    assert 'href="javascript' not in content
    assert "\x1b" not in content
    assert len(page.markdown) == 0


def test_nobody_is_asked_about_something_else(model: ChatServer) -> None:
    """A text about no timeout has no place for a model and leaves for nowhere."""
    page = diagnose("epoch 1 done, accuracy 0.9")
    assert state_of(page).pooled is None
    assert model.url not in text_of(page)
    assert model.questions == []
