"""The conversation: what the engine keeps, changes, answers and asks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

import pytest

from kb.chat.answers import ANSWERERS
from kb.chat.incident import ASKED_CAUSES, fitting_checks, judge
from kb.chat.types import Intent, Outcome, Reply, Statement
from kb.diagnose.checks import COST_BITS, expected_gain
from kb.diagnose.given import given
from kb.service import Service
from kb.settings import shipped_data
from tests.kb.chat.conftest import OOM_LOG, TIMEOUT_LOG, CheckedChat, uncited

EXAMPLES = shipped_data() / "examples"
Talker = Callable[..., list[Reply]]
IB = "it's InfiniBand, 2 nodes are fine, 3 hang"


def texts(reply: Reply) -> str:
    """All that a reply says."""
    return "\n".join(statement.text for statement in reply.statements)


def roles(reply: Reply) -> set[str]:
    """The roles of a reply's statements."""
    return {statement.role for statement in reply.statements}


def share(reply: Reply, cause: str) -> float:
    """A cause's probability in the reply's diagnosis, 0 where it is not shown."""
    causes = reply.diagnosis.causes if reply.diagnosis else ()
    return next((item.probability for item in causes if item.id == cause), 0.0)


def cited(statement: Statement, kind: str) -> list[str]:
    """Ids of a statement's citations of that kind."""
    return [citation.id for citation in statement.citations if citation.kind == kind]


# --- a log -------------------------------------------------------------------------------------


def test_a_log_is_diagnosed_as_everywhere(talk: Talker, service: Service) -> None:
    """The verdict, causes and their order are those of the service for the same text."""
    (reply,) = talk(OOM_LOG)
    expected = service.diagnose_text(OOM_LOG)
    assert reply.intent == "log"
    assert reply.diagnosis is not None
    assert [(c.id, c.probability) for c in reply.diagnosis.causes] == [
        (c.id, c.probability) for c in expected.causes
    ]
    verdict = next(item for item in reply.statements if item.role == "verdict")
    assert verdict.text == expected.summary
    assert cited(verdict, "cause") == ["rank-crash"]
    assert [c.line for c in verdict.citations if c.kind == "line"] == [1]


def test_line_citations_are_literal(talk: Talker) -> None:
    """What a statement cites of a line stands in that line of the paste."""
    for reply in talk(TIMEOUT_LOG, "why?", "what happened first?"):
        for statement in reply.statements:
            for citation in statement.citations:
                if citation.kind == "line":
                    line = TIMEOUT_LOG.splitlines()[citation.line - 1]
                    assert citation.quote in line


def test_a_description_is_diagnosed(talk: Talker) -> None:
    """Without a log, a person's words are the incident."""
    reply, why = talk("多机训练图文混合数据，ZeRO-3 卡住，ZeRO-2 正常", "为什么")
    assert reply.diagnosis is not None
    assert reply.diagnosis.causes[0].id == "collective-mismatch"
    assert why.intent == "why"
    assert why.language == "zh"


def test_a_report_with_a_question_is_diagnosed(talk: Talker) -> None:
    """A first message that tells at length and asks at the end is the incident, not a lookup."""
    report = (
        "We train with DDP on 4 nodes and it hangs at the end of every epoch for half an hour, "
        "then all ranks time out. Each rank has a different number of batches. How do I fix it?"
    )
    (reply,) = talk(report)
    assert reply.intent == "tell"
    assert reply.diagnosis is not None
    assert reply.diagnosis.causes[0].id == "uneven-data"


def test_a_text_without_a_timeout_claims_nothing(talk: Talker) -> None:
    """No cause is named for a log that shows no timeout, and questions say so."""
    build = "error TS2304: Cannot find name 'foo'.\nnpm ERR! code ELIFECYCLE\n" * 8
    reply, why = talk(build, "why?")
    assert reply.diagnosis is not None
    assert reply.diagnosis.status == "no_timeout"
    assert roles(reply) == {"note"}
    assert reply.question is None
    assert roles(why) == {"hint"}


# --- facts told --------------------------------------------------------------------------------


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
    remark = "last tuesday we looked again and saw that dmesg shows Xid 79"
    _, told = talk(TIMEOUT_LOG, remark)
    change = next(item for item in told.changes if item.cause == "gpu-hardware")
    assert all("Xid" in quote and "tuesday" not in quote for quote in change.why)
    assert change.why != ()


