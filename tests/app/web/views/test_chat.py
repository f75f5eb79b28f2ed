"""The chat page: said with sources, kept under its address, safe with anybody's words."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
import streamlit as st
from markdown_it import MarkdownIt
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner import RerunData, RerunException
from streamlit.testing.v1 import AppTest

from app.inputs.contributions import read_feedback
from app.web import context
from app.web.components import chat_reply
from app.web.views import chat
from kb.chat.chat import Chat
from kb.chat.types import (
    Change,
    Citation,
    Conversation,
    IncidentOutcome,
    Option,
    Question,
    Reply,
    Statement,
    Turn,
)
from kb.errors import StoreError
from kb.knowledge.labels import Words
from kb.service import Service
from tests.app.web.conftest import OpenPage, address_of, codes_of, forget_feedback, html_of
from tests.kb.second_reader.conftest import ChatServer, second_reader

LOG = (
    "It fails while saving a checkpoint, here is the log:\n\n"
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=14217, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600029 milliseconds before timing out.\n"
)
EVIL = "<img src=x onerror=alert(1)> **b** [x](http://evil.example) `c`"
CAUSE = Citation(kind="cause", id="rank-crash", quote="One rank died")
LINE = Citation(kind="line", line=3, quote="torch.OutOfMemoryError")


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A language model's server."""
    server = ChatServer()
    yield server
    server.close()


