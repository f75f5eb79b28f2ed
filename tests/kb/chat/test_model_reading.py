"""A message read by a language model: what of it counts, and what reads where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.chat import model_reading
from kb.chat.acts import ACTS
from kb.chat.chat import Chat
from kb.chat.model_reading import MEANINGS
from kb.chat.types import Conversation, Reply
from kb.service import Service
from tests.kb.chat.conftest import TIMEOUT_LOG, CheckedChat
from tests.kb.second_reader.conftest import ChatServer, second_reader

PLAIN = "the fabric folks had a word with us"  # we hear nothing in it
Reads = Callable[..., None]


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """The model's server."""
    server = ChatServer()
    yield server
    server.close()


@pytest.fixture
def service(
    model: ChatServer, shipped: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Service:
    """The shipped knowledge with that model."""
    monkeypatch.setattr(shipped, "second_reader", second_reader(shipped, model, tmp_path))
    return shipped


@pytest.fixture
def chat(service: Service) -> CheckedChat:
    """A chat with it."""
    return CheckedChat(service)


@pytest.fixture
def reads(model: ChatServer) -> Reads:
    """Have the model read the next messages so."""

    def set_answer(**reading: Any) -> None:
        model.answer = lambda _: json.dumps({"acts": []} | reading)

    return set_answer


def begun(chat: Chat) -> Reply:
    """A conversation about a log with a timeout."""
    return chat.say(TIMEOUT_LOG, language="en")


def share_of(chat: Chat, conversation: str, cause: str) -> float:
    """A cause's probability now."""
    verdict = chat.verdict(conversation)
    assert verdict is not None
    return next(one.probability for one in verdict.ranking.causes if one.cause == cause)


def state_of(chat: Chat, reply: Reply) -> Conversation:
    """What is kept."""
    return chat.conversation(reply.conversation)


def test_every_act_is_explained_to_the_model() -> None:
    """An act without a meaning could not be chosen."""
    assert set(MEANINGS) == set(ACTS)


@pytest.mark.parametrize(
    ("polarity", "sign"), [("trouble", 1), ("in_order", -1), ("denied", -1), ("tried_in_vain", -1)]
)
def test_a_statement_counts_by_topic_and_polarity(
    chat: CheckedChat, reads: Reads, polarity: str, sign: int
) -> None:
    """Words no cue knows move the topic's causes the way the model reads them; they are quoted."""
    first = begun(chat)
    before = share_of(chat, first.conversation, "network-fault")
    statement = {"quote": PLAIN, "topic": "network", "polarity": polarity}
    reads(acts=["tell"], statements=[statement])
    reply = chat.say(PLAIN, conversation=first.conversation)
    moved = share_of(chat, first.conversation, "network-fault") - before
    assert reply.intent == "tell"
    assert moved * sign > 0
    assert state_of(chat, reply).remarks == (PLAIN,)


def test_words_with_a_cue_of_the_other_sign_count_as_they_were_read(
    chat: CheckedChat, reads: Reads
) -> None:
    """“Everybody blames packet loss, which we never had” is no packet loss."""
    said = "everybody here blames packet loss"
    first = begun(chat)
    before = share_of(chat, first.conversation, "network-fault")
    reads(acts=["tell"], statements=[{"quote": said, "topic": "network", "polarity": "denied"}])
    chat.say(said, conversation=first.conversation)
    assert share_of(chat, first.conversation, "network-fault") < before


def test_a_guess_is_no_statement(chat: CheckedChat, reads: Reads) -> None:
    """What the model reads as guessed or asked moves nothing; the question is answered."""
    first = begun(chat)
    said = "shared memory ran out, no?"
    reads(
        acts=["why"],
        statements=[{"quote": said, "topic": "shm", "polarity": "guessed"}],
        questions=[{"quote": said, "act": "why", "form": "yes_no", "causes": ["shm-limits"]}],
    )
    reply = chat.say(said, conversation=first.conversation)
    assert reply.changes == ()
    assert any(one.id == "shm-limits" for item in reply.statements for one in item.citations)
    assert state_of(chat, reply).remarks == ()


def test_an_option_answers_the_open_check(chat: CheckedChat, reads: Reads) -> None:
    """In words that no reader of ours takes for it."""
    first = begun(chat)
    assert first.question is not None
    reads(acts=["tell"], option=2)
    reply = chat.say("that second picture you paint, roughly", conversation=first.conversation)
    (result,) = state_of(chat, reply).check_results
    assert (result.check, result.outcome) == (first.question.check, 2)


def test_a_correction_takes_back_the_statement_it_means(chat: CheckedChat, reads: Reads) -> None:
    """The earlier words count no longer, the new ones do, and the reply quotes what went."""
    first = begun(chat)
    old, other = "rank 5 was killed by the kernel", "we save to NFS and it is slow"
    for said in (old, other):
        reads(acts=["tell"], statements=[{"quote": said, "topic": "", "polarity": "trouble"}])
        chat.say(said, conversation=first.conversation)
    new = "wrong box in my head, it went to sleep"
    reads(
        acts=["retract", "tell"],
        statements=[{"quote": "it went to sleep", "topic": "", "polarity": "trouble"}],
        takes_back=[1],
    )
    reply = chat.say(new, conversation=first.conversation)
    assert state_of(chat, reply).remarks == (other, "it went to sleep")
    assert any(old in item.text for item in reply.statements)


def test_a_question_before_any_incident_opens_none(chat: CheckedChat, reads: Reads) -> None:
    """A report read as a question is answered, and no incident is made of it."""
    said = "NCCL timeout on rank 3, what is the watchdog"
    reads(acts=["how_to"], questions=[{"quote": said, "act": "how_to", "form": "meaning"}])
    reply = chat.say(said)
    assert reply.intent == "how_to"
    assert state_of(chat, reply).reading is None


@pytest.mark.parametrize("failure", ["status", "nonsense", "unknown ids", "no reader"])
def test_the_fitted_reader_reads_where_the_model_does_not(
    chat: CheckedChat, model: ChatServer, service: Service, failure: str
) -> None:
    """The reply is the one without a model."""
    first = begun(chat)
    if failure == "status":
        model.status = 503
    elif failure == "no reader":
        service.second_reader = None
    answer = {"nonsense": "sure thing", "unknown ids": '{"acts": ["dance"], "option": 99}'}
    model.answer = lambda _: answer.get(failure, "{}")
    assert chat.say("why?", conversation=first.conversation).intent == "why"


def test_who_is_slow_is_not_waited_for_twice(
    chat: CheckedChat, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one message that was not read in time the next ones are read without the model."""
    monkeypatch.setattr(model_reading, "WAIT_S", 0.05)
    first = begun(chat)
    model.delay_s = 1.0
    asked = [
        chat.say(text, conversation=first.conversation).intent for text in ("why?", "how sure?")
    ]
    assert asked == ["why", "sure"]
    assert len(model.questions) == 1


def test_secrets_and_logs_are_not_sent(chat: CheckedChat, model: ChatServer, reads: Reads) -> None:
    """A paste is read without the model; of a message the redacted words are sent."""
    first = begun(chat)
    assert model.questions == []
    reads(acts=["courtesy"])
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
    chat.say(f"thanks, my token is {token}", conversation=first.conversation)
    (question,) = model.questions
    sent = json.dumps(question)
    assert "my token is" in sent
    assert token not in sent