def test_a_correction_takes_the_fact_back(talk: Talker) -> None:
    """“No, it's not InfiniBand” lowers the network again: the last word counts."""
    _, told, corrected = talk(TIMEOUT_LOG, IB, "no, it's not InfiniBand")
    assert corrected.intent == "tell"
    assert share(corrected, "network-fault") < share(told, "network-fault")


def test_what_says_nothing_moves_nothing(talk: Talker) -> None:
    """A remark without evidence is noted, no change is made up."""
    _, told = talk(TIMEOUT_LOG, "the training script is called run_all.py")
    assert told.changes == ()


def test_a_question_beside_facts_is_answered_too(talk: Talker) -> None:
    """Facts and a question in one message: the change first, then the answer."""
    _, reply = talk(TIMEOUT_LOG, f"{IB}. How do I fix it?")
    assert reply.intent == "tell"
    assert {"change", "fix", "step"} <= roles(reply)


def test_a_version_told_counts_for_commands(talk: Talker) -> None:
    """Variables named for torch 2.3 bear the names of torch 2.3, not those of 2.8."""
    *_, reply = talk(OOM_LOG, "we use torch==2.3.1", "which command now?")
    commands = " ".join(statement.command for statement in reply.statements)
    assert "TORCH_FR_DUMP_TEMP_FILE" not in commands


