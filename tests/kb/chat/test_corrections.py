"""Corrections and retractions: the sentence that is meant goes, and the reply says so."""

from __future__ import annotations

import pytest

from kb.chat.chat import open_intents
from kb.chat.corrections import Correction, CorrectionReader, numbers_in
from kb.service import Service
from tests.kb.chat.conftest import TIMEOUT_LOG, CheckedChat, Talker, texts

KILLED = "rank 5 was killed by the oom killer."
DROPPED = "the switch dropped packets last night."
SAVES = "we save checkpoints to NFS and that is slow."
FROZEN = "the whole job was frozen on node 2."
ZH_SAVES = "存储挂载很慢，写 checkpoint 要半小时。"
ZH_LOST = "3 号卡掉了。"
ZH_DROPPED = "交换机昨晚丢包。"
ALL = (KILLED, DROPPED, SAVES, FROZEN)
ZH = (ZH_SAVES, ZH_LOST, ZH_DROPPED)


@pytest.fixture(scope="module")
def reader(service: Service) -> CorrectionReader:
    """The reader with the shipped words."""
    intents = open_intents(service.settings.data, service.knowledge)
    return CorrectionReader(intents.phrases, service.engine.topics_in, intents.key_words)


@pytest.mark.parametrize(
    ("text", "told", "old", "new"),
    [
        ("no, I meant rank 3", ALL, KILLED, KILLED.replace("5", "3")),
        ("sorry, rank 3", ALL, KILLED, KILLED.replace("5", "3")),
        ("my mistake, node 7", ALL, FROZEN, FROZEN.replace("2", "7")),
        ("sorry, node 7, not 2", ALL, FROZEN, FROZEN.replace("2", "7")),
        ("actually it was not frozen", ALL, FROZEN, ""),
        ("it is not the network, it is the storage", ALL, DROPPED, ""),
        ("wait, we save to local NVMe, not NFS", ALL, SAVES, ""),
        ("说错了，是 5 号卡", ZH, ZH_LOST, ZH_LOST.replace("3", "5")),
        ("我是说 5 号卡", ZH, ZH_LOST, ZH_LOST.replace("3", "5")),
        ("不是存储，是网络", ZH, ZH_SAVES, ""),
        ("其实交换机没有丢包", ZH, ZH_DROPPED, ""),
    ],
)
def test_a_correction_finds_its_sentence(
    reader: CorrectionReader, text: str, told: tuple[str, ...], old: str, new: str
) -> None:
    """By a number of the same thing, by what is denied, by what it speaks of."""
    assert reader.read(text, told) == Correction(old=old, new=new or text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rank 3 was killed", ALL),
        ("actually rank 3 was killed too", ALL),
        ("did I mean rank 3?", ALL),
        ("no, I meant rank 3", ()),
        ("其实 5 号卡也掉了", ZH),
        ("sorry, I was at lunch", ALL),
        ("actually epoch 3 looks odd", ALL),
    ],
)
def test_what_adds_asks_or_tells_puts_nothing_right(
    reader: CorrectionReader, text: str, told: tuple[str, ...]
) -> None:
    """It is read like any other message."""
    assert reader.read(text, told) is None


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("rank 3 and node 12", {"rank": "3", "node": "12"}),
        ("the driver is 550.54.14", {"driver": "550.54.14"}),
        ("5 号卡", {"号卡": "5"}),
        ("it hangs", {}),
    ],
)
def test_numbers_are_of_things(text: str, numbers: dict[str, str]) -> None:
    """Each by the word for what it counts."""
    assert numbers_in(text) == numbers


@pytest.mark.parametrize(
    ("told", "said", "left"),
    [
        (f"{KILLED} {SAVES}", "no, I meant rank 3", (SAVES, KILLED.replace("5", "3"))),
        (f"{DROPPED} {KILLED}", "forget what I said about the network", (KILLED,)),
        (f"{ZH_DROPPED} {KILLED}", "网络那句不算", (KILLED,)),
        (f"{ZH_SAVES} {KILLED}", "不是存储，是网络", (KILLED, "不是存储，是网络")),
    ],
)
def test_the_other_sentences_of_a_message_stay(
    talk: Talker, chat: CheckedChat, told: str, said: str, left: tuple[str, ...]
) -> None:
    """Only the sentence that is meant counts no longer; the reply quotes it."""
    *_, reply = talk(TIMEOUT_LOG, told, said)
    assert chat.conversation(reply.conversation).remarks == left
    gone = next(
        one for one in (KILLED, DROPPED, ZH_DROPPED, ZH_SAVES) if one in told and one not in left
    )
    assert gone.rstrip(".。") in texts(reply)
    assert reply.intent == "tell"


def test_a_description_is_put_right_too(talk: Talker, chat: CheckedChat) -> None:
    """What began the incident is a statement like any other; the ranking moves by it."""
    first, reply = talk(
        "Training hangs on 4 nodes with DDP. The switch drops packets on every run.",
        "actually the switch does not drop packets",
    )
    kept = chat.conversation(reply.conversation)
    assert kept.remarks == ("actually the switch does not drop packets",)
    assert kept.reading is not None
    assert kept.reading.words.strip() == "Training hangs on 4 nodes with DDP."
    assert first.diagnosis is not None
    assert any(one.cause == "network-fault" and one.after < one.before for one in reply.changes)
