"""Several incidents of one conversation: each keeps what was said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.chat.incidents import JUST_BEGUN, is_just_begun, with_earlier, with_incident
from kb.chat.types import Conversation, Reply, Turn
from kb.service import Service
from tests.kb.chat.conftest import TIMEOUT_LOG, CheckedChat, Talker, texts


def turned(conversation: Conversation, count: int) -> Conversation:
    """The conversation after so many turns."""
    reply = Reply(conversation="c", number=count, intent="tell", language="en", statements=())
    return replace(conversation, turns=(Turn(asked="", reply=reply, at_s=0.0),))


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


@pytest.fixture
def three(service: Service) -> Conversation:
    """A conversation about a third incident."""
    conversation = Conversation(id="c", created_s=0.0)
    for number, said in enumerate(("sglang hangs", "switch flaps", "disk full")):
        reading = service.read_text(said)
        conversation = with_incident(turned(conversation, number), reading)
    return conversation


def test_the_last_one_waits(three: Conversation) -> None:
    """A new incident has nothing of the one before it, which is kept whole."""
    assert [other.reading.words for other in three.others if other.reading] == [
        "sglang hangs",
        "switch flaps",
    ]
    assert three.began == 2
    assert all(other.turns == () and other.others == () for other in three.others)


@pytest.mark.parametrize(
    ("said", "place", "found"),
    [
        ("the sglang one", 0, "sglang hangs"),
        ("the flaps", 1, "switch flaps"),
        ("x", 2, "switch flaps"),
    ],
)
def test_back_by_words_or_by_place(three: Conversation, said: str, place: int, found: str) -> None:
    """Shared words tell which is meant, else its place by when it began."""
    back = with_earlier(three, said, words, place)
    assert back.reading is not None
    assert back.reading.words == found
    assert {other.reading.words for other in back.others if other.reading} == {
        "sglang hangs",
        "switch flaps",
        "disk full",
    } - {found}


def test_without_another_nothing_turns() -> None:
    """One incident alone stays the one spoken of."""
    alone = Conversation(id="c", created_s=0.0)
    assert with_earlier(alone, "the first", words, 1) is alone
    assert not is_just_begun(alone)


def test_a_new_one_is_new_for_some_turns(three: Conversation) -> None:
    """“That other job” means it for so many turns."""
    assert is_just_begun(turned(three, three.began + JUST_BEGUN))
    assert not is_just_begun(turned(three, three.began + JUST_BEGUN + 1))


def test_two_incidents_in_one_conversation(talk: Talker, chat: CheckedChat) -> None:
    """The second does not move the first, and the person can go back."""
    first, second, back = talk(
        TIMEOUT_LOG,
        "btw another job, unrelated: rank 3 got CUDA out of memory, the others timed out",
        "back to the first one: what is first in your list now?",
    )
    assert first.diagnosis is not None
    assert second.diagnosis is not None
    assert second.diagnosis.causes[0].id == "rank-crash"
    assert "separate incident" in texts(second)
    assert "back to the earlier incident" in texts(back)
    assert first.diagnosis.causes[0].title in texts(back)
    assert len(chat.conversation(first.conversation).others) == 1