def reply(*statements: Statement, **more: object) -> Reply:
    """A reply of those statements."""
    plain = Reply(
        conversation="c1", number=1, intent="log", language="en", statements=tuple(statements)
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def turn(asked: str, answer: Reply) -> Turn:
    """A turn."""
    return Turn(asked=asked, reply=answer, at_s=1.0)


def messages(page: AppTest) -> int:
    """How many messages the page shows."""
    return len(page.chat_message)


# --- with the real engine ----------------------------------------------------------------------


def test_a_log_begins_a_conversation_that_stays(real: Service, open_page: OpenPage) -> None:
    """A pasted log is answered with its cause; the address finds the same conversation again."""
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    (identifier,) = address_of(page)["c"]
    shown = html_of(page)
    kept = Chat(real).conversation(identifier)
    assert [statement.text for statement in kept.turns[0].reply.statements]
    lead = real.knowledge.cause_by_id["rank-crash"].title.en
    assert lead in shown
    assert 'href="./causes?lang=en&amp;id=rank-crash"' in shown
    again = open_page("chat", c=identifier)
    assert html_of(again) == shown
    assert messages(again) == messages(page) == 2


def test_commands_can_be_copied(real: Service, open_page: OpenPage) -> None:
    """Every command of a reply, and that of its question, stands in a box of its own."""
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    (identifier,) = address_of(page)["c"]
    answer = Chat(real).conversation(identifier).turns[0].reply
    commands = [item.command for item in answer.statements if item.command]
    assert answer.question is not None
    assert codes_of(page) == [
        command.strip("\n") for command in [*commands, answer.question.command] if command
    ]


def test_pressing_an_option_answers_the_question(real: Service, open_page: OpenPage) -> None:
    """The option is taken as the answer, said as the person's words, and moves the causes."""
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    (identifier,) = address_of(page)["c"]
    question = Chat(real).conversation(identifier).turns[0].reply.question
    assert question is not None
    page.button(key="chat_option_1").click().run()
    known = Chat(real).conversation(identifier)
    assert [(item.check, item.outcome) for item in known.check_results] == [(question.check, 1)]
    assert f"1. {question.options[0].text}" in html_of(page)
    assert messages(page) == 4
    shown = unescape(html_of(page))  # what was offered stays, with the option chosen
    assert f"✓ 1. {question.options[0].text}<" in shown
    assert all(f">{other.number}. {other.text}<" in shown for other in question.options[1:])


def test_a_suggestion_says_itself(real: Service, open_page: OpenPage) -> None:
    """A suggestion pressed is the next message."""
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    (identifier,) = address_of(page)["c"]
    suggestion = Chat(real).conversation(identifier).turns[0].reply.suggestions[0]
    page.button(key="chat_suggestion_0").click().run()
    turns = Chat(real).conversation(identifier).turns
    assert turns[1].asked == suggestion
    shown = unescape(html_of(page))
    assert [text for text in turns[0].reply.suggestions if f"✓ {text}" in shown] == [suggestion]


def test_files_are_read_as_one_incident(real: Service, open_page: OpenPage) -> None:
    """Uploaded logs begin a conversation; the rank in a name is that of its lines."""
    page = open_page("chat")
    for rank in (0, 1):
        page.chat_input[0].upload(f"rank{rank}.log", LOG.partition("\n\n")[2].encode())
    page.run()
    (identifier,) = address_of(page)["c"]
    known = Chat(real).conversation(identifier)
    assert known.reading is not None
    assert known.reading.incident.has_timeout
    assert "(the log came as files or from a diagnosis)" in html_of(page)


def test_a_file_that_is_no_log_is_refused(open_page: OpenPage) -> None:
    """The reason is said, nothing is begun, and the page goes on."""
    page = open_page("chat")
    page.chat_input[0].upload("core.log", b"\x7fELF" + bytes(4000))
    page.run()
    assert "tk-bad" in html_of(page)
    assert "c" not in address_of(page)


def test_an_expired_conversation_says_so(real: Service, open_page: OpenPage) -> None:
    """The message names the days; a new conversation is one button away."""
    page = open_page("chat", c="gone")
    assert f"kept for {real.settings.chat_days} days" in html_of(page)
    assert len(page.chat_input) == 0
    page.button(key="chat_new").click().run()
    assert "Paste a log, upload files" in html_of(page)
    assert address_of(page) == {}


def test_a_conversation_of_slack_is_not_shown(real: Service, open_page: OpenPage) -> None:
    """Its id is made of names that others know, so nobody reads it by its address."""
    private = "slack:T1:D1:direct"
    Chat(real).say(LOG, conversation=private, create=True)
    page = open_page("chat", c=private)
    assert f"kept for {real.settings.chat_days} days" in html_of(page)
    assert (messages(page), len(page.chat_input)) == (0, 0)


def test_feedback_is_kept_once(real: Service, open_page: OpenPage) -> None:
    """A judgement is stored with cause and conversation, and the buttons give way to thanks."""
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    (identifier,) = address_of(page)["c"]
    page.button(key="chat_right").click().run()
    mine = [item for item in read_feedback(real) if item.feedback.diagnosis == identifier]
    forget_feedback(real)
    (stored,) = mine
    assert (stored.source, stored.feedback.verdict, stored.feedback.cause) == (
        "web",
        "right",
        "rank-crash",
    )
    assert "Noted, thank you." in html_of(page)
    assert "chat_right" not in {button.key for button in page.button}


def test_what_it_was_instead_is_kept(real: Service, open_page: OpenPage) -> None:
    """A wrong answer is stored with the cause chosen in its place."""
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    (identifier,) = address_of(page)["c"]
    page.selectbox(key="chat_actual_en").set_value("memory-pressure").run()
    page.button(key="chat_wrong").click().run()
    mine = [item for item in read_feedback(real) if item.feedback.diagnosis == identifier]
    forget_feedback(real)
    (stored,) = mine
    assert (stored.feedback.verdict, stored.feedback.cause) == ("wrong", "rank-crash")
    assert stored.feedback.actual == "memory-pressure"


def test_the_reply_follows_the_switch(real: Service, open_page: OpenPage) -> None:
    """A log is answered in the language of the page; a person's words in their own."""
    page = open_page("chat", lang="zh")
    page.chat_input[0].set_value(LOG.partition("\n\n")[2]).run()
    (identifier,) = address_of(page)["c"]
    assert Chat(real).conversation(identifier).turns[0].reply.language == "zh"
    page.chat_input[0].set_value("how can I be sure that it is the memory?").run()
    assert Chat(real).conversation(identifier).turns[1].reply.language == "en"


def test_a_switch_moved_since_the_last_message_counts(real: Service, open_page: OpenPage) -> None:
    """Who switches the page to Chinese is answered in Chinese from then on, words or not."""
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    (identifier,) = address_of(page)["c"]
    page.session_state[context.LANGUAGE] = "zh"
    page.chat_input[0].set_value("2").run()
    replies = [turn.reply.language for turn in Chat(real).conversation(identifier).turns]
    assert replies == ["en", "zh"]


def test_examples_can_be_pressed(open_page: OpenPage) -> None:
    """An empty page offers things to say, and each gets an answer."""
    page = open_page("chat")
    page.button(key="page.chat_example_setting").click().run()
    assert "NCCL_TIMEOUT" in html_of(page)
    assert messages(page) == 2


# --- the next event comes while a message is answered -------------------------------------------


class Cut(Chat):
    """A chat right after whose next answer an event comes.

    `heard` counts what it was given to answer, kept or not.
    """

    event: RerunData | None = None
    heard = 0

    def say(self, *args: object, **options: object) -> Reply:
        """The answer to a message."""
        self.heard += 1
        return super().say(*args, **options)  # type: ignore[arg-type]

    def begin(self, *args: object, **options: object) -> Reply:
        """The answer to files."""
        self.heard += 1
        return super().begin(*args, **options)  # type: ignore[arg-type]


@pytest.fixture
def cut(real: Service) -> Cut:
    """The chat of a page that is about to be opened."""
    return Cut(real)


@pytest.fixture
def open_cut(
    open_page: OpenPage, cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], AppTest]:
    """Opens a chat page whose runs can be ended right after the answer."""

    @contextlib.contextmanager
    def spinner(_text: str) -> Iterator[None]:
        yield
        if cut.event is not None:
            event, cut.event = cut.event, None
            raise RerunException(event)

    def opened() -> AppTest:
        page = open_page("chat")
        monkeypatch.setattr(context, "_chat", lambda: cut)
        monkeypatch.setattr(st, "spinner", spinner)
        return page

    return opened


