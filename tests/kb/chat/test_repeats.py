"""Nothing is said twice in a conversation, and no advice is for another stack."""

from __future__ import annotations

from collections import Counter

import pytest

from kb.chat.repeats import SHORT, ShownTexts, start_of
from kb.chat.types import Citation, Reply, Statement, Turn
from kb.knowledge.framework_names import framework_names
from kb.service import Service
from tests.kb.chat.conftest import OOM_LOG, TIMEOUT_LOG, Talker, texts

DIALOGUES = {
    "the same questions over and over": [
        TIMEOUT_LOG,
        *("why?", "how do I fix it?", "what next?", "how sure are you?", "any similar cases?"),
        *("why?", "how do I fix it?", "what next?", "how sure are you?", "any similar cases?"),
        *("what should I do, in which order?", "which command now?", "why do you say so?"),
    ],
    "中文，一问再问": [
        OOM_LOG,
        *("为什么？", "怎么解决？", "下一步跑什么命令？", "有多大把握？", "有类似案例吗？"),
        *("重启有用吗？", "为什么？", "怎么解决？", "下一步跑什么命令？", "重启有用吗？"),
        *("第二个原因是什么？", "为什么不是网络？", "为什么不是网络？", "先做什么？"),
    ],
    "facts between": [
        TIMEOUT_LOG,
        *("we save checkpoints to NFS and rank 0 takes half an hour", "why?", "how do I fix it?"),
        *("all nodes have the same driver", "all nodes have the same image", "what next?"),
        *("does a restart help?", "how do I fix it?", "what does SeqNum mean?"),
        *("what does SeqNum mean?", "does a restart help?", "what next?", "what next?"),
    ],
}
STACKS = {
    "DeepSpeed": ("it is DeepSpeed ZeRO-2 on Slurm, started with srun", {"fsdp", "megatron"}),
    "Megatron": ("this is Megatron-LM pretraining on Slurm", {"fsdp", "deepspeed"}),
    "vLLM": ("it is a vLLM server with tensor parallel 4 on kubernetes", {"deepspeed", "verl"}),
}
QUESTIONS = ("how do I fix it?", "what next?", "what should I do, in which order?", "what next?")
DOING = ("fix", "step", "check")


def repeats(replies: list[Reply]) -> list[str]:
    """Long lines of several replies but those that point at an earlier one.

    A title may stand again above steps that are new.
    """
    lines = Counter(
        text
        for reply in replies
        for text in {item.text for item in reply.statements if item.role not in ("note", "fix")}
        if len(text) > SHORT and not text.startswith(("As said above", "上面已经说过"))
    )
    return [text for text, count in lines.items() if count > 1]


@pytest.mark.parametrize("messages", DIALOGUES.values(), ids=DIALOGUES)
def test_no_line_and_no_check_comes_twice(talk: Talker, messages: list[str]) -> None:
    """Who asks again is pointed at what was said, or gets the next best step."""
    replies = talk(*messages)
    assert repeats(replies) == []
    checks = [reply.question.check for reply in replies if reply.question]
    assert len(checks) == len(set(checks))
    assert all(reply.statements for reply in replies)
    commands = Counter(item.command for reply in replies for item in reply.statements)
    del commands[""]
    assert [command for command, count in commands.items() if count > 2] == []


def test_who_asks_again_is_pointed_at_the_answer(talk: Talker) -> None:
    """In one line that begins as the earlier one did."""
    _, first, again = talk(TIMEOUT_LOG, "does a restart help?", "does a restart help?")
    (line,) = again.statements
    assert line.text == f"As said above: {start_of(first.statements[0].text)}."
    assert len(again.statements[0].text) < 120


def test_the_next_fix_follows_the_first(talk: Talker) -> None:
    """Asked again, the fix whose steps nobody has told yet."""
    _, first, again = talk(OOM_LOG, "how do I fix it?", "how do I fix it?")
    one, other = (
        next(item.text for item in reply.statements if item.role == "step")
        for reply in (first, again)
    )
    assert one != other
    assert one not in texts(again)


@pytest.mark.parametrize(("said", "others"), STACKS.values(), ids=STACKS)
def test_nothing_to_do_is_for_another_stack(
    talk: Talker, service: Service, said: str, others: set[str]
) -> None:
    """Once the framework is known, no step, fix or check names another one alone."""
    names = framework_names(service.knowledge.framework_names)
    uses = names.used(said)
    _, _, *replies = talk(TIMEOUT_LOG, said, *QUESTIONS)
    lines = [
        f"{item.text} {item.command}"
        for reply in replies
        for item in reply.statements
        if item.role in DOING
    ]
    assert lines
    wrong = [one for one in lines if names.named(one) & others and not names.named(one) & uses]
    assert wrong == []


def shown(*lines: Statement) -> ShownTexts:
    """What is known after a reply with these lines."""
    reply = Reply(conversation="c", number=1, intent="why", language="en", statements=lines)
    return ShownTexts([Turn(asked="why?", reply=reply, at_s=1.0)])


def line(text: str, quote: str, *, role: str = "evidence") -> Statement:
    """A line that cites a cause by a quote."""
    citation = Citation(kind="cause", id="rank-crash", quote=quote)
    return Statement(role=role, text=text, citations=(citation,))  # type: ignore[arg-type]


QUOTE = "a rank that died leaves the others waiting for it"


@pytest.mark.parametrize(
    ("said", "again", "holds"),
    [
        (line(QUOTE, QUOTE), line(QUOTE, QUOTE), True),
        (line(f"For it: {QUOTE}.", QUOTE), line(f"At line 1: {QUOTE}", QUOTE), True),
        (line(QUOTE, QUOTE), line(f"{QUOTE}, and {'more of it ' * 9}", QUOTE), False),
        (line(QUOTE, QUOTE), line(QUOTE.replace("died", "left"), QUOTE), False),
        (line("Short.", ""), line("Short.", ""), False),
        (
            line(f"A: {QUOTE}", QUOTE, role="verdict"),
            line(f"B: {QUOTE}", QUOTE, role="verdict"),
            False,
        ),
    ],
    ids=["same", "other lead", "much more", "other words", "short", "a verdict"],
)
def test_a_line_is_known_by_its_words_or_its_quote(
    said: Statement, again: Statement, holds: bool
) -> None:
    """A short line may come again, a long one around the same quote may not."""
    assert shown(said).holds(again) is holds