# --- questions, denials, corrections -----------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "cause"),
    [
        ("is it a hardware issue", "gpu-hardware"),
        ("是硬件问题吗", "gpu-hardware"),
        ("难道是数据不均", "uneven-data"),
        ("was any rank OOM killed", "rank-crash"),
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
    assert (kept.told, kept.answered) == ((), ())


@pytest.mark.parametrize("question", ["Is it a hardware issue?", "是硬件问题吗？"])
def test_a_question_beside_a_log_is_no_evidence_either(talk: Talker, question: str) -> None:
    """The log with the question below it means what the log means, and the question is answered."""
    (alone,) = talk(TIMEOUT_LOG)
    (beside,) = talk(f"{TIMEOUT_LOG}\n{question}")
    assert alone.diagnosis is not None
    assert beside.diagnosis is not None
    assert [(c.id, c.probability) for c in beside.diagnosis.causes] == [
        (c.id, c.probability) for c in alone.diagnosis.causes
    ]
    assert "gpu-hardware" in [name for s in beside.statements for name in cited(s, "cause")]


def test_how_long_tells_the_seconds(talk: Talker) -> None:
    """“how long did it hang” is answered from the log."""
    _, reply = talk(TIMEOUT_LOG, "how long did it hang")
    assert reply.intent == "happened"
    assert "waited 600 s" in texts(reply)


@pytest.mark.parametrize(
    "remark", ["the network is fine", "网络没问题", "we ruled out the network"]
)
def test_a_denial_is_taken_for_what_it_is_worth(talk: Talker, remark: str) -> None:
    """It is told whether it counts against the cause it names; nothing is searched for."""
    first, reply = talk(TIMEOUT_LOG, remark)
    assert reply.intent == "tell"
    assert share(reply, "network-config") <= share(first, "network-config")
    title = {"zh": "网络配置错误", "en": "The network is configured wrongly"}[reply.language]
    assert title in texts(reply)


def test_a_denial_without_a_sign_gets_the_check(talk: Talker) -> None:
    """Where nothing in it is evidence, that is said, with what would rule the cause out."""
    _, reply = talk(TIMEOUT_LOG, "not a version bug")
    assert "no evidence" in texts(reply)
    assert [name for s in reply.statements if s.role == "check" for name in cited(s, "cause")] == [
        "software-version"
    ]


@pytest.mark.parametrize("back", ["forget the xid thing", "我说错了，xid 那个不算", "scratch that"])
def test_a_remark_taken_back_counts_no_more(talk: Talker, chat: CheckedChat, back: str) -> None:
    """Its signals are gone, the causes stand as before it, and the reply says so."""
    remark = "dmesg shows Xid 79 on node 2"
    first, told, reply = talk(TIMEOUT_LOG, remark, back)
    assert share(told, "gpu-hardware") > share(first, "gpu-hardware")
    assert share(reply, "gpu-hardware") == share(first, "gpu-hardware")
    assert remark in texts(reply)
    assert chat.conversation(first.conversation).told == ()
    moved = {item.cause: (item.before, item.after) for item in reply.changes}
    assert moved["gpu-hardware"][0] > moved["gpu-hardware"][1]


def test_an_answer_taken_back_counts_no_more(talk: Talker, chat: CheckedChat) -> None:
    """“undo” right after the answer to a check takes that answer back."""
    first, answered, reply = talk(TIMEOUT_LOG, "2", "undo")
    assert answered.changes != ()
    assert chat.conversation(first.conversation).answered == ()
    assert {item.cause: item.after for item in reply.changes} == {
        item.cause: item.before for item in answered.changes
    }


def test_what_was_never_told_is_not_taken_back(talk: Talker, chat: CheckedChat) -> None:
    """A remark about something else stays."""
    *_, reply = talk(TIMEOUT_LOG, "dmesg shows Xid 79 on node 2", "forget what I said about NFS")
    assert reply.changes == ()
    assert chat.conversation(reply.conversation).told == ("dmesg shows Xid 79 on node 2",)


def test_recap_lists_remarks_and_answers(talk: Talker) -> None:
    """“what did I tell you so far?” names what counts beside the log."""
    *_, reply = talk(
        TIMEOUT_LOG, "dmesg shows Xid 79 on node 2", "1", "what did I tell you so far?"
    )
    assert reply.intent == "recap"
    assert "dmesg shows Xid 79 on node 2" in texts(reply)
    assert len(reply.statements) == 3
    _, nothing = talk(TIMEOUT_LOG, "我都跟你说过什么")
    assert [item.role for item in nothing.statements] == ["note"]


# --- the question ------------------------------------------------------------------------------


def test_no_other_check_tells_more(talk: Talker, service: Service, chat: CheckedChat) -> None:
    """The question has the largest expected gain over the leading causes, costs counted."""
    (reply,) = talk((EXAMPLES / "rank-behind.log").read_text(encoding="utf-8"))
    judged = judge(service, chat.conversation(reply.conversation), "en")
    assert judged is not None
    assert reply.question is not None
    shares = {item.id: item.probability for item in judged.diagnosis.causes[:ASKED_CAUSES]}
    beliefs = {cause: share / sum(shares.values()) for cause, share in shares.items()}
    known = given(judged.reading, service.knowledge.given)
    gains = {
        check.id: expected_gain(check, beliefs) - COST_BITS[check.cost]
        for cause in shares
        for check in fitting_checks(service.knowledge, cause, judged.reading.incident)
        if check.gives not in known
    }
    assert gains[reply.question.check] == max(gains.values())


def test_one_question_that_separates(talk: Talker, service: Service) -> None:
    """The question's outcomes speak differently of the leading causes."""
    (reply,) = talk(TIMEOUT_LOG)
    question = reply.question
    assert question is not None
    assert [option.number for option in question.options] == list(
        range(1, len(question.options) + 1)
    )
    check = next(c for cause in service.causes() for c in cause.checks if c.id == question.check)
    assert [option.text for option in question.options] == [
        outcome.observation.en for outcome in check.outcomes
    ]
    assert reply.diagnosis is not None
    leading = {cause.id for cause in reply.diagnosis.causes}
    assert any(leading & {*item.supports, *item.refutes} for item in check.outcomes)


@pytest.mark.parametrize("answer", ["1", "the first one", "第一个", "yes"])
def test_an_answer_is_taken(talk: Talker, service: Service, answer: str) -> None:
    """However it is put, outcome 1 lifts what it supports and lowers what it refutes."""
    first, reply = talk(TIMEOUT_LOG, answer)
    assert first.question is not None
    check = next(
        c for cause in service.causes() for c in cause.checks if c.id == first.question.check
    )
    moved = {item.cause: item.after - item.before for item in reply.changes}
    outcome = check.outcomes[0]
    assert reply.intent == "tell"
    assert any(moved.get(cause, 0) > 0 for cause in outcome.supports)
    assert all(moved.get(cause, 0) <= 0 for cause in outcome.refutes)
    assert reply.question is None or reply.question.check != check.id


def test_no_means_the_other_outcome(talk: Talker) -> None:
    """“no” to a question of two outcomes is its second; the reply says how it was taken."""
    first, by_word = talk(TIMEOUT_LOG, "no")
    _, by_number = talk(TIMEOUT_LOG, "2")
    assert first.question is not None
    assert first.question.options[1].text in texts(by_word)
    assert by_word.changes == by_number.changes


def test_words_of_an_option_are_an_answer(talk: Talker, chat: CheckedChat) -> None:
    """Words like those of an option count as that option."""
    first = chat.say(TIMEOUT_LOG)
    assert first.question is not None
    chat.say(first.question.options[1].text.lower(), conversation=first.conversation)
    (answered,) = chat.conversation(first.conversation).answered
    assert (answered.check, answered.outcome) == (first.question.check, 2)


def test_a_sentence_with_a_number_is_no_answer(chat: CheckedChat) -> None:
    """“the second node hangs” tells a fact, it does not pick the second option."""
    first = chat.say(TIMEOUT_LOG)
    reply = chat.say("the second node hangs", conversation=first.conversation)
    assert reply.intent == "tell"
    assert chat.conversation(first.conversation).answered == ()


def test_checks_of_other_platforms_are_not_asked(talk: Talker) -> None:
    """Nobody is asked about HCCL or Ascend where nothing speaks of them."""
    log = "[2612362.2] python invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), order=0\n"
    for reply in talk(f"training hangs on 6 GPUs\n\n{log}{log}", *["I don't know"] * 5):
        assert reply.question is None or "hccl" not in reply.question.check


@pytest.mark.parametrize("word", ["I don't know", "不知道"])
def test_not_knowing_leads_to_the_next_check(talk: Talker, word: str) -> None:
    """Each “don't know” brings another check, none comes twice, and in the end none is left."""
    replies = talk(TIMEOUT_LOG, *[word] * 14)
    asked = [reply.question.check for reply in replies if reply.question]
    assert len(asked) == len(set(asked))
    assert replies[-1].question is None
    assert all(reply.changes == () for reply in replies)


# --- questions of the person -------------------------------------------------------------------


def test_why_names_evidence(talk: Talker) -> None:
    """“why?” rests on lines of the log."""
    _, reply = talk(OOM_LOG, "why?")
    lines = {c.line for s in reply.statements for c in s.citations if c.kind == "line"}
    assert reply.intent == "why"
    assert 1 in lines
    assert "out of memory" in texts(reply)


def test_why_not_compares_with_the_leading_cause(talk: Talker) -> None:
    """“why not the network?” tells both probabilities, what is absent and what would confirm it."""
    _, reply = talk(OOM_LOG, "why not the network?")
    verdict = reply.statements[0]
    assert cited(verdict, "cause")[0] in ("network-config", "network-fault")
    assert cited(verdict, "cause")[1] == "rank-crash"
    assert "check" in roles(reply)


def test_a_second_command_has_words_of_its_own(talk: Talker) -> None:
    """Two commands of a fix do not stand below the same sentence twice."""
    _, reply = talk(OOM_LOG, "how do I fix it?")
    leads = [item.text for item in reply.statements if item.role in ("fix", "step")]
    assert "Like this:" in leads
    assert all(first != second for first, second in pairwise(leads))


def test_the_first_fix_is_for_the_error_seen(talk: Talker) -> None:
    """A log that shows CUDA out of memory gets the fix of that, not of another crash."""
    (reply,) = talk(OOM_LOG)
    first = next(statement for statement in reply.statements if statement.role == "fix")
    assert "PYTORCH_CUDA_ALLOC_CONF" in first.command


def test_it_stays_the_leading_cause_after_why_not(talk: Talker) -> None:
    """“how do I fix it?” after “why not the network?” means the leading cause."""
    *_, reply = talk(OOM_LOG, "why not the network?", "how do I fix it?")
    assert cited(reply.statements[0], "cause") == ["rank-crash"]


def test_the_second_is_the_second(talk: Talker, chat: CheckedChat) -> None:
    """An ordinal means the place in the ranking shown."""
    first, reply = talk(TIMEOUT_LOG, "how do I fix the second?")
    assert first.diagnosis is not None
    second = first.diagnosis.causes[1].id
    assert cited(reply.statements[0], "cause") == [second]
    assert chat.conversation(reply.conversation).focus == second
    assert {"fix", "step"} <= roles(reply)


@pytest.mark.parametrize(
    "asked", ["what is the second cause", "tell me about number 2", "那第二个呢"]
)
def test_the_second_is_opened_and_answers_no_check(
    talk: Talker, chat: CheckedChat, asked: str
) -> None:
    """What asks about the second cause tells what it is and where it stands; “it” is that now."""
    first, reply, fix = talk(TIMEOUT_LOG, asked, "how do I fix it?")
    assert first.diagnosis is not None
    second = first.diagnosis.causes[1].id
    assert cited(reply.statements[0], "cause")[:1] == [second]
    assert chat.conversation(first.conversation).answered == ()
    assert cited(fix.statements[0], "cause") == [second]


def test_a_named_cause_is_meant(talk: Talker) -> None:
    """“fix for shm-limits” needs no incident."""
    (reply,) = talk("fix for shm-limits")
    assert reply.intent == "fix"
    assert cited(reply.statements[0], "cause") == ["shm-limits"]
    assert any("--shm-size" in statement.command for statement in reply.statements)


def test_which_command_now(talk: Talker) -> None:
    """The best check comes first, with its command, and is the question asked."""
    first, reply = talk(TIMEOUT_LOG, "which command now?")
    assert first.question is not None
    assert reply.statements[0].role == "check"
    assert reply.statements[0].command == first.question.command
    assert reply.question == first.question


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("does NCCL_TIMEOUT do anything?", "No program reads NCCL_TIMEOUT"),
        ("NCCL_TIMEOUT 有用吗", "没有程序读取"),
    ],
)
def test_a_setting_is_explained_with_its_source(talk: Talker, question: str, words: str) -> None:
    """The truth about a variable, with a page, with or without an incident."""
    (reply,) = talk(question)
    assert reply.intent == "setting"
    assert words in texts(reply)
    assert "setting" in [c.kind for s in reply.statements for c in s.citations]
    assert any(c.url.startswith("https://") for s in reply.statements for c in s.citations)


