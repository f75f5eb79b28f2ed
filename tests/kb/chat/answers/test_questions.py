"""Questions answered by what they ask for: first the answer, and in few lines."""

from __future__ import annotations

import pytest

from kb.chat.endings import CONFIRM
from kb.chat.reply import LINES_OF_ONE
from tests.kb.chat.conftest import OOM_LOG, TIMEOUT_LOG, CheckedChat, Talker, cited, texts


@pytest.mark.parametrize(
    "asked",
    ["why did it go up?", "what is first in your list now?", "which of the two would you bet on?"],
)
def test_answers_are_short(talk: Talker, asked: str) -> None:
    """A question gets a few lines, and no check with its options."""
    *_, reply = talk(TIMEOUT_LOG, "dmesg shows Xid 79 on node 2", asked)
    assert len(reply.statements) <= LINES_OF_ONE
    assert reply.question is None


def test_why_it_moved_names_the_message(talk: Talker) -> None:
    """The message that moved it is quoted, with both shares."""
    _, moved, reply = talk(
        TIMEOUT_LOG, "dmesg shows Xid 79 on node 2", "why did gpu hardware go up?"
    )
    change = next(item for item in moved.changes if item.cause == "gpu-hardware")
    first = reply.statements[0]
    assert cited(first, "cause") == ["gpu-hardware"]
    assert "dmesg shows Xid 79 on node 2" in first.text
    assert f"{change.after:.0%}" in first.text


def test_which_of_two_names_both(talk: Talker) -> None:
    """Of two causes named the likelier one is said first, with both shares."""
    _, reply = talk(OOM_LOG, "which is it, a crash or the network?")
    first = reply.statements[0]
    assert first.text.startswith("Of the two I would rather say “One rank died first")
    assert len(cited(first, "cause")) == 2


def test_would_it_help_names_the_fix_and_its_cause(talk: Talker) -> None:
    """A proposal is the fix it is, of the cause that is for."""
    _, reply = talk(TIMEOUT_LOG, "would giving the container a bigger /dev/shm help?")
    assert "shm" in texts(reply)
    assert any("shm" in name for item in reply.statements for name in cited(item, "cause")) or any(
        "shm" in name for item in reply.statements for name in cited(item, "note")
    )


def test_what_nothing_answers_is_said_to_be_so(talk: Talker) -> None:
    """No verdict and no list of cases instead of an answer."""
    _, reply = talk(TIMEOUT_LOG, "does the mascot of our cluster office matter to the ranks?")
    assert reply.statements[0].text == "I have no source that answers this, and will not guess."
    assert "case" not in {item.role for item in reply.statements}


def test_a_tool_refused_is_not_asked_for_again(talk: Talker, chat: CheckedChat) -> None:
    """Who has no py-spy gets another check at once, and none with it later."""
    first, reply, *others = talk(TIMEOUT_LOG, "py-spy is not installed here", *["I don't know"] * 6)
    assert first.question is not None
    assert "py-spy" in first.question.command
    assert reply.question is not None
    asked = [reply, *others]
    assert not [r for r in asked if r.question and "py-spy" in r.question.command]
    assert "py-spy" in chat.conversation(first.conversation).refused_tools


def test_a_framework_denied_gets_no_advice(talk: Talker) -> None:
    """Fixes for what the job does not use are not shown."""
    *_, reply = talk(
        "vllm qwen3 moe 30b hangs, tp4 dp2, 8 cards",
        "nobody said deepspeed, it is vllm",
        "how do I fix it?",
    )
    assert not [s for s in reply.statements if "deepspeed" in (s.text + s.command).lower()]


def test_after_the_end_no_check_is_asked(talk: Talker) -> None:
    """Who has said what it was gets thanks, and what was kept when they ask."""
    *_, kept, thanks, asked = talk(
        OOM_LOG, "lowering the batch size fixed it, solved", "1", "thanks!", "did you keep it?"
    )
    assert kept.outcome is not None
    assert thanks.question is None
    assert len(thanks.statements) == 1
    assert asked.statements[0].text.startswith("It is kept")


@pytest.mark.parametrize(
    ("said", "intent", "begins"),
    [
        ("which GID index is right for RoCE? 3 works on our cards, 1 does not", "how_to", False),
        ("deepspeed 的超时能不能用环境变量改，不想动代码", "how_to", False),
        ("Our DDP job hangs on 16 GPUs at step 100. Which rank do I look at first?", "tell", True),
        ("what would it cost to train this on rented cards, and who sells cheapest?", "", False),
    ],
    ids=["with-circumstances", "timeout-asked-about", "a-hang-is-told", "nothing-of-ours"],
)
def test_a_question_before_any_incident(
    talk: Talker, chat: CheckedChat, said: str, intent: str, begins: bool
) -> None:
    """The notes answer it, or nothing does; only who tells of a hang has an incident."""
    (reply,) = talk(said)
    assert reply.intent == (intent or "unclear")
    assert (chat.conversation(reply.conversation).reading is not None) == begins
    assert intent or "no source" in texts(reply)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("would capping the longest sequence help?", "Yes, by what is known"),
        ("would a bigger MTU on the switches help?", "Hardly"),
    ],
)
def test_yes_or_no_comes_first(talk: Talker, asked: str, first: str) -> None:
    """A proposal is weighed with how likely the cause is that it is for."""
    _, reply = talk(OOM_LOG, asked)
    assert reply.statements[0].text.startswith(first)


