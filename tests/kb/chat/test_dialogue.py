"""Whole conversations as tired engineers type them: what is answered, and what it changes.

The sentences of dialogue.yaml were written before the patterns were looked at: 80 in each language.
At first sight 88 of the 160 got a good answer. The engine was mended against the half marked `dev`
(44 of 81, then 80); of the other half, not looked at meanwhile, 44 of 79 were right before and 52
after: expect two in three of words nobody has met. Some of that half were mended for since.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from kb.chat.answers import ANSWERS
from kb.chat.assessment import Assessment, assess
from kb.chat.types import IncidentOutcome, Intent, Reply, Statement
from kb.service import Service
from tests.kb.chat.conftest import (
    OOM_LOG,
    TIMEOUT_LOG,
    CheckedChat,
    Talker,
    cited,
    roles,
    texts,
    uncited,
)

IB = "it's InfiniBand, 2 nodes are fine, 3 hang"
SENTENCES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "dialogue.yaml").read_text(encoding="utf-8")
)
KINDS = sorted({item["kind"] for item in SENTENCES})
UNDERSTOOD = [item for item in SENTENCES if not item.get("missed")]
MOVED = 1e-6  # probability from which a ranking counts as another
MAY_RISE = 0.02  # of a cause denied: the others share what one loses


def shares(assessment: Assessment) -> dict[str, float]:
    """The causes' probabilities."""
    return {cause.id: cause.probability for cause in assessment.diagnosis.causes}


def assessed(service: Service, chat: CheckedChat, conversation: str) -> Assessment:
    """What the conversation's incident means now."""
    assessment = assess(service, chat.conversation(conversation), "en")
    if assessment is None:
        pytest.fail("the conversation has no incident")
    return assessment


def faults_of_reply(
    item: Mapping[str, Any], reply: Reply, asked: IncidentOutcome | None
) -> list[str]:
    """What the reply itself lacks of what the sentence asks for."""
    cited = {citation.id for said in reply.statements for citation in said.citations}
    kinds = {citation.kind for said in reply.statements for citation in said.citations}
    ended = {asked.verdict, asked.actual, asked.cause} if asked else set()
    faults = {
        f"taken for {reply.intent}": reply.intent in item.get("intent", [reply.intent]),
        "the cause is not named": not item.get("about") or bool(cited & set(item["about"])),
        "no command": not item.get("command") or any(s.command for s in reply.statements),
        "no case": not item.get("case") or "case" in kinds,
        f"in {reply.language}": item.get("language", reply.language) == reply.language,
        f"outcome {asked}": not item.get("verdict") or item["verdict"] in ended,
        f"actual {asked}": not item.get("actual") or bool(ended & set(item["actual"])),
    }
    return [name for name, holds in faults.items() if not holds]


def faults_of_change(
    item: Mapping[str, Any],
    first: Mapping[str, float],
    before: Mapping[str, float],
    after: Assessment,
) -> list[str]:
    """What the sentence changed that it should not, or did not change."""
    now, incident = shares(after), after.reading.incident
    moved = {cause: now[cause] - before.get(cause, 0.0) for cause in now}
    back = all(abs(now[cause] - first[cause]) <= MOVED for cause in first)
    faults = {
        "moved": not item.get("still") or all(abs(by) <= MOVED for by in moved.values()),
        "none rose": not item.get("up") or any(moved[cause] > 0 for cause in item["up"]),
        "none fell": not item.get("down") or any(moved[cause] < 0 for cause in item["down"]),
        "rose": all(moved[cause] <= MAY_RISE for cause in item.get("notup", [])),
        "not undone": not item.get("undone") or back,
        "still above": all(now[c] <= first[c] + MOVED for c in item.get("notabove", [])),
        f"versions {incident.versions}": all(
            incident.versions.get(name, "").startswith(value)
            for name, value in item.get("versions", {}).items()
        ),
        f"settings {incident.settings}": item.get("settings", {}).items()
        <= incident.settings.items(),
        "still set": not set(item.get("unset", [])) & set(incident.settings),
    }
    return [name for name, holds in faults.items() if not holds]


def faults(item: Mapping[str, Any], service: Service, chat: CheckedChat) -> list[str]:
    """What is wrong with the answer to a sentence said after a log and what led up to it."""
    conversation = chat.say(TIMEOUT_LOG).conversation
    first = shares(assessed(service, chat, conversation))
    for text in item.get("before", []):
        chat.say(text, conversation=conversation)
    before = shares(assessed(service, chat, conversation))
    reply = chat.say(item["text"], conversation=conversation)
    after = assessed(service, chat, conversation)
    asked = chat.conversation(conversation).asked_outcome
    found = [*faults_of_reply(item, reply, asked), *faults_of_change(item, first, before, after)]
    place = item.get("place")
    if place:
        order = sorted(before, key=lambda cause: (-before[cause], cause))
        leads = [c.id for c in reply.statements[0].citations if c.kind == "cause"][:1]
        if order[place - 1] not in (chat.conversation(conversation).focus, *leads):
            found.append(f"not about place {place}")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_is_understood(kind: str, service: Service, chat: CheckedChat) -> None:
    """Each sentence of the kind gets the intent, the citations and the changes it calls for."""
    wrong = {
        item["text"]: found
        for item in UNDERSTOOD
        if item["kind"] == kind and (found := faults(item, service, chat))
    }
    assert wrong == {}


