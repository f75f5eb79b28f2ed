"""What tests of the chat share: the real service, and an engine over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.chat.chat import Chat, open_intents
from kb.chat.intents import IntentReader
from kb.chat.types import Reply, Statement
from kb.service import Service
from kb.settings import Settings

Talker = Callable[..., list[Reply]]  # says several messages in one conversation

UNCITED = ("note", "hint")  # roles of statements about the conversation itself

OOM_LOG = """\
[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.
[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, \
Timeout(ms)=600000) ran for 600068 milliseconds before timing out.
"""
TIMEOUT_LOG = """\
[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, \
Timeout(ms)=600000) ran for 600068 milliseconds before timing out.
[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, \
Timeout(ms)=600000) ran for 600112 milliseconds before timing out.
"""


def uncited(reply: Reply) -> list[Statement]:
    """Statements of a reply that claim something and rest on nothing."""
    return [
        statement
        for statement in reply.statements
        if statement.role not in UNCITED
        and not any(
            citation.id or citation.quote or citation.url for citation in statement.citations
        )
    ]


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


class CheckedChat(Chat):
    """A chat that refuses to give a reply with an uncited claim: every test checks it so."""

    def say(self, message: str, **options: object) -> Reply:  # type: ignore[override]
        """Answer, and check the reply."""
        reply = super().say(message, **options)  # type: ignore[arg-type]
        missing = uncited(reply)
        if missing:
            pytest.fail(f"uncited in the answer to {message[:80]!r}: {missing}")
        return reply


@dataclass
class Clock:
    """Time that passes when told to."""

    now_s: float = 1_750_000_000.0

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self.now_s


@pytest.fixture(scope="session")
def service(built_home: Callable[[], Path]) -> Iterator[Service]:
    """The real service over the shipped data."""
    opened = open_service(Settings(home=built_home()))
    yield opened
    opened.close()


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture(scope="session")
def intents(service: Service) -> IntentReader:
    """What reads messages, opened once: it keeps nothing of them."""
    return open_intents(service.settings.data, service.knowledge)


@pytest.fixture
def chat(
    service: Service, clock: Clock, intents: IntentReader, monkeypatch: pytest.MonkeyPatch
) -> CheckedChat:
    """A chat; every reply is checked for uncited claims."""
    monkeypatch.setattr("kb.chat.chat.open_intents", lambda *_: intents)
    return CheckedChat(service, clock=clock)


@pytest.fixture
def talk(chat: CheckedChat) -> Callable[..., list[Reply]]:
    """Says several messages in one conversation and gives all replies."""

    def run(*messages: str) -> list[Reply]:
        replies: list[Reply] = []
        conversation = ""
        for message in messages:
            replies.append(chat.say(message, conversation=conversation))
            conversation = replies[-1].conversation
        return replies

    return run