def test_a_first_answer_outlives_the_next_event(cut: Cut, open_cut: Callable[[], AppTest]) -> None:
    """Its question is asked once, its answer is shown, and the address names the conversation."""
    page = open_cut()
    cut.event = RerunData(widget_states=WidgetStates())
    page.chat_input[0].set_value("what does NCCL_DEBUG do?").run()
    (identifier,) = address_of(page)["c"]
    asked = [item.asked for item in cut.conversation(identifier).turns]
    assert asked == ["what does NCCL_DEBUG do?"]
    assert cut.heard == 1
    assert messages(page) == 2


def test_a_second_message_stands_behind_the_first(
    cut: Cut, open_cut: Callable[[], AppTest]
) -> None:
    """Sent while the first of a new conversation is answered, it is the next of the same one."""
    page = open_cut()
    states = WidgetStates()
    example = states.widgets.add()
    example.id = page.button(key="page.chat_example_words").proto.id
    example.trigger_value = True
    cut.event = RerunData(widget_states=states)
    page.chat_input[0].set_value("what does NCCL_DEBUG do?").run()
    (identifier,) = address_of(page)["c"]
    asked = [item.asked for item in cut.conversation(identifier).turns]
    assert asked == ["what does NCCL_DEBUG do?", "What is collective-mismatch?"]
    assert messages(page) == 4


def test_a_conversation_left_is_not_come_back_to(cut: Cut, open_cut: Callable[[], AppTest]) -> None:
    """Who begins a new one while the first message of the old is answered has an empty page."""
    page = open_cut()
    states = WidgetStates()
    new = states.widgets.add()
    new.id = page.button(key="chat_new").proto.id
    new.trigger_value = True
    cut.event = RerunData(widget_states=states)
    page.chat_input[0].set_value("what does NCCL_DEBUG do?").run()
    assert address_of(page) == {}
    assert messages(page) == 0


@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_files_are_read_once(cut: Cut, open_cut: Callable[[], AppTest], known: bool) -> None:
    """An event that ends the run right after they were read does not have them read again."""
    page = open_cut()
    if known:
        page.chat_input[0].set_value("what does NCCL_DEBUG do?").run()
    address = urlencode(address_of(page), doseq=True)
    cut.event = RerunData(widget_states=WidgetStates(), query_string=address)
    page.chat_input[0].upload("rank0.log", LOG.partition("\n\n")[2].encode())
    page.run()
    assert cut.event is None
    (identifier,) = address_of(page)["c"]
    turns = cut.conversation(identifier).turns
    assert [item.reply.intent for item in turns] == ["setting"] * known + ["log"]
    assert cut.heard == len(turns)


