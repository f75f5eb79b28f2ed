"""Answers about what happened: rank, line, file, how long."""

from __future__ import annotations

from pathlib import Path

from kb.service import Service
from tests.kb.chat.conftest import (
    OOM_LOG,
    TIMEOUT_LOG,
    CheckedChat,
    Talker,
    texts,
)


def test_how_long_tells_the_seconds(talk: Talker) -> None:
    """“how long did it hang” is answered from the log."""
    _, reply = talk(TIMEOUT_LOG, "how long did it hang")
    assert reply.intent == "happened"
    assert "waited 600 s" in texts(reply)


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