@pytest.mark.parametrize("asked", ["what would you change, in which order?", "该怎么解决？"])
def test_what_to_do_is_told_in_order(talk: Talker, asked: str) -> None:
    """The fixes are numbered from 1, and only the first has its command."""
    _, reply = talk(OOM_LOG, asked)
    fixes = [item for item in reply.statements if item.role == "fix"]
    assert [item.text[:2] for item in fixes] == ["1.", "2.", "3."][: len(fixes)]
    assert len(fixes) > 1
    assert not any(item.command for item in fixes[1:])


@pytest.mark.parametrize("asked", ["summarise what happened, please", "给个总结吧"])
def test_a_summary_names_cause_and_fix(talk: Talker, asked: str) -> None:
    """In a few lines: the cause with its share, what it rests on, what to try."""
    first, reply = talk(OOM_LOG, asked)
    assert first.diagnosis is not None
    assert cited(reply.statements[0], "cause") == [first.diagnosis.causes[0].id]
    assert "fix" in {item.role for item in reply.statements}
    assert len(reply.statements) <= LINES_OF_ONE


def test_the_same_message_takes_back(talk: Talker, chat: CheckedChat) -> None:
    """What is scratched in the message it stands in is never counted."""
    first, _ = talk(TIMEOUT_LOG, "We save over NFS. No wait, scratch that. It hangs at step 3.")
    remarks = chat.conversation(first.conversation).remarks
    assert remarks
    assert "NFS" not in " ".join(remarks)


def test_how_it_ended_is_asked_with_the_cause_named(talk: Talker, chat: CheckedChat) -> None:
    """Where another sentence names the cause, it is that one, and nothing is kept before a yes."""
    said = "it runs now. So it was the different package versions on the two nodes!"
    first, reply = talk(TIMEOUT_LOG, said)
    asked = chat.conversation(first.conversation).asked_outcome
    assert asked is not None
    assert asked.actual == "software-version"
    assert reply.outcome is None


def test_what_was_tried_in_vain_ends_nothing(talk: Talker, chat: CheckedChat) -> None:
    """“I changed the version, and it still hangs” is no end of it."""
    first, _ = talk(TIMEOUT_LOG, "换了个驱动版本重装,还是卡在同一行")
    assert chat.conversation(first.conversation).asked_outcome is None


@pytest.mark.parametrize(
    "said",
    [
        "ok giving it more time everywhere fixed it. closed. bye",
        "it trains! the rank variable did it, going to bed",
        "We moved the duplicate communicator to the main thread. 200 runs, no freeze.",
        "试过了：每个进程都带上这个变量，之后正常开始训练，问题解决。",
        "换回 2.18 之后跑了一晚上没再卡",
    ],
)
def test_an_end_is_asked_for_once(talk: Talker, said: str) -> None:
    """Whoever says that it is over is asked whether that was it, and for no further check."""
    reply = talk(TIMEOUT_LOG, said)[-1]
    assert reply.question is not None
    assert reply.question.check == CONFIRM


@pytest.mark.parametrize(
    "said",
    [
        "it works on one node and hangs on two",
        "I'll try the fix tonight and see whether that fixed it",
        "上次换了驱动问题解决，这次还是卡",
    ],
)
def test_an_experiment_is_no_end(talk: Talker, said: str) -> None:
    """What still hangs, or is only meant to be done, ends nothing."""
    reply = talk(TIMEOUT_LOG, said)[-1]
    assert reply.question is None or reply.question.check != CONFIRM


def test_a_question_beside_a_fact_is_answered(talk: Talker) -> None:
    """What a note answers is told beside what the fact moves."""
    *_, reply = talk(TIMEOUT_LOG, "Rank 3 is far behind the others. btw what does SeqNum mean?")
    assert any("SeqNum" in line.text for line in reply.statements if line.role == "verdict")


def test_what_is_denied_is_not_the_next_to_look_at(talk: Talker) -> None:
    """Of the causes left the first follows."""
    *_, before, reply = talk(TIMEOUT_LOG, "two 3090s, no NVLink", "no, it is not P2P")
    title = "GPU peer-to-peer or topology is broken"
    assert title in texts(before)
    later = [line.text for line in reply.statements if line.text.startswith("Then the next")]
    assert not any(title in text for text in later)


def test_a_fix_is_told_once_in_a_reply(talk: Talker) -> None:
    """Two questions of one message do not repeat it."""
    *_, reply = talk(OOM_LOG, "what should I do first? and how do I fix it?")
    named = [line.citations[0].quote for line in reply.statements if line.role == "fix"]
    assert named
    assert len(named) == len(set(named))


def test_a_fix_that_is_not_the_thing_asked_about_is_called_the_nearest(talk: Talker) -> None:
    """A yes is said of what is asked alone."""
    *_, reply = talk(
        TIMEOUT_LOG, "two 3090s hang, one alone is fine", "shall I paint the cables red instead?"
    )
    assert "Yes, by what is known" not in texts(reply)
