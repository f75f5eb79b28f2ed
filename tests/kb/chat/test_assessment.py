"""What an incident means: remarks, answers to checks, what moved, what to ask."""

from __future__ import annotations

import pytest

from kb.chat.assessment import assess
from kb.chat.checks import ASKED_CAUSES, FLATTER, askable_checks
from kb.diagnose.checks import COST_BITS, MIN_GAIN_BITS, expected_gain, is_open
from kb.diagnose.evidence_provided import evidence_provided
from kb.service import Service
from kb.settings import shipped_data
from tests.kb.chat.conftest import (
    OOM_LOG,
    TIMEOUT_LOG,
    CheckedChat,
    Talker,
    cited,
    share,
    texts,
)

EXAMPLES = shipped_data() / "examples"
IB = "it's InfiniBand, 2 nodes are fine, 3 hang"


def test_told_facts_move_causes_and_say_why(talk: Talker) -> None:
    """“InfiniBand, 2 nodes fine, 3 hang” lifts the network and quotes the words."""
    first, told = talk(TIMEOUT_LOG, IB)
    assert told.intent == "tell"
    change = next(item for item in told.changes if item.cause == "network-config")
    assert change.before < change.after
    assert change.why != ()
    assert all(quote in IB for quote in change.why)
    assert share(first, "network-config") < share(told, "network-config")
    said = next(
        item
        for item in told.statements
        if item.role == "change" and "network-config" in cited(item, "cause")
    )
    assert set(change.why) <= {citation.quote for citation in said.citations}


def test_a_change_quotes_the_words_that_count(talk: Talker) -> None:
    """Of a long remark the clue is quoted, not all of it."""
    remark = "last tuesday we looked again, dmesg shows Xid 79"
    _, told = talk(TIMEOUT_LOG, remark)
    change = next(item for item in told.changes if item.cause == "gpu-hardware")
    assert all("Xid" in quote and "tuesday" not in quote for quote in change.why)
    assert change.why != ()


def test_a_correction_takes_the_fact_back(talk: Talker) -> None:
    """“No, it's not InfiniBand” lowers the network again: the last word counts."""
    *_, corrected = talk(TIMEOUT_LOG, IB, "no, it's not InfiniBand")
    assert corrected.intent == "tell"
    moved = {change.cause: change.after - change.before for change in corrected.changes}
    network = [by for cause, by in moved.items() if cause.startswith("network")]
    assert network
    assert max(network) < 0


def test_what_says_nothing_moves_nothing(talk: Talker) -> None:
    """A remark without evidence is noted, no change is made up."""
    _, told = talk(TIMEOUT_LOG, "the training script is called run_all.py")
    assert told.changes == ()


def test_a_version_told_counts_for_commands(talk: Talker) -> None:
    """Variables named for torch 2.3 bear the names of torch 2.3, not those of 2.8."""
    *_, reply = talk(OOM_LOG, "we use torch==2.3.1", "which command now?")
    commands = " ".join(statement.command for statement in reply.statements)
    assert "TORCH_FR_DUMP_TEMP_FILE" not in commands


def test_a_remark_taken_back_counts_no_more(talk: Talker, chat: CheckedChat) -> None:
    """Its signals are gone, the causes stand as before it, and the reply says so."""
    remark = "dmesg shows Xid 79 on node 2"
    first, told, reply = talk(TIMEOUT_LOG, remark, "forget the xid thing")
    assert share(told, "gpu-hardware") > share(first, "gpu-hardware")
    assert share(reply, "gpu-hardware") == share(first, "gpu-hardware")
    assert remark in texts(reply)
    assert chat.conversation(first.conversation).remarks == ()
    moved = {item.cause: (item.before, item.after) for item in reply.changes}
    assert moved["gpu-hardware"][0] > moved["gpu-hardware"][1]


def test_an_answer_taken_back_counts_no_more(talk: Talker, chat: CheckedChat) -> None:
    """“undo” right after the answer to a check takes that answer back."""
    first, answered, reply = talk(TIMEOUT_LOG, "2", "undo")
    assert answered.changes != ()
    assert chat.conversation(first.conversation).check_results == ()
    assert {item.cause: item.after for item in reply.changes} == {
        item.cause: item.before for item in answered.changes
    }


def test_what_was_never_told_is_not_taken_back(talk: Talker, chat: CheckedChat) -> None:
    """A remark about something else stays."""
    *_, reply = talk(TIMEOUT_LOG, "dmesg shows Xid 79 on node 2", "forget what I said about NFS")
    assert reply.changes == ()
    assert chat.conversation(reply.conversation).remarks == ("dmesg shows Xid 79 on node 2",)


