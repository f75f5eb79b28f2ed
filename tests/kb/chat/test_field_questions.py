"""A question of the field is no incident, and an incident that asks something is one."""

from __future__ import annotations

import pytest

from kb.chat.chat import open_intents
from kb.chat.field_questions import FieldQuestions
from kb.chat.meaning import Meaning, UserRequest
from kb.service import Service
from tests.kb.chat.conftest import CheckedChat

QUESTIONS = {
    "an error code": "what is the difference between EI0002 and EI0006, which timeout is which?",
    "one's own numbers": (
        "We set --ddp_timeout 7200 for the Trainer. Is ddp_timeout in seconds or milliseconds?"
    ),
    "a message of a program": "心跳监视报 Heartbeat monitor timed out，这和看门狗超时是一回事吗？",
}
REPORTS = {
    "asks for the fix": "训练卡住了，NCCL 超时，怎么办？",
    "asks where to start": "Training on 2 GPUs with DDP hangs at epoch 0. Any idea?",
    "asks nothing": "vLLM on 4 cards hangs while loading the model, no output for an hour",
}


@pytest.fixture(scope="module")
def questions(service: Service) -> FieldQuestions:
    """Reads with the shipped notes and phrases."""
    return FieldQuestions(service, open_intents(service.settings.data, service.knowledge))


@pytest.mark.parametrize("text", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_is_answered_by_a_note(questions: FieldQuestions, text: str) -> None:
    """It opens no incident, whatever trouble it names."""
    meaning = questions.meaning(text, Meaning(remark=text))
    assert questions.is_question(text)
    assert meaning.remark == ""
    assert [request.intent for request in meaning.requests] == ["how_to"]


@pytest.mark.parametrize("text", REPORTS.values(), ids=REPORTS)
def test_a_report_stays_an_incident(questions: FieldQuestions, text: str) -> None:
    """What asks for no more than the way out of one's own trouble is no question of the field."""
    assert not questions.is_question(text)
    assert questions.meaning(text, Meaning(remark=text)).remark == text


def test_an_order_is_left_alone(questions: FieldQuestions) -> None:
    """A message that begins another job is no question, whatever it names."""
    told = Meaning(job="new", requests=(UserRequest(intent="log"),))
    assert questions.meaning(QUESTIONS["an error code"], told) == told


def test_what_nothing_answers_is_said_to_be_that(questions: FieldQuestions) -> None:
    """A long question that names nothing of the field has no source here."""
    text = "which of the two frameworks gives the better answers for our customer support texts?"
    asked = Meaning(requests=(UserRequest(intent="why", text=text),))
    (request,) = questions.meaning(text, asked).requests
    assert (request.intent, request.unanswerable) == ("unclear", True)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("为什么 MoE 模型用 zero3 才会卡死，zero2 就没事？", "how_to"),
        ("lora 训完了 输出还是和原来模型一模一样 咋回事", "unclear"),
        ("why does FSDP hang with a frozen vision tower when DDP does not?", ""),
    ],
)
def test_a_question_alone_opens_no_incident(chat: CheckedChat, text: str, intent: str) -> None:
    """It is answered from the cases, or with one honest line."""
    reply = chat.say(text)
    assert chat.conversation(reply.conversation).reading is None
    assert len(reply.statements) <= 3
    assert intent in ("", reply.intent)
    is_honest = [item.role for item in reply.statements] == ["note"]
    assert is_honest or any(item.citations for item in reply.statements)