def test_an_unknown_setting_is_not_made_up(talk: Talker) -> None:
    """Of a variable nobody knows nothing is claimed."""
    (reply,) = talk("what does FOO_BAR_BAZ do?")
    assert roles(reply) == {"note"}
    assert "FOO_BAR_BAZ" in texts(reply)


def test_a_misspelt_setting_is_named(talk: Talker) -> None:
    """A name one letter off is told to be misspelt."""
    (reply,) = talk("does NCCL_SOCKET_IFNMAE help?")
    assert "NCCL_SOCKET_IFNAME" in texts(reply)


def test_a_case_is_shown_by_project_number_and_id(talk: Talker) -> None:
    """The wenet case, the first of a list, and a case by its id."""
    _, named = talk(TIMEOUT_LOG, "show the wenet case")
    assert named.intent == "case"
    assert cited(named.statements[0], "case")[0].startswith("wenet-")
    _, listed, first = talk(TIMEOUT_LOG, "similar cases", "show the first case")
    wanted = next(cited(s, "case")[0] for s in listed.statements if s.role == "case")
    assert cited(first.statements[0], "case") == [wanted]
    (by_id,) = talk("show the case torchtitan-rank0-logging-io")
    assert cited(by_id.statements[0], "case") == ["torchtitan-rank0-logging-io"]


