"""Whole conversations as tired engineers type them: what is answered, and what it changes.

The sentences of spoken.yaml were written before the patterns were looked at: 80 in each language.
At first sight 88 of the 160 got a good answer. The engine was mended against the half marked `dev`
(44 of 81, then 80); of the other half, not looked at meanwhile, 44 of 79 were right before and 52
after: expect two in three of words nobody has met. Some of that half were mended for since.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kb.chat.incident import Judged, judge
from kb.chat.types import Reply
from kb.service import Service
from tests.kb.chat.conftest import TIMEOUT_LOG, CheckedChat

SPOKEN: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "spoken.yaml").read_text(encoding="utf-8")
)
KINDS = sorted({item["kind"] for item in SPOKEN})
UNDERSTOOD = [item for item in SPOKEN if not item.get("missed")]
MOVED = 1e-6  # probability from which a ranking counts as another
MAY_RISE = 0.02  # of a cause denied: the others share what one loses


def shares(judged: Judged) -> dict[str, float]:
    """The causes' probabilities."""
    return {cause.id: cause.probability for cause in judged.diagnosis.causes}


def known(service: Service, chat: CheckedChat, conversation: str) -> Judged:
    """What the conversation's incident means now."""
    judged = judge(service, chat.conversation(conversation), "en")
    if judged is None:
        pytest.fail("the conversation has no incident")
    return judged


def faults_of_reply(item: Mapping[str, Any], reply: Reply) -> list[str]:
    """What the reply itself lacks of what the sentence asks for."""
    cited = {citation.id for said in reply.statements for citation in said.citations}
    kinds = {citation.kind for said in reply.statements for citation in said.citations}
    outcome = reply.outcome
    ended = {outcome.verdict, outcome.actual, outcome.cause} if outcome else set()
    faults = {
        f"taken for {reply.intent}": reply.intent in item.get("intent", [reply.intent]),
        "the cause is not named": not item.get("about") or bool(cited & set(item["about"])),
        "no command": not item.get("command") or any(s.command for s in reply.statements),
        "no case": not item.get("case") or "case" in kinds,
        f"in {reply.language}": item.get("language", reply.language) == reply.language,
        f"outcome {outcome}": not item.get("verdict") or item["verdict"] in ended,
        f"actual {outcome}": not item.get("actual") or bool(ended & set(item["actual"])),
    }
    return [name for name, holds in faults.items() if not holds]


def faults_of_change(
    item: Mapping[str, Any], first: Mapping[str, float], before: Mapping[str, float], after: Judged
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
    first = shares(known(service, chat, conversation))
    for text in item.get("before", []):
        chat.say(text, conversation=conversation)
    before = shares(known(service, chat, conversation))
    reply = chat.say(item["text"], conversation=conversation)
    after = known(service, chat, conversation)
    found = [*faults_of_reply(item, reply), *faults_of_change(item, first, before, after)]
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
    assert len(UNDERSTOOD) >= 0.9 * len(SPOKEN)
    assert {item["kind"] for item in UNDERSTOOD} == set(KINDS)


def test_a_version_and_a_setting_are_taken_back(service: Service, chat: CheckedChat) -> None:
    """They are gone with the remark that named them; the log's own stay."""
    conversation = chat.say(f"{TIMEOUT_LOG}NCCL_DEBUG=INFO\n").conversation
    chat.say("we run torch 2.1.0 with NCCL_P2P_DISABLE=1", conversation=conversation)
    told = known(service, chat, conversation).reading.incident
    assert told.versions["torch"] == "2.1.0"
    assert told.settings["NCCL_P2P_DISABLE"] == "1"
    chat.say("forget what I said about torch", conversation=conversation)
    left = known(service, chat, conversation).reading.incident
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
