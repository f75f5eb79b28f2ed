"""How far messages say the incident is: solved, tried and awaited, in vain; and what follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kb.chat.acts import PROGRESSES
from kb.chat.endings import CONFIRM
from kb.chat.types import Reply
from kb.train.messages import PROGRESS, read_progress
from tests.kb.train.examples import TIMEOUT_LOG

Talker = Callable[..., Sequence[Reply]]


def told(reply: Reply) -> str:
    """All that a reply says."""
    return "\n".join(f"{line.text}\n{line.command}" for line in reply.statements)


def test_each_progress_has_messages_in_both_languages(data_dir: Path) -> None:
    """None stands twice."""
    written = read_progress(data_dir / PROGRESS)
    for progress in PROGRESSES:
        texts = [one.text for one in written if one.progress == progress]
        chinese = sum(any("\u4e00" <= char <= "\u9fff" for char in text) for text in texts)
        assert 50 <= chinese <= len(texts) - 50, progress
    assert len({one.text.casefold() for one in written}) == len(written)


@pytest.mark.parametrize(
    "message",
    [
        "The reseated card has been fine for three nights of training, nobody stopped.",
        "Two full runs since I took the condition out, both ended normally. cheers",
        "把网卡写死之后连着跑了三天，一次都没再断",
        "昨晚的任务整个跑完了，模型也存了，谢谢",
    ],
)
def test_who_says_that_it_works_is_asked_what_it_was(talk: Talker, message: str) -> None:
    """In words nobody listed."""
    reply = talk(TIMEOUT_LOG, message)[-1]
    assert reply.question is not None
    assert reply.question.check == CONFIRM


@pytest.mark.parametrize(
    "message",
    [
        "I put drop_last in on every rank and started it again, we will know in the morning.",
        "Switched the variable on, the job is queued at the moment",
        "每个 rank 都加上了 drop_last，刚重新提交，明早看结果",
        "变量加上了，任务还在排队",
    ],
)
def test_a_run_that_is_not_over_solves_nothing(talk: Talker, message: str) -> None:
    """The outcome is asked for, no end is offered, and what was done is no evidence."""
    reply = talk(TIMEOUT_LOG, message)[-1]
    assert reply.question is None or reply.question.check != CONFIRM
    assert any(word in told(reply) for word in ("tell me when it is through", "跑完告诉我"))
    assert not reply.changes


@pytest.mark.parametrize(
    "message",
    ["tried it with half of the nodes, hangs too", "P2P 关了也一样，还是老地方停"],
)
def test_what_was_tried_in_vain_solves_nothing(talk: Talker, message: str) -> None:
    """Nobody is asked whether it was that."""
    reply = talk(TIMEOUT_LOG, message)[-1]
    assert reply.question is None or reply.question.check != CONFIRM