def test_a_number_alone_picks_from_the_list_just_shown(talk: Talker) -> None:
    """After a list of cases, “the second one” is the second case of it."""
    _, listed, second = talk(OOM_LOG, "similar cases", "the second one")
    ids = [cited(s, "case")[0] for s in listed.statements if s.role == "case"]
    assert second.intent == "case"
    assert cited(second.statements[0], "case") == [ids[1]]


def test_several_cases_are_offered_where_none_is_nearer(talk: Talker) -> None:
    """Without an incident, a project with several cases gives a list to choose from."""
    (reply,) = talk("show the wenet case")
    ids = [cited(s, "case")[0] for s in reply.statements if s.role == "case"]
    assert len(ids) > 1
    assert all(name.startswith("wenet-") for name in ids)


def test_similar_on_another_backend(talk: Talker, service: Service) -> None:
    """“anything like this on Ascend?” gives HCCL cases only."""
    _, reply = talk(TIMEOUT_LOG, "anything like this on Ascend?")
    ids = [name for s in reply.statements if s.role == "case" for name in cited(s, "case")]
    assert reply.intent == "similar"
    assert {service.entry(name).tags.backend for name in ids} == {"hccl"}


def test_similar_on_a_backend_without_an_incident(talk: Talker, service: Service) -> None:
    """Before a log, “anything like this on Ascend?” shows Ascend cases and asks for the log."""
    (reply,) = talk("anything like this on Ascend?")
    ids = [name for s in reply.statements if s.role == "case" for name in cited(s, "case")]
    assert {service.entry(name).tags.backend for name in ids} == {"hccl"}
    assert reply.statements[-1].role == "hint"
    (bare,) = talk("anything like this?")
    assert [item.role for item in bare.statements] == ["hint"]