# --- how it ended ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "label", "stored"),
    [
        (
            "nope, turned out to be the network",
            "Keep as feedback: the answer was wrong",
            IncidentOutcome(verdict="wrong", cause="rank-crash", actual="network-config"),
        ),
        (
            "that was it",
            "Keep as feedback: the answer was right",
            IncidentOutcome(verdict="right", cause="rank-crash", actual="rank-crash"),
        ),
    ],
    ids=["wrong", "right"],
)
def test_how_it_ended_is_kept(
    real: Service, open_page: OpenPage, told: str, label: str, stored: IncidentOutcome
) -> None:
    """One button stores what the person said; the cause they spoke of is not asked about again."""
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    page.chat_input[0].set_value(told).run()
    page.chat_input[0].set_value("yes").run()
    (identifier,) = address_of(page)["c"]
    assert not {"chat_right", "chat_wrong"} & {button.key for button in page.button}
    button = page.button(key="chat_keep")
    assert button.label == label
    button.click().run()
    mine = [item for item in read_feedback(real) if item.feedback.diagnosis == identifier]
    forget_feedback(real)
    kept = [item.feedback for item in mine]
    assert [(one.verdict, one.cause, one.actual) for one in kept] == [
        (stored.verdict, stored.cause, stored.actual)
    ]
    assert "Noted, thank you." in html_of(page)
    page.chat_input[0].set_value("thanks").run()
    assert not {"chat_right", "chat_keep"} & {button.key for button in page.button}


