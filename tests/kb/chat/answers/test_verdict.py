"""Answers to a log and to remarks about it."""

from __future__ import annotations

import pytest

from kb.service import Service
from tests.kb.chat.conftest import (
    OOM_LOG,
    TIMEOUT_LOG,
    Talker,
    cited,
    roles,
    share,
    texts,
)


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
    lead = expected.causes[0].title
    assert verdict.text.startswith(f"{expected.headline}. The most likely cause: {lead}")
    assert [item.role for item in reply.statements[:3]] == ["verdict", "fix", "evidence"]
    assert expected.first_fix is not None
    assert reply.statements[1].command == expected.first_fix.command
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


def test_a_text_without_a_timeout_claims_nothing(talk: Talker) -> None:
    """No cause is named for a log that shows no timeout, and questions say so."""
    build = "error TS2304: Cannot find name 'foo'.\nnpm ERR! code ELIFECYCLE\n" * 8
    reply, why = talk(build, "why?")
    assert reply.diagnosis is not None
    assert reply.diagnosis.status == "no_timeout"
    assert roles(reply) == {"note"}
    assert reply.question is None
    assert roles(why) == {"hint"}


def test_the_first_fix_is_for_the_error_seen(talk: Talker) -> None:
    """A log that shows CUDA out of memory gets the fix of that, not of another crash."""
    (reply,) = talk(OOM_LOG)
    first = next(statement for statement in reply.statements if statement.role == "fix")
    assert "PYTORCH_CUDA_ALLOC_CONF" in first.command


@pytest.mark.parametrize("remark", ["the network is fine", "网络没问题"])
def test_a_denial_is_taken_for_what_it_is_worth(talk: Talker, remark: str) -> None:
    """It is told whether it counts against the cause it names; nothing is searched for."""
    first, reply = talk(TIMEOUT_LOG, remark)
    assert reply.intent == "tell"
    assert share(reply, "network-config") <= share(first, "network-config")
    title = {"zh": "网络配置错误", "en": "The network is configured wrongly"}[reply.language]
    assert title in texts(reply)


def test_who_rules_a_cause_out_is_believed_somewhat(talk: Talker) -> None:
    """It falls, and the words that made it fall are quoted."""
    _, reply = talk(TIMEOUT_LOG, "not a software bug")
    change = next(item for item in reply.changes if item.cause == "software-version")
    assert 0 < change.after < change.before
    assert change.why == ("not a software bug",)


def test_a_denial_of_what_is_unlikely_anyway_is_noted(talk: Talker) -> None:
    """Nothing to move: it is said against which cause it counts."""
    _, reply = talk(TIMEOUT_LOG, "the cables are fine, we looked at each of them")
    assert "speaks against “The network failed during the run”" in texts(reply)
    assert reply.changes == ()