def test_search_without_an_incident(talk: Talker) -> None:
    """A search lists cases and diagnoses nothing."""
    (reply,) = talk("cases about FSDP checkpoint hang")
    assert reply.intent == "search"
    assert reply.diagnosis is None
    ids = [name for s in reply.statements if s.role == "case" for name in cited(s, "case")]
    assert any("checkpoint" in name or "save" in name for name in ids)


@pytest.mark.parametrize("text", ["what's the weather in Paris?", "写一首诗", "book me a flight"])
@pytest.mark.parametrize("pasted", [True, False], ids=["with an incident", "without"])
def test_off_topic_gets_a_plain_no(talk: Talker, text: str, pasted: bool) -> None:
    """Nothing of ours is named, nothing is invented."""
    reply = talk(*([OOM_LOG] if pasted else []), text)[-1]
    assert reply.intent == "off_topic"
    assert roles(reply) == {"note"}
    assert [c for s in reply.statements for c in s.citations] == []
    assert len(reply.statements) == 1


@pytest.mark.parametrize(
    ("message", "intent"),
    [
        ("how sure are you?", "sure"),
        ("will a restart help?", "restart"),
        ("what is shm-limits?", "cause"),
        ("which rank?", "happened"),
        ("thanks", "courtesy"),
        ("help", "help"),
        ("怎么办", "fix"),
    ],
)
def test_intents_with_and_without_an_incident(talk: Talker, message: str, intent: Intent) -> None:
    """Each is understood before a log as well, and then asks for one or answers in general."""
    (before,) = talk(message)
    _, after = talk(OOM_LOG, message)
    assert (before.intent, after.intent) == (intent, intent)
    assert before.diagnosis is None


def test_of_several_logs_the_file_is_told(
    chat: CheckedChat, service: Service, tmp_path: Path
) -> None:
    """First error and evidence of an incident in two files name the file, in text and citation."""
    oom, *timeout = OOM_LOG.splitlines()
    (tmp_path / "rank_2.log").write_text(f"starting\n{oom}\n", encoding="utf-8")
    (tmp_path / "rank_0.log").write_text("\n".join(timeout) + "\n", encoding="utf-8")
    begun = chat.begin(service.read_paths([tmp_path]))
    told = chat.say("what happened first?", conversation=begun.conversation)
    cited = {
        (citation.file, citation.line, citation.quote)
        for statement in (*begun.statements, *told.statements)
        for citation in statement.citations
        if citation.kind == "line"
    }
    assert {(file, line) for file, line, _ in cited} == {("rank_2.log", 2), ("rank_0.log", 1)}
    assert all(quote in (oom if file == "rank_2.log" else timeout[0]) for file, _, quote in cited)
    assert any("rank 2, rank_2.log line 2:" in statement.text for statement in told.statements)
    assert any("At rank_2.log line 2:" in statement.text for statement in begun.statements)


def test_what_happened_tells_rank_and_line(talk: Talker) -> None:
    """The first error is told with its rank and line."""
    _, reply = talk(OOM_LOG, "what happened first?")
    first = [s for s in reply.statements if "out of memory" in s.text]
    assert [c.line for c in first[0].citations] == [1]
    assert "rank 2" in texts(reply)


# --- language ----------------------------------------------------------------------------------


