"""Questions, denials, corrections and places in a list: what each is taken for.

The messages of intents.yaml were written before the patterns met them, a third of the first lot
kept aside while the patterns were mended: of its 28 questions 3 had been taken right, all 28 were
after. Of 54 more, met only then, 6 still counted as evidence at first sight: expect that of new
words.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import yaml

from kb.chat.chat import open_intents
from kb.chat.checks import find_check
from kb.chat.intents import IntentReader
from kb.chat.meaning import Meaning, Situation
from kb.chat.sentences import message_language
from kb.chat.types import Intent
from kb.service import Service
from tests.kb.chat.conftest import OOM_LOG, TIMEOUT_LOG, CheckedChat

HERE = Path(__file__).parent
SENTENCES: dict[str, list[str]] = yaml.safe_load(
    (HERE / "intents.yaml").read_text(encoding="utf-8")
)
CHECK = "collective-mismatch/tiny-eval"  # of two outcomes; its question is open
QUESTIONS = {
    "question_why": {"why"},
    "question_happened": {"happened"},
    "question_next": {"next"},
    "second": {"cause", "why"},
    "third": {"cause", "why"},
    "off_topic": {"off_topic"},
    "language": {"language"},
    "recap": {"recap"},
}
PLACES = {"second": 2, "third": 3}
# At first sight the model read 32 of 49, 15 of 17, 10 of 10, 55 of 58, 7 of 7, 15 of 24, 16 of 19,
# 15 of 15 of the questions, 62 of 70, 45 of 60, 37 of 62 and 21 of 24 of the rest; most of them are
# among its messages since. Of new ones expect what `python -m kb.train.messages --folds 4` prints.
LEAST = dict.fromkeys([*QUESTIONS, "question_open", "statement", "denial", "retract"], 0.95)
LEAST |= {"language": 0.8, "retract": 0.8}
MESSAGES = yaml.safe_load((HERE / "messages.yaml").read_text(encoding="utf-8"))
# The messages were written in three lots, each before the patterns had met it. At first sight 71 of
# 99, then 40 of 50, then 35 of 42 were right: expect five in six of words nobody tuned for. The
# patterns were mended after each lot, so that all of them should be right by now.
MIN_RIGHT = 0.85


@pytest.fixture(scope="module")
def intents(service: Service) -> IntentReader:
    """Understands with the shipped phrasebook."""
    return open_intents(service.settings.data, service.knowledge)


@pytest.fixture(scope="module")
def situation(service: Service) -> Situation:
    """Right after a log: an incident, and a question with options."""
    check = find_check(service.knowledge, CHECK)
    assert check is not None
    return Situation(has_incident=True, open_checks=(check,), just_asked=True, has_evidence=True)


def of(*names: str) -> list[str]:
    """The messages of those groups."""
    return [text for name in names for text in SENTENCES[name]]


def is_quiet(meaning: Meaning) -> bool:
    """Whether nothing was taken for evidence."""
    return not meaning.remark and meaning.check_result is None and not meaning.retraction


def is_question_of(group: str, meaning: Meaning) -> bool:
    """Whether it is read as what the group asks: of a cause, a place, what happened."""
    if not is_quiet(meaning) or not meaning.requests:
        return False
    request = meaning.requests[0]
    if group == "question_open":
        return True
    place = PLACES.get(group, request.ordinal)
    return request.intent in QUESTIONS[group] and request.ordinal == place


def is_remark(text: str, meaning: Meaning) -> bool:
    """Whether a statement is evidence to be weighed, also one that says what is in order."""
    return meaning.check_result is not None or (
        meaning.remark == text and not meaning.retraction and not meaning.requests
    )


@pytest.mark.parametrize("group", sorted(LEAST))
def test_most_of_a_group_is_read_rightly(
    intents: IntentReader, situation: Situation, group: str
) -> None:
    """The share of each group's messages that is read as what they are."""
    if group == "off_topic":  # no cue of the engine speaks of the weather
        situation = replace(situation, has_evidence=False)
    wrong = []
    for text in SENTENCES[group]:
        meaning = intents.read(text, situation)
        if group in ("statement", "denial"):
            right = is_remark(text, meaning)
        elif group == "retract":
            right = bool(meaning.retraction) and not meaning.requests
        else:
            right = is_question_of(group, meaning)
        if not right:
            wrong.append(text)
    assert 1 - len(wrong) / len(SENTENCES[group]) >= LEAST[group], wrong


