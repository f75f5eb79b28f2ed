"""Answers about the conversation: recap, outcome, other languages, what is not ours."""

from __future__ import annotations

import pytest

from kb.chat.endings import CONFIRM
from kb.chat.types import IncidentOutcome
from kb.service import Service
from tests.kb.chat.conftest import (
    OOM_LOG,
    TIMEOUT_LOG,
    CheckedChat,
    Talker,
    roles,
    texts,
)


def test_recap_lists_remarks_and_answers(talk: Talker) -> None:
    """“what did I tell you so far?” names what counts beside the log."""
    *_, reply = talk(
        TIMEOUT_LOG, "dmesg shows Xid 79 on node 2", "1", "what did I tell you so far?"
    )
    assert reply.intent == "recap"
    assert "dmesg shows Xid 79 on node 2" in texts(reply)
    assert len(reply.statements) == 3
    _, nothing = talk(TIMEOUT_LOG, "我都跟你说过什么")
    assert [item.role for item in nothing.statements] == ["note"]


@pytest.mark.parametrize("pasted", [True, False], ids=["with an incident", "without"])
def test_off_topic_gets_a_plain_no(talk: Talker, pasted: bool) -> None:
    """Nothing of ours is named, nothing is invented."""
    reply = talk(*([OOM_LOG] if pasted else []), "写一首诗")[-1]
    assert reply.intent == "off_topic"
    assert roles(reply) == {"note"}
    assert [c for s in reply.statements for c in s.citations] == []
    assert len(reply.statements) == 1


@pytest.mark.parametrize("asked", ["in german please", "用日语回答"])
def test_other_languages_are_declined(talk: Talker, asked: str) -> None:
    """It says which two there are, in the one spoken."""
    _, reply = talk(OOM_LOG, asked)
    assert reply.intent == "language"
    assert ("Chinese and English" in texts(reply)) or ("中文和英文" in texts(reply))


@pytest.mark.parametrize(
    ("message", "focus"),
    [
        ("that was it", "rank-crash"),
        ("解决了，谢谢", "rank-crash"),
        ("不是这个，是共享内存", "shm-limits"),
        ("nope, it turned out to be a bad cable", "network-fault"),
    ],
)
def test_an_outcome_names_its_cause(
    talk: Talker, service: Service, message: str, focus: str
) -> None:
    """It is asked whether that cause is to be kept, and only a yes tells a face to keep it."""
    _, reply, kept = talk(OOM_LOG, message, "yes")
    assert reply.intent == "outcome"
    assert (reply.outcome, reply.diagnosis) == (None, None)
    assert reply.question is not None
    assert reply.question.check == CONFIRM
    title = service.knowledge.cause_by_id[focus].title
    assert title.get(reply.language) in reply.question.text
    right = focus == "rank-crash"
    assert kept.outcome == IncidentOutcome(
        verdict="right" if right else "wrong", cause="rank-crash", actual=focus
    )


@pytest.mark.parametrize("answer", ["no", "2", "不用记"])
def test_nothing_is_kept_without_a_yes(talk: Talker, chat: CheckedChat, answer: str) -> None:
    """A no leaves the incident as it was, and it is not asked again."""
    first, _, reply, later = talk(OOM_LOG, "that was it", answer, "how sure are you?")
    assert (reply.outcome, reply.question, later.question) == (None, None, None)
    assert chat.conversation(first.conversation).endings == ()


def test_a_yes_may_say_more(talk: Talker) -> None:
    """“yes, keep it. Though …” is one."""
    *_, kept = talk(OOM_LOG, "that was it", "yes, keep it. though I wonder why it began on Monday")
    assert kept.outcome is not None


def test_an_outcome_without_a_cause_is_open(talk: Talker) -> None:
    """“that was not it” goes on to the next cause; without an incident nothing is known."""
    first, reply = talk(OOM_LOG, "that was not it")
    assert reply.outcome is None
    assert first.diagnosis is not None
    (change,) = [item for item in reply.changes if item.cause == first.diagnosis.causes[0].id]
    assert change.after < change.before
    (nothing,) = talk("解决了，谢谢")
    assert nothing.outcome is None