def test_the_language_changes_and_stays(talk: Talker) -> None:
    """“用中文说” says the last answer again in Chinese and holds until another is asked for."""
    *_, chinese, still, english = talk(
        OOM_LOG, "用中文说", "how sure are you?", "in English please"
    )
    assert (chinese.language, still.language, english.language) == ("zh", "zh", "en")
    assert "rank 2" in texts(chinese)
    assert "最可能的根因" in texts(chinese)
    assert [item.role for item in english.statements[1:]] == [s.role for s in still.statements]
    assert [item.citations[-1].url for item in english.statements if item.role == "check"] == [
        item.citations[-1].url for item in still.statements if item.role == "check"
    ]


def test_the_last_answer_is_said_again(talk: Talker) -> None:
    """After a fix, “用中文说” gives that fix in Chinese; after a list, the list."""
    *_, fix, again = talk(OOM_LOG, "how do I fix it?", "用中文说")
    assert [item.command for item in again.statements[1:]] == [s.command for s in fix.statements]
    assert texts(again) != texts(fix)
    *_, listed, chinese, second = talk(OOM_LOG, "similar cases", "用中文说", "第二个")
    ids = [cited(s, "case")[0] for s in listed.statements if s.role == "case"]
    assert [cited(s, "case")[0] for s in chinese.statements if s.role == "case"] == ids
    assert cited(second.statements[0], "case") == [ids[1]]


def test_a_change_is_said_again(talk: Talker) -> None:
    """After a remark, the change it made is told in the other language, and the question too."""
    *_, told, again = talk(TIMEOUT_LOG, "dmesg shows Xid 79 on node 2", "用中文说")
    assert [s.role for s in again.statements if s.role == "change"] == [
        s.role for s in told.statements if s.role == "change"
    ]
    assert "硬件" in texts(again)
    assert told.question is not None
    assert again.question is not None
    assert again.question.check == told.question.check


@pytest.mark.parametrize("asked", ["in german please", "用日语回答"])
def test_other_languages_are_declined(talk: Talker, asked: str) -> None:
    """It says which two there are, in the one spoken."""
    _, reply = talk(OOM_LOG, asked)
    assert reply.intent == "language"
    assert ("Chinese and English" in texts(reply)) or ("中文和英文" in texts(reply))


def test_the_face_may_set_the_language(chat: CheckedChat) -> None:
    """A face's language holds, unless the person asked for another in words."""
    reply = chat.say(OOM_LOG, language="zh")
    asked = chat.say("in English please", conversation=reply.conversation, language="zh")
    after = chat.say("why?", conversation=reply.conversation, language="zh")
    assert (reply.language, asked.language, after.language) == ("zh", "en", "en")


# --- more logs ---------------------------------------------------------------------------------


def test_more_of_the_log_joins_the_incident(talk: Talker, chat: CheckedChat) -> None:
    """A later log of the job is evidence beside the first: the crash it shows takes the lead."""
    first, merged = talk(TIMEOUT_LOG, OOM_LOG.splitlines()[0] + "\n[rank2]: exiting\n")
    assert first.diagnosis is not None
    assert merged.diagnosis is not None
    assert first.diagnosis.causes[0].id != "rank-crash"
    assert merged.diagnosis.causes[0].id == "rank-crash"
    assert merged.intent == "log"
    assert "rank-crash" in [change.cause for change in merged.changes]
    kept = chat.conversation(merged.conversation).reading
    assert kept is not None
    assert kept.incident.op == "ALLREDUCE"


def test_another_job_is_a_new_incident(talk: Talker, chat: CheckedChat) -> None:
    """A log of another torch, or one the person calls another job, replaces the incident."""
    old, new = (f"torch version: 2.{n}.0\nPyTorch version: 2.{n}.0\n" for n in (3, 6))
    _, other = talk(old + TIMEOUT_LOG, new + OOM_LOG)
    assert "2.3.0" in texts(other)
    assert "2.6.0" in texts(other)
    _, said = talk(TIMEOUT_LOG, f"this is another job:\n{OOM_LOG}")
    for reply in (other, said):
        kept = chat.conversation(reply.conversation).reading
        assert kept is not None
        assert len(kept.incident.ranks_reporting) == 1
        assert reply.changes == ()


