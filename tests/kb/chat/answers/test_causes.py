"""Answers about causes: why, why not, the second, fixes and commands."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.kb.chat.conftest import (
    OOM_LOG,
    TIMEOUT_LOG,
    CheckedChat,
    Talker,
    cited,
    roles,
    texts,
)


def test_why_names_evidence(talk: Talker) -> None:
    """“why?” rests on lines of the log."""
    _, reply = talk(OOM_LOG, "why?")
    lines = {c.line for s in reply.statements for c in s.citations if c.kind == "line"}
    assert reply.intent == "why"
    assert 1 in lines
    assert "out of memory" in texts(reply)


def test_why_not_compares_with_the_leading_cause(talk: Talker) -> None:
    """“why not the network?” tells both probabilities, and what is absent."""
    _, reply = talk(OOM_LOG, "why not the network?")
    verdict = reply.statements[0]
    assert cited(verdict, "cause")[0] in ("network-config", "network-fault")
    assert cited(verdict, "cause")[1] == "rank-crash"
    assert len(reply.statements) > 1


def test_it_stays_the_leading_cause_after_why_not(talk: Talker) -> None:
    """“how do I fix it?” after “why not the network?” means the leading cause."""
    *_, reply = talk(OOM_LOG, "why not the network?", "how do I fix it?")
    assert cited(reply.statements[0], "cause") == ["rank-crash"]


@pytest.mark.parametrize(
    ("question", "cause"),
    [
        ("是硬件问题吗", "gpu-hardware"),
        ("did it hit torch.OutOfMemoryError: CUDA out of memory on rank 3", "rank-crash"),
    ],
)
def test_a_question_about_a_cause_changes_nothing(
    talk: Talker, chat: CheckedChat, question: str, cause: str
) -> None:
    """It is answered with where that cause stands, and nothing of it is kept as a remark."""
    first, reply = talk(TIMEOUT_LOG, question)
    assert reply.intent == "why"
    assert reply.changes == ()
    assert cause in [name for s in reply.statements for name in cited(s, "cause")]
    kept = chat.conversation(first.conversation)
    assert (kept.remarks, kept.check_results) == ((), ())


def test_the_second_is_opened_and_answers_no_check(talk: Talker, chat: CheckedChat) -> None:
    """What asks about the second cause tells what it is and where it stands; “it” is that now."""
    first, reply, fix = talk(TIMEOUT_LOG, "what is the second cause", "how do I fix it?")
    assert first.diagnosis is not None
    second = first.diagnosis.causes[1].id
    assert cited(reply.statements[0], "cause")[:1] == [second]
    assert chat.conversation(first.conversation).check_results == ()
    assert cited(fix.statements[0], "cause") == [second]


# --- what to do --------------------------------------------------------------------------------


def test_a_second_command_has_words_of_its_own(talk: Talker) -> None:
    """Two commands of a fix do not stand below the same sentence twice."""
    _, reply = talk(OOM_LOG, "how do I fix it?")
    leads = [item.text for item in reply.statements if item.role in ("fix", "step")]
    assert "Like this:" in leads
    assert all(first != second for first, second in pairwise(leads))


def test_the_second_is_the_second(talk: Talker, chat: CheckedChat) -> None:
    """An ordinal means the place in the ranking shown."""
    first, reply = talk(TIMEOUT_LOG, "how do I fix the second?")
    assert first.diagnosis is not None
    second = first.diagnosis.causes[1].id
    assert cited(reply.statements[0], "cause") == [second]
    assert chat.conversation(reply.conversation).focus == second
    assert {"fix", "step"} <= roles(reply)


def test_a_named_cause_is_meant(talk: Talker) -> None:
    """“fix for shm-limits” needs no incident."""
    (reply,) = talk("fix for shm-limits")
    assert reply.intent == "fix"
    assert cited(reply.statements[0], "cause") == ["shm-limits"]
    assert any("--shm-size" in statement.command for statement in reply.statements)


def test_which_command_now(talk: Talker) -> None:
    """The check that was asked comes first, with its command; its options stand above."""
    first, reply = talk(TIMEOUT_LOG, "which command now?")
    assert first.question is not None
    assert reply.statements[0].role == "check"
    assert reply.statements[0].command == first.question.command
    assert reply.question is None


@pytest.mark.parametrize(
    "said",
    ["what exactly is the second fix?", "第二个办法怎么做？", "how does the second one work?"],
)
def test_the_second_fix_is_no_cause(talk: Talker, said: str) -> None:
    """A fix by its noun, or by what was listed last; its steps and no other fix are told."""
    first, listed, second = talk(OOM_LOG, "how do I fix it?", said)
    assert first.diagnosis is not None
    leading = first.diagnosis.causes[0]
    (shown,) = [item for item in second.statements if item.role == "fix"]
    assert listed.intent == second.intent == "fix"
    assert shown.text.startswith("2. ")
    assert cited(second.statements[0], "cause") == [leading.id]


def test_a_cause_is_named_after_a_list_of_fixes(talk: Talker) -> None:
    """“the second cause” is one, whatever was listed last."""
    first, _, reply = talk(OOM_LOG, "how do I fix it?", "what is the second cause?")
    assert first.diagnosis is not None
    assert cited(reply.statements[0], "cause")[:1] == [first.diagnosis.causes[1].id]
