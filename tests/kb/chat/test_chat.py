"""The conversation: what the engine keeps, changes, answers and asks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

import pytest

from kb.chat.answers import ANSWERERS
from kb.chat.types import Intent, Reply, Statement
from kb.service import Service
from tests.kb.chat.conftest import OOM_LOG, TIMEOUT_LOG, CheckedChat, uncited

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
    assert IB in change.why[0]
    assert share(first, "network-config") < share(told, "network-config")
    said = next(item for item in told.statements if item.role == "change")
    assert IB in [citation.quote for citation in said.citations]


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


# --- the question ------------------------------------------------------------------------------


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
    """“用中文说” says the verdict again in Chinese and holds until another is asked for."""
    *_, chinese, still, english = talk(
        OOM_LOG, "用中文说", "how sure are you?", "in English please"
    )
    assert (chinese.language, still.language, english.language) == ("zh", "zh", "en")
    assert "rank 2" in texts(chinese)
    assert "最可能的根因" in texts(chinese)
    assert "most likely cause" in texts(english)


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