@pytest.mark.parametrize("text", SENTENCES["denial"])
def test_a_denial_names_its_cause(intents: IntentReader, text: str) -> None:
    """What is denied is known, so that the reply can say what would rule it out."""
    remark = intents.remark(text)
    assert remark.is_denial
    assert remark.causes != ()


@pytest.mark.parametrize("text", SENTENCES["choice"])
def test_a_bare_place_answers_what_was_just_asked(
    intents: IntentReader, situation: Situation, text: str
) -> None:
    """“2”, “the second one”, “第二个吧” right after a question with options is the second one."""
    answered = intents.read(text, situation).check_result
    assert answered is not None
    assert (answered.check, answered.outcome) == (CHECK, 2)


@pytest.mark.parametrize("text", ["the second one", "第二个吧"])
def test_a_bare_place_later_is_a_place_in_the_ranking(
    intents: IntentReader, situation: Situation, text: str
) -> None:
    """Once another answer stands between, the words mean the second cause."""
    later = Situation(has_incident=True, open_checks=situation.open_checks)
    (request,) = intents.read(text, later).requests
    assert (request.intent, request.ordinal) == ("cause", 2)


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("we use InfiniBand here, could it be that?", "we use InfiniBand here"),
        ("if the disk were full, would it hang like this?", ""),
        ("rank 3 crashed, right?", ""),
        ("用的是 IB 网络，会不会是它的问题？", "用的是 IB 网络"),
    ],
)
def test_what_a_question_states_first_is_a_remark(
    intents: IntentReader, situation: Situation, text: str, remark: str
) -> None:
    """A clause that states something before the question counts; one that is asked does not."""
    assert intents.read(text, situation).remark == remark


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("我说错了，是万兆以太网，不是 IB", "是万兆以太网, 不是 IB"),
        ("forget that, it is Ethernet", "it is Ethernet"),
        ("forget what I said about the disk", ""),
    ],
)
def test_a_correction_tells_what_is_true(
    intents: IntentReader, situation: Situation, text: str, remark: str
) -> None:
    """What stands beside the taking back is told in its place."""
    assert intents.read(text, situation).remark == remark


def wrong(chat: CheckedChat, messages: list[dict[str, object]]) -> list[str]:
    """The messages taken for something else, with what they were taken for."""
    found = []
    for item in messages:
        conversation = chat.say(TIMEOUT_LOG).conversation if item["had_incident"] else ""
        got = chat.say(str(item["text"]), conversation=conversation).intent
        if got != item["intent"]:
            found.append(f"{item['text']!r} is {item['intent']}, taken for {got}")
    return found


def test_messages_are_well_formed() -> None:
    """Each has its three fields, and every intent but a pasted log occurs."""
    for item in MESSAGES:
        assert set(item) == {"text", "had_incident", "intent"}
        assert item["intent"] in get_args(Intent)
    newer = {"log", "how_to", "impatient"}
    assert {item["intent"] for item in MESSAGES} == set(get_args(Intent)) - newer


def test_known_messages(chat: CheckedChat) -> None:
    """The messages the patterns were mended for are meaning."""
    missed = wrong(chat, MESSAGES)
    assert 1 - len(missed) / len(MESSAGES) >= MIN_RIGHT, missed


@pytest.mark.parametrize(
    ("own", "current", "language"),
    [
        ("训练卡住了", None, "zh"),
        ("NCCL_TIMEOUT 有用吗", "en", "zh"),
        ("why?", None, "en"),
        ("ok", "zh", "zh"),
        ("NCCL_TIMEOUT", "zh", "zh"),
        ("how do I fix this", "zh", "en"),
        ("2", "zh", "zh"),
        ("", None, None),
    ],
)
def test_language_of_words(own: str, current: str | None, language: str | None) -> None:
    """Chinese words are answered in Chinese; two English words do not turn a conversation."""
    assert message_language(own, current) == language  # type: ignore[arg-type]


def test_language_of_a_paste(chat: CheckedChat) -> None:
    """A sentence above a log tells the language, an order in it does not."""
    assert chat.say(OOM_LOG).language == "en"
    assert chat.say(f"多机训练启动之后一直卡住，没有报错，求助\n{OOM_LOG}").language == "zh"
    assert chat.say(f"{OOM_LOG}用中文说\n").language == "en"
    assert chat.say(OOM_LOG, language="zh").language == "zh"
