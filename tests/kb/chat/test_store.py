"""ConversationStore are kept: over restarts, between threads, within bounds, until they expire."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kb.bootstrap import open_service
from kb.chat.store import DAY_S, MAX_REMARKS, MAX_TURNS, ConversationStore
from kb.chat.types import Reply
from kb.errors import InputError, NotFoundError
from kb.service import Service
from kb.types.incident import LogReading
from tests.kb.chat.conftest import OOM_LOG, TIMEOUT_LOG, CheckedChat, Clock

THREADS = 8


def test_a_conversation_survives_a_restart(service: Service, clock: Clock) -> None:
    """Another service on the same folder goes on where the first stopped."""
    reply = CheckedChat(service, clock=clock).say(OOM_LOG)
    opened = open_service(service.settings)
    try:
        after = CheckedChat(opened, clock=clock).say("why?", conversation=reply.conversation)
    finally:
        opened.close()
    assert after.number == 2
    assert after.intent == "why"
    assert "out of memory" in " ".join(statement.text for statement in after.statements)


def test_ids_cannot_be_guessed(chat: CheckedChat) -> None:
    """New conversations get long ids of their own."""
    ids = {chat.say("hello").conversation for _ in range(20)}
    assert len(ids) == 20
    assert min(map(len, ids)) >= 20


def test_an_unknown_id_is_an_error_unless_created(chat: CheckedChat) -> None:
    """A face that has ids of its own creates by them; anything else is told."""
    with pytest.raises(NotFoundError, match="nobody"):
        chat.say("hello", conversation="nobody")
    with pytest.raises(NotFoundError):
        chat.conversation("nobody")
    first = chat.say(OOM_LOG, conversation="slack:T1:C1:169.1", create=True)
    second = chat.say("why?", conversation="slack:T1:C1:169.1", create=True)
    assert first.conversation == second.conversation == "slack:T1:C1:169.1"
    assert second.number == 2


@pytest.mark.parametrize("identifier", ["x" * 201, "a\nb", "a\x00b"])
def test_ids_that_cannot_be_kept_are_refused(chat: CheckedChat, identifier: str) -> None:
    """An id is short and printable."""
    with pytest.raises(InputError, match="conversation id"):
        chat.say("hello", conversation=identifier, create=True)


def test_it_expires_after_the_last_message(
    service: Service, chat: CheckedChat, clock: Clock
) -> None:
    """A message renews the time; after it has run out the conversation is gone."""
    days = service.settings.chat_days
    reply = chat.say(OOM_LOG)
    clock.now_s += (days - 1) * DAY_S
    chat.say("why?", conversation=reply.conversation)
    clock.now_s += (days - 1) * DAY_S
    assert chat.say("why?", conversation=reply.conversation).number == 3
    clock.now_s += (days + 1) * DAY_S
    with pytest.raises(NotFoundError):
        chat.say("why?", conversation=reply.conversation)


def test_what_expired_is_deleted_now_and_then(service: Service, clock: Clock) -> None:
    """Old conversations leave the store without anybody asking for them."""
    clock.now_s += 100 * 365 * DAY_S  # past everything other tests keep
    chat = CheckedChat(service, clock=clock)
    old = chat.say("hello").conversation
    clock.now_s += (service.settings.chat_days + 1) * DAY_S
    new = chat.say("hello").conversation
    for _ in range(60):
        chat.say("thanks", conversation=new)
    with pytest.raises(NotFoundError):
        service.store.records.get_conversation(old, now_s=0.0)


def test_forgetting(chat: CheckedChat) -> None:
    """What is forgotten is gone; forgetting again says so."""
    reply = chat.say(OOM_LOG)
    assert chat.forget(reply.conversation)
    assert not chat.forget(reply.conversation)
    with pytest.raises(NotFoundError):
        chat.conversation(reply.conversation)


def test_forgotten_while_a_message_is_read(
    service: Service, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn under way does not bring a deleted conversation back, whichever face asked."""
    chat = CheckedChat(service, clock=clock)
    name = "slack:T4:C4:1.0"
    chat.say(OOM_LOG, conversation=name, create=True)
    read = service.read_text

    def forgotten_meanwhile(text: str) -> LogReading:
        assert chat.forget(name)
        return read(text)

    monkeypatch.setattr(service, "read_text", forgotten_meanwhile)
    with pytest.raises(NotFoundError):
        chat.say("why?", conversation=name, create=True)
    with pytest.raises(NotFoundError):
        chat.conversation(name)


def test_an_id_created_again_is_another_conversation(chat: CheckedChat, clock: Clock) -> None:
    """What was known under a forgotten id plays no part when a face uses the id again."""
    name = "slack:T3:C3:1.0"
    chat.say("你好", conversation=name, create=True)
    chat.say(OOM_LOG, conversation=name, language="zh")
    assert chat.forget(name)
    clock.now_s += 1
    chat.say("hello", conversation=name, create=True)
    first = chat.say(TIMEOUT_LOG, conversation=name, language="en")
    reply = chat.say("走的 RoCE，两台机器", conversation=name)
    assert first.diagnosis is not None
    before = {cause.id: cause.probability for cause in first.diagnosis.causes}
    assert reply.language == "zh"
    assert [change.before for change in reply.changes if change.cause in before] == [
        before[change.cause] for change in reply.changes if change.cause in before
    ]
    assert max(change.before for change in reply.changes) <= max(before.values())