def test_a_judgement_that_cannot_be_kept_is_told(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure stands beside the button, and the conversation is still there."""

    def broken(*_args: object, **_options: object) -> None:
        raise StoreError("the store is locked", todo="try again")

    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    monkeypatch.setattr("app.inputs.contributions.add_feedback", broken)
    page.button(key="chat_right").click().run()
    assert "the store is locked" in html_of(page)
    assert messages(page) == 2
    assert "Noted, thank you." not in html_of(page)


# --- hostile words -----------------------------------------------------------------------------


class Hostile:
    """A chat that says what a log told it to."""

    def conversation(self, identifier: str) -> Conversation:
        """A conversation full of it."""
        answer = reply(
            Statement(
                role="verdict",
                text=EVIL,
                citations=(
                    Citation(kind="line", line=1, quote=EVIL, url="javascript:alert(1)"),
                    Citation(kind="cause", id=EVIL),
                    Citation(kind="case", id=EVIL, quote=EVIL),
                    Citation(kind="setting", id=EVIL),
                ),
                command=EVIL,
            ),
            question=Question(
                check="x", text=EVIL, options=(Option(number=1, text=EVIL),), command=EVIL
            ),
            changes=(Change(cause=EVIL, title=EVIL, before=0.1, after=0.2, why=(EVIL,)),),
            suggestions=(EVIL,),
        )
        return Conversation(id=identifier, created_s=0.0, turns=(turn(EVIL, answer),))


def test_nothing_said_can_act(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tag, no foreign link and no Markdown comes out of a conversation; commands stay whole."""
    monkeypatch.setattr(context, "_chat", Hostile)
    page = open_page("chat", c="x")
    shown = html_of(page)
    assert "<img" not in shown
    assert "javascript:" not in shown
    assert all(link.startswith("./") for link in re.findall(r'href="([^"]*)"', shown))
    for button in page.button:
        tokens = MarkdownIt("commonmark").parseInline(button.label)
        kinds = {child.type for token in tokens for child in token.children or []}
        assert kinds <= {"text", "text_special"}
    assert codes_of(page) == [EVIL, EVIL]


# --- how it is said ----------------------------------------------------------------------------


def test_a_source_has_one_number() -> None:
    """Sources are numbered in the order they are met, the same one with the same number."""
    first = Statement(role="verdict", text="a", citations=(CAUSE, LINE))
    second = Statement(role="evidence", text="b", citations=(LINE, LINE))
    third = Statement(role="fix", text="c", citations=(replace(CAUSE, quote="other"),))
    statements = [first, second, third]
    numbers = chat_reply.number_sources(statements)
    assert [(source.kind, source.id, source.line) for source in numbers] == [
        ("cause", "rank-crash", 0),
        ("line", "", 3),
    ]
    shown = str(chat_reply.statements_html(statements, numbers))
    assert re.findall(r"\[([\d, ]+)\]", shown) == ["1, 2", "2", "1"]


def test_steps_are_one_list() -> None:
    """Steps that follow each other are numbered through; what stands between starts anew."""
    roles = (("step", "one"), ("step", "two"), ("note", "then"), ("step", "three"))
    statements = [Statement(role=role, text=text) for role, text in roles]
    shown = str(chat_reply.statements_html(statements, {}))
    assert re.findall(r"<ol.*?</ol>", shown) == [
        '<ol class="tk-list"><li>one</li><li>two</li></ol>',
        '<ol class="tk-list"><li>three</li></ol>',
    ]


def test_changes_show_before_and_after(real: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is told has an arrow; one that is not told stands in a table."""
    monkeypatch.setattr(context, "_service", lambda: real)
    monkeypatch.setattr(context, "language", lambda: "en")
    words = Words(real.knowledge.labels, "en")
    up = Change(cause="rank-crash", title="t", before=0.25, after=0.71)
    down = Change(cause="shm-limits", title="t", before=0.3, after=0.004)
    table = str(chat_reply.changes_html([up, down], words))
    assert "25% → <b>71%</b> ↑" in table
    assert "30% → <b>&lt;1%</b> ↓" in table
    told = Statement(role="change", text="it rose", citations=(CAUSE,))
    numbers = chat_reply.number_sources([told])
    assert "↑" in str(chat_reply.statements_html([told], numbers, [up]))


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("2", "2. they differ"), (" 1 ", "1. same"), ("9", "9"), ("2 ranks", "2 ranks")],
)
def test_the_number_of_an_option_is_spelt_out(asked: str, shown: str) -> None:
    """A bare number after a question reads as the option it chose."""
    options = (Option(number=1, text="same"), Option(number=2, text="they differ"))
    before = turn("log", reply(question=Question(check="c", text="?", options=options)))
    assert chat_reply.message_text([before, turn(asked, reply())], 1) == shown


def test_the_cause_judged_is_that_of_the_last_verdict() -> None:
    """Later replies without a verdict change nothing; without any there is nothing to judge."""
    verdict = reply(Statement(role="verdict", text="v", citations=(LINE, CAUSE)))
    note = reply(Statement(role="note", text="n"))
    assert chat_reply.judged_cause([turn("a", verdict), turn("b", note)]) == "rank-crash"
    assert chat_reply.judged_cause([turn("b", note)]) == ""


@pytest.mark.parametrize(
    ("message", "asked_for"),
    [("NCCL timeout\nline 2", "zh"), ("why does it hang?", None), ("为什么卡住", None), ("", "zh")],
    ids=["log", "english words", "chinese words", "files only"],
)
def test_the_language_of_a_first_message(
    message: str, asked_for: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log is in nobody's language, so the page's counts; words speak for themselves."""
    monkeypatch.setattr(chat, "language", lambda: "zh")
    assert chat.requested_language(message, None) == asked_for


def test_what_a_language_model_adds_comes_below_the_reply(
    real: Service,
    open_page: OpenPage,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    model: ChatServer,
) -> None:
    """The reply stands at once with a place for it; then that holds what it says, as letters."""
    gate = threading.Event()
    text = json.dumps({"causes": {"shm-limits": 0.9}, "ask": EVIL})
    model.answer = lambda _: text if gate.wait(20) else ""
    monkeypatch.setattr(real, "second_reader", second_reader(real, model, tmp_path))
    page = open_page("chat")
    page.chat_input[0].set_value(LOG).run()
    waiting = html_of(page)
    assert f"The language model tiny at {model.url} reads the redacted text" in waiting
    assert "Shared memory" not in waiting
    gate.set()
    (identifier,) = address_of(page)["c"]
    statements, deadline = 0, time.monotonic() + 120
    while statements < 3 and time.monotonic() < deadline:  # stored by the thread that waited
        statements = sum(
            statement.role in ("note", "hint", "change")
            for statement in Chat(real).conversation(identifier).turns[0].reply.statements
        )
        time.sleep(0.05)
    after = html_of(page.run())
    assert "reads the redacted text" not in after
    assert "Language model tiny-1: Shared memory" in after
    assert "It asks: &lt;img src=x onerror=alert(1)&gt;" in after
    assert "<img" not in after