def test_most_is_understood() -> None:
    """What is known to be missed is a small part, and no kind is missed altogether."""
    assert len(UNDERSTOOD) >= 0.88 * len(SENTENCES)
    assert {item["kind"] for item in UNDERSTOOD} == set(KINDS)


def test_a_version_and_a_setting_are_taken_back(service: Service, chat: CheckedChat) -> None:
    """They are gone with the remark that named them; the log's own stay."""
    conversation = chat.say(f"{TIMEOUT_LOG}NCCL_DEBUG=INFO\n").conversation
    chat.say("we run torch 2.1.0 with NCCL_P2P_DISABLE=1", conversation=conversation)
    told = assessed(service, chat, conversation).reading.incident
    assert told.versions["torch"] == "2.1.0"
    assert told.settings["NCCL_P2P_DISABLE"] == "1"
    chat.say("forget what I said about torch", conversation=conversation)
    left = assessed(service, chat, conversation).reading.incident
    assert "torch" not in left.versions
    assert dict(left.settings) == {"NCCL_DEBUG": "INFO"}


@pytest.mark.parametrize("question", ["is it the network?", "是网络的问题吗？"])
def test_before_a_log_a_cause_is_told_of_in_general(chat: CheckedChat, question: str) -> None:
    """What the causes named are, with their sources, and that a log is needed to tell."""
    reply = chat.say(question)
    named = {c.id for s in reply.statements for c in s.citations if c.kind == "cause"}
    assert named == {"network-config", "network-fault"}
    assert reply.statements[-1].role == "hint"
    assert all(statement.role != "case" for statement in reply.statements)


def test_what_cannot_be_reached_at_the_start_is_diagnosed(chat: CheckedChat) -> None:
    """An address that gRPC cannot reach is a failed start of a distributed job."""
    (cause, *_) = chat.say("failed to connect to all addresses").diagnosis.causes  # type: ignore[union-attr]
    assert cause.id in ("network-config", "rendezvous")


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


def test_a_question_beside_facts_is_answered_too(talk: Talker) -> None:
    """Facts and a question in one message: the change first, then the answer."""
    _, reply = talk(TIMEOUT_LOG, f"{IB}. How do I fix it?")
    assert reply.intent == "tell"
    assert {"change", "fix", "step"} <= roles(reply)


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


@pytest.mark.parametrize(
    ("message", "intent"),
    [
        ("how sure are you?", "sure"),
        ("will a restart help?", "restart"),
        ("what is shm-limits?", "cause"),
        ("which rank?", "happened"),
        ("thanks", "courtesy"),
        ("help", "help"),
        ("怎么办", "next"),
    ],
)
def test_intents_with_and_without_an_incident(talk: Talker, message: str, intent: Intent) -> None:
    """Each is meaning before a log as well, and then asks for one or answers in general."""
    (before,) = talk(message)
    _, after = talk(OOM_LOG, message)
    assert (before.intent, after.intent) == (intent, intent)
    assert before.diagnosis is None


def test_the_language_changes_and_stays(talk: Talker) -> None:
    """“用中文说” says the last answer again in Chinese and holds until another is asked for."""
    *_, chinese, still, english = talk(
        OOM_LOG, "用中文说", "how sure are you?", "in English please"
    )
    assert (chinese.language, still.language, english.language) == ("zh", "zh", "en")
    assert "rank 2" in texts(chinese)
    assert "最可能的根因" in texts(chinese)
    # what was said in Chinese before is only pointed at there
    assert {s.role for s in still.statements} <= {item.role for item in english.statements[1:]}
    assert english.statements[1].role == still.statements[0].role == "verdict"
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


def test_the_face_may_set_the_language(chat: CheckedChat) -> None:
    """A face's language holds, unless the person asked for another in words."""
    reply = chat.say(OOM_LOG, language="zh")
    asked = chat.say("in English please", conversation=reply.conversation, language="zh")
    after = chat.say("why?", conversation=reply.conversation, language="zh")
    assert (reply.language, asked.language, after.language) == ("zh", "en", "en")


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


def test_every_intent_has_an_answerer() -> None:
    """The registry covers the vocabulary."""
    assert set(ANSWERS) == set(get_args(Intent))


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


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("will a restart help?", "too unsure to say whether a restart helps"),
        ("重启有用吗？", "还不能据此说重启有没有用"),
    ],
    ids=["en", "zh"],
)
def test_of_a_cause_that_is_not_likely_no_restart_is_judged(
    talk: Talker, question: str, said: str
) -> None:
    """Below one half it is told how unsure the cause is; of a likely cause the advice is told."""
    first, unsure = talk(TIMEOUT_LOG, question)
    assert first.diagnosis is not None
    assert first.diagnosis.causes[0].probability < 0.5
    assert said in unsure.statements[0].text
    first, likely = talk(OOM_LOG, question)
    assert first.diagnosis is not None
    assert first.diagnosis.causes[0].probability >= 0.5
    assert said not in likely.statements[0].text
