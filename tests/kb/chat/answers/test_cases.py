"""Answers about cases: shown, similar, searched."""

from __future__ import annotations

from kb.service import Service
from tests.kb.chat.conftest import (
    OOM_LOG,
    TIMEOUT_LOG,
    Talker,
    cited,
)


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
