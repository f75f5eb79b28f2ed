"""Values of the chat: what is said, what it rests on, what is kept of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kb.types import Diagnosis, Language, LogReading

CONVERSATION_FORMAT = 1

CitationKind = Literal["line", "text", "rank", "case", "cause", "setting", "source"]
# What a statement is for; faces choose its look by it.
StatementRole = Literal[
    "verdict", "change", "evidence", "fix", "step", "check", "case", "warning", "note", "hint"
]
# What a message was taken for.
Intent = Literal[
    "log",  # a log was pasted: a new incident, or more of the same
    "tell",  # facts about the incident, or the answer to the question asked
    "happened",  # what happened, which rank, when
    "why",  # why this cause, why not that one
    "sure",  # how sure
    "fix",  # how to mend the first, the second, a named cause
    "next",  # which command now, what to collect
    "restart",  # does a restart help
    "case",  # show a case
    "similar",  # anything like this, here or on another backend
    "cause",  # what is this cause
    "setting",  # what does this variable do
    "search",  # look something up without an incident
    "language",  # speak another language
    "outcome",  # that was it, that was not it
    "recap",  # what was told so far
    "help",
    "courtesy",
    "off_topic",
    "unclear",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """What a statement rests on.

    `id` is that of a case, a cause or a setting; `line` counts from 1 in the log (0: none), of
    several logs in `file`; `quote` is a literal piece of the redacted input or of the named entry;
    `url` is empty or http(s).
    """

    kind: CitationKind
    id: str = ""
    quote: str = ""
    line: int = 0
    url: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One thing said: plain text, untrusted parts included, with what it rests on.

    Only the roles ``note`` and ``hint`` (talk about the conversation itself) may lack citations.
    `command` is for copying, empty where there is none.
    """

    role: StatementRole
    text: str
    citations: tuple[Citation, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An observation the person may report, as the answer to a question."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The one question that separates the leading causes best; `command` shows how to find out."""

    check: str
    text: str
    options: tuple[Option, ...]
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a cause's probability moved by what was said; `why` quotes the new evidence."""

    cause: str
    title: str
    before: float
    after: float
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the incident ended, by the person's word: what a face may keep as feedback.

    `cause` is the one the answer named, `actual` the one it was, empty where nobody knows yet.
    The fields are those of the body of ``POST /v1/feedback``; its `diagnosis` is the conversation.
    """

    verdict: Literal["right", "wrong"]
    cause: str
    actual: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the assistant says to one message.

    `diagnosis` is there when this message made or changed it. `suggestions` are things the person
    might say next, in the reply's language. `source` tells whether a language model worded it.
    `outcome` is there where the person said how it ended; nothing of it is kept yet.
    """

    conversation: str
    number: int
    intent: Intent
    language: Language
    statements: tuple[Statement, ...]
    question: Question | None = None
    changes: tuple[Change, ...] = ()
    diagnosis: Diagnosis | None = None
    suggestions: tuple[str, ...] = ()
    outcome: Outcome | None = None
    source: Literal["engine", "model"] = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A message (redacted) with the reply to it; the reply is kept without its diagnosis."""

    asked: str
    reply: Reply
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer to a check: which of its outcomes was observed, counted from 1."""

    check: str
    outcome: int
    quote: str
    denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """All that is kept of a conversation. Times are seconds since the epoch.

    `reading` is the incident; `told` what the person said of it (redacted), `focus` the cause
    spoken of last, `asked` the checks asked about, the last one being open while `open`.
    `pinned` says that the person asked for the language.
    """

    id: str
    format: int = CONVERSATION_FORMAT
    language: Language | None = None
    pinned: bool = False
    created_s: float
    reading: LogReading | None = None
    told: tuple[str, ...] = ()
    answered: tuple[Answered, ...] = ()
    asked: tuple[str, ...] = ()
    open: bool = False
    focus: str = ""
    shown: tuple[str, ...] = ()  # cases shown so far
    turns: tuple[Turn, ...] = ()
