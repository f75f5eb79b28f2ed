"""A chat that keeps the contract of `kb.chat.chat.Chat`, for the faces' own tests."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kb.chat.types import (
    Change,
    Citation,
    Conversation,
    IncidentOutcome,
    Option,
    Question,
    Reply,
    Statement,
    Turn,
)
from kb.errors import InputError, NotFoundError
from kb.types.incident import LogReading
from kb.types.vocabulary import Language

STATEMENTS = (
    Statement(
        role="evidence",
        text="Rank 3 ran out of memory.\nLine two.",
        citations=(Citation(kind="line", line=2, quote="CUDA out of memory"),),
    ),
    Statement(
        role="fix",
        text="少用显存。",
        citations=(Citation(kind="case", id="first-case", url="https://example.org/first-case"),),
        command="python train.py \\\n  --batch 4",
    ),
)
QUESTION = Question(
    check="dmesg",
    text="What does dmesg say?",
    options=(Option(number=1, text="an Xid"), Option(number=2, text="nothing")),
    command="dmesg -T",
)
CHANGES = (Change(cause="rank-crash", title="One rank crashed", before=0.5, after=0.7, why=("q",)),)


@dataclass
class FakeChat:
    """Says the same to everything, or raises `failure`; every reply offers to keep `outcome`."""

    failure: Exception | None = None
    outcome: IncidentOutcome | None = None
    asked: list[tuple[str, str, Language | None]] = field(default_factory=list)
    begun: list[LogReading] = field(default_factory=list)
    kept: dict[str, Conversation] = field(default_factory=dict)

    def follow_up(self, identifier: str, *, wait_s: float | None = None) -> Reply | None:
        """No language model adds anything."""
        return None

    def reset(self) -> None:
        """As new."""
        self.failure = self.outcome = None
        self.asked.clear()
        self.begun.clear()
        self.kept.clear()

    def say(
        self,
        message: str,
        *,
        conversation: str = "",
        language: Language | None = None,
        create: bool = False,
    ) -> Reply:
        """The reply."""
        if not message.strip():
            raise InputError("the message is empty", todo="write something")
        if message == "refused":
            raise InputError("the input is binary", todo="pass a text log")
        identifier = self._open(conversation, create=create)
        self.asked.append((message, identifier, language))
        if self.failure:
            raise self.failure
        return self._reply(identifier, message, language)

    def begin(
        self,
        reading: LogReading,
        *,
        conversation: str = "",
        language: Language | None = None,
        create: bool = False,
    ) -> Reply:
        """The reply to a log read elsewhere."""
        self.begun.append(reading)
        return self._reply(self._open(conversation, create=create), "", language)

    def conversation(self, identifier: str) -> Conversation:
        """What is kept."""
        if identifier not in self.kept:
            raise NotFoundError(f"there is no conversation {identifier!r}", todo="begin anew")
        return self.kept[identifier]

    def forget(self, identifier: str) -> bool:
        """Delete it."""
        return self.kept.pop(identifier, None) is not None

    def _open(self, identifier: str, *, create: bool) -> str:
        if identifier and not create:
            self.conversation(identifier)
        identifier = identifier or f"conversation-{len(self.kept) + 1}"
        self.kept.setdefault(identifier, Conversation(id=identifier, created_s=1.0))
        return identifier

    def _reply(self, identifier: str, message: str, language: Language | None) -> Reply:
        kept = self.kept[identifier]
        reply = Reply(
            conversation=identifier,
            number=len(kept.turns) + 1,
            intent="why",
            language=language or "en",
            statements=STATEMENTS,
            question=QUESTION,
            changes=CHANGES,
            suggestions=("How sure are you?",),
            outcome=self.outcome,
        )
        turn = Turn(asked=message, reply=reply, at_s=2.0)
        self.kept[identifier] = replace(kept, turns=(*kept.turns, turn))
        return reply