def test_no_other_check_tells_more(talk: Talker, service: Service, chat: CheckedChat) -> None:
    """The question has the largest expected gain over the leading causes, costs counted."""
    (reply,) = talk((EXAMPLES / "rank-behind.log").read_text(encoding="utf-8"))
    assessment = assess(service, chat.conversation(reply.conversation), "en")
    assert assessment is not None
    assert reply.question is not None
    shares = {item.id: item.probability for item in assessment.diagnosis.causes[:ASKED_CAUSES]}
    known = evidence_provided(assessment.reading, service.knowledge.input_evidence)

    def gains(flatter: float) -> dict[str, float]:
        return {
            check.id: expected_gain(check, {c: share**flatter for c, share in shares.items()})
            - COST_BITS[check.cost]
            for cause in shares
            for check in askable_checks(service.knowledge, cause, assessment.reading.incident)
            if check.gives not in known and is_open(check, assessment.verdict.seen)
        }

    told = gains(1.0)
    if max(told.values()) < MIN_GAIN_BITS:  # too sure already: those behind are asked for
        told = gains(FLATTER)
    assert told[reply.question.check] == max(told.values())


def test_one_question_that_separates(talk: Talker, service: Service) -> None:
    """The question's outcomes speak differently of the leading causes."""
    (reply,) = talk(TIMEOUT_LOG)
    question = reply.question
    assert question is not None
    assert [option.number for option in question.options] == list(
        range(1, len(question.options) + 1)
    )
    check = next(
        c for cause in service.knowledge.causes for c in cause.checks if c.id == question.check
    )
    assert [option.text for option in question.options] == [
        outcome.observation.en for outcome in check.outcomes
    ]
    assert reply.diagnosis is not None
    leading = {cause.id for cause in reply.diagnosis.causes}
    assert any(leading & {*item.supports, *item.refutes} for item in check.outcomes)


@pytest.mark.parametrize("answer", ["1", "yes"])
def test_an_answer_is_taken(talk: Talker, service: Service, answer: str) -> None:
    """However it is put, outcome 1 lifts what it supports and lowers what it refutes."""
    first, reply = talk(TIMEOUT_LOG, answer)
    assert first.question is not None
    check = next(
        c
        for cause in service.knowledge.causes
        for c in cause.checks
        if c.id == first.question.check
    )
    moved = {item.cause: item.after - item.before for item in reply.changes}
    outcome = check.outcomes[0]
    assert reply.intent == "tell"
    assert any(moved.get(cause, 0) > 0 for cause in outcome.supports)
    assert all(moved.get(cause, 0) <= 0 for cause in outcome.refutes)
    assert reply.question is None or reply.question.check != check.id


def test_no_means_the_other_outcome(talk: Talker) -> None:
    """“no” to a question of two outcomes is its second; the reply says how it was taken."""
    before = [TIMEOUT_LOG, "3"]  # all stand in the same collective: the next has two outcomes
    *_, asked, by_word = talk(*before, "no")
    *_, by_number = talk(*before, "2")
    assert asked.question is not None
    assert len(asked.question.options) == 2
    assert asked.question.options[1].text in texts(by_word)
    assert by_word.changes == by_number.changes


def test_words_of_an_option_are_an_answer(talk: Talker, chat: CheckedChat) -> None:
    """Words like those of an option count as that option."""
    first = chat.say(TIMEOUT_LOG)
    assert first.question is not None
    chat.say(first.question.options[1].text.lower(), conversation=first.conversation)
    (answered,) = chat.conversation(first.conversation).check_results
    assert (answered.check, answered.outcome) == (first.question.check, 2)


def test_a_sentence_with_a_number_is_no_answer(chat: CheckedChat) -> None:
    """“the second node hangs” tells a fact, it does not pick the second option."""
    first = chat.say(TIMEOUT_LOG)
    reply = chat.say("the second node hangs", conversation=first.conversation)
    assert reply.intent == "tell"
    assert chat.conversation(first.conversation).check_results == ()


def test_checks_of_other_platforms_are_not_asked(talk: Talker) -> None:
    """Nobody is asked about HCCL or Ascend where nothing speaks of them."""
    log = "[2612362.2] python invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), order=0\n"
    for reply in talk(f"training hangs on 6 GPUs\n\n{log}{log}", *["I don't know"] * 5):
        assert reply.question is None or "hccl" not in reply.question.check


def test_not_knowing_leads_to_the_next_check(talk: Talker) -> None:
    """Each “don't know” brings another check, none comes twice, and in the end none is left."""
    replies = talk(TIMEOUT_LOG, *["I don't know"] * 14)
    asked = [reply.question.check for reply in replies if reply.question]
    assert len(asked) == len(set(asked))
    assert replies[-1].question is None
    assert all(reply.changes == () for reply in replies)


def test_a_note_before_the_steps_takes_no_place_of_theirs(talk: Talker) -> None:
    """Where no check is left, “don't know” gives the steps that “which command now?” gives."""
    replies = talk(TIMEOUT_LOG, *["I don't know"] * 14)
    checks = sum(reply.question is not None for reply in replies)
    *earlier, unsure, asked = talk(TIMEOUT_LOG, *["I don't know"] * checks, "which command now?")
    assert unsure.question is None
    steps = [statement for statement in unsure.statements if statement.role == "step"]
    assert steps
    commands = {item.command for item in asked.statements}  # what was told is pointed at
    assert commands <= {one.command for reply in (*earlier, unsure) for one in reply.statements}