def test_threads_lose_no_turn(chat: CheckedChat) -> None:
    """Messages said at once all become turns of their own, numbered without a gap."""
    conversation = chat.say(TIMEOUT_LOG).conversation
    together = threading.Barrier(THREADS)

    def say(number: int) -> Reply:
        together.wait()
        return chat.say(f"we see it on node{number} over RoCE", conversation=conversation)

    with ThreadPoolExecutor(THREADS) as pool:
        replies = list(pool.map(say, range(THREADS)))
    kept = chat.conversation(conversation)
    assert sorted(reply.number for reply in replies) == list(range(2, THREADS + 2))
    assert [turn.reply.number for turn in kept.turns] == list(range(1, THREADS + 2))
    assert len(kept.remarks) == THREADS


def test_two_programs_on_one_home_lose_no_turn(
    service: Service, chat: CheckedChat, clock: Clock
) -> None:
    """The page and the API each have a chat of their own; both go on with one conversation."""
    conversation = chat.say(TIMEOUT_LOG).conversation
    opened = open_service(service.settings)
    other = CheckedChat(opened, clock=clock)
    together = threading.Barrier(THREADS)

    def say(number: int) -> Reply:
        together.wait()
        talk = chat if number % 2 else other
        return talk.say(f"we see it on node{number} over RoCE", conversation=conversation)

    try:
        with ThreadPoolExecutor(THREADS) as pool:
            replies = list(pool.map(say, range(THREADS)))
    finally:
        opened.close()
    assert sorted(reply.number for reply in replies) == list(range(2, THREADS + 2))
    assert len(chat.conversation(conversation).turns) == THREADS + 1


def test_creating_at_once_makes_one_conversation(chat: CheckedChat) -> None:
    """Two first messages with one id are two turns of one conversation."""
    together = threading.Barrier(2)

    def say(text: str) -> Reply:
        together.wait()
        return chat.say(text, conversation="slack:T2:C2:1.2", create=True)

    with ThreadPoolExecutor(2) as pool:
        numbers = sorted(reply.number for reply in pool.map(say, ["hello", "thanks"]))
    assert numbers == [1, 2]


def test_sizes_are_bounded(chat: CheckedChat, service: Service) -> None:
    """Turns, remarks and stored bytes stop growing, whatever is said; numbers go on."""
    conversation = chat.say(TIMEOUT_LOG).conversation
    for number in range(MAX_TURNS + 5):
        reply = chat.say(f"node{number} has RoCE {'x' * 900}", conversation=conversation)
    kept = chat.conversation(conversation)
    assert len(kept.turns) == MAX_TURNS
    assert len(kept.remarks) == MAX_REMARKS
    assert reply.number == MAX_TURNS + 6
    record = service.store.records.get_conversation(conversation, now_s=0.0)
    assert len(record.body) < 600_000


def test_a_large_log_is_read_not_kept(chat: CheckedChat, service: Service) -> None:
    """Of five megabytes only the reading and a short head are kept."""
    line = "2025-06-01 12:00:00 INFO step {n} loss 2.31 lr 0.0003 tokens 8192 node01 rank 0\n"
    log = "".join(line.format(n=number) for number in range(62_000)) + OOM_LOG
    assert len(log) > 5_000_000
    reply = chat.say(log)
    assert reply.diagnosis is not None
    assert reply.diagnosis.causes[0].id == "rank-crash"
    kept = chat.conversation(reply.conversation)
    assert len(kept.turns[0].asked) <= 400
    record = service.store.records.get_conversation(reply.conversation, now_s=0.0)
    assert len(record.body) < 300_000


@pytest.mark.parametrize("message", ["", "  \n ", "x" * 5])
def test_messages_that_cannot_be_read(chat: CheckedChat, message: str) -> None:
    """An empty message is an error and makes no conversation; a short one is answered."""
    if message.strip():
        assert chat.say(message).number == 1
        return
    with pytest.raises(InputError, match="empty"):
        chat.say(message)


def test_what_cannot_be_read_is_unknown(service: Service, clock: Clock) -> None:
    """A record that is no conversation is unknown, and made anew where that is asked for."""
    store = ConversationStore(service.store.records, lock=service.store.lock, days=30, clock=clock)
    service.store.records.put_conversation("bad", b"{", now_s=clock(), expires_s=clock() + 9)
    with pytest.raises(NotFoundError):
        store.load("bad")
    assert store.load("bad", create=True).turns == ()


def test_an_incident_read_elsewhere_opens_a_conversation(
    chat: CheckedChat, service: Service
) -> None:
    """A reading of files begins a conversation, or joins one as more evidence."""
    opened = chat.begin(service.read_text(TIMEOUT_LOG), language="zh")
    joined = chat.begin(service.read_text(OOM_LOG), conversation=opened.conversation)
    assert opened.language == joined.language == "zh"
    assert joined.number == 2
    assert joined.diagnosis is not None
    assert joined.diagnosis.causes[0].id == "rank-crash"
    assert "rank-crash" in [change.cause for change in joined.changes]
    with pytest.raises(NotFoundError):
        chat.begin(service.read_text(OOM_LOG), conversation="nobody")