def test_the_same_log_again_changes_nothing(talk: Talker) -> None:
    """A repeated paste is recognised."""
    first, again = talk(OOM_LOG, OOM_LOG)
    assert again.changes == ()
    assert first.diagnosis is not None
    assert again.diagnosis is not None
    assert first.diagnosis.causes == again.diagnosis.causes


def test_start_over_forgets_the_incident(talk: Talker, chat: CheckedChat) -> None:
    """“start over” clears the incident, the conversation goes on."""
    *_, reply, why = talk(OOM_LOG, "start over", "why?")
    kept = chat.conversation(reply.conversation)
    assert kept.reading is None
    assert len(kept.turns) == 3
    assert roles(why) == {"hint"}


# --- the outcome -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "focus"),
    [
        ("that was it", "rank-crash"),
        ("解决了，谢谢", "rank-crash"),
        ("不是这个，是共享内存", "shm-limits"),
        ("nope, it turned out to be a bad cable", "network-fault"),
    ],
)
def test_an_outcome_names_its_cause(
    talk: Talker, chat: CheckedChat, message: str, focus: str
) -> None:
    """Intent and focus tell a face what to keep as feedback; the reply claims to keep nothing."""
    _, reply = talk(OOM_LOG, message)
    assert reply.intent == "outcome"
    assert chat.conversation(reply.conversation).focus == focus
    assert reply.diagnosis is None
    right = focus == "rank-crash"
    assert reply.outcome == Outcome(
        verdict="right" if right else "wrong", cause="rank-crash", actual=focus
    )


def test_an_outcome_without_a_cause_is_open(talk: Talker) -> None:
    """“that was not it” says what was wrong, not what it was; without an incident nothing."""
    _, reply = talk(OOM_LOG, "that was not it")
    assert reply.outcome == Outcome(verdict="wrong", cause="rank-crash")
    (nothing,) = talk("解决了，谢谢")
    assert nothing.outcome is None


# --- the reply itself --------------------------------------------------------------------------


def test_every_intent_has_an_answerer() -> None:
    """The registry covers the vocabulary."""
    assert set(ANSWERERS) == set(get_args(Intent))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_suggestions_are_understood(chat: CheckedChat, language: Literal["zh", "en"]) -> None:
    """What is suggested means something when said, in its own language, and breaks nothing."""
    scripts = ([], [OOM_LOG], [TIMEOUT_LOG, "2"], [OOM_LOG, "similar cases"])
    for script in scripts:
        conversation = ""
        reply = None
        for message in script or ["hello"]:
            reply = chat.say(message, conversation=conversation, language=language)
            conversation = reply.conversation
        assert reply is not None
        assert 2 <= len(reply.suggestions) <= 4
        for suggestion in reply.suggestions:
            answer = chat.say(suggestion, conversation=conversation, language=language)
            assert answer.intent not in ("unclear", "off_topic"), suggestion
            assert answer.language == language


def test_numbers_count_up_and_turns_are_kept(talk: Talker, chat: CheckedChat) -> None:
    """Replies are numbered, and the conversation holds them without their diagnosis."""
    replies = talk(OOM_LOG, "why?", "thanks")
    kept = chat.conversation(replies[0].conversation)
    assert [reply.number for reply in replies] == [1, 2, 3]
    assert all(after.number == before.number + 1 for before, after in pairwise(replies))
    assert [turn.reply.statements for turn in kept.turns] == [r.statements for r in replies]
    assert all(turn.reply.diagnosis is None for turn in kept.turns)
    assert kept.turns[1].asked == "why?"


def test_an_uncited_claim_would_be_noticed() -> None:
    """The check behind every test of this folder finds a claim without a source."""
    bare = Statement(role="verdict", text="it is the network")
    note = Statement(role="note", text="noted")
    reply = Reply(conversation="c", number=1, intent="why", language="en", statements=(bare, note))
    assert uncited(reply) == [bare]


def test_the_same_talk_gives_the_same_words(talk: Talker) -> None:
    """Nothing in a reply depends on chance."""
    script = (TIMEOUT_LOG, IB, "why not the hardware?", "2", "怎么修", "show the wenet case")
    one, other = talk(*script), talk(*script)
    assert [r.statements for r in one] == [r.statements for r in other]
    assert [r.suggestions for r in one] == [r.suggestions for r in other]
