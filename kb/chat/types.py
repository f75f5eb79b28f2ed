"""Values of the chat: replies, what they rest on, and what is stored of a conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from kb.types.answer import Diagnosis
from kb.types.incident import LogReading
from kb.types.vocabulary import Language, Polarity

CitationKind = Literal["line", "text", "rank", "case", "cause", "setting", "source", "note"]
# What a statement is for; faces choose its look by it.
StatementRole = Literal[
    "verdict", "change", "evidence", "fix", "step", "check", "case", "warning", "note", "hint"
]
# What a message was taken for.
Intent = Literal[
    "log",  # a log was pasted: a new incident, or more of the same
    "tell",  # facts about the incident, or the answer to a check's question
    "happened",  # what happened, which rank, when
    "why",  # why this cause, why not that one
    "sure",  # how sure
    "fix",  # how to fix the first, the second, a named cause
    "next",  # which command now, what to collect
    "restart",  # does a restart help
    "case",  # show a case
    "similar",  # anything like this, here or on another backend
    "cause",  # what is this cause
    "setting",  # what does this variable do
    "how_to",  # a question of the field, about no incident
    "search",  # look something up without an incident
    "language",  # speak another language
    "outcome",  # that was it, that was not it
    "recap",  # what the person wrote of the incident so far
    "help",
    "courtesy",
    "impatient",  # wants the short of it
    "off_topic",
    "unclear",
]

# What a person does with a message, whatever the state of the conversation (`kb.chat.acts`).
Act = Literal[
    "tell",  # states a fact of the incident
    "suspect",  # names a cause they believe in, or not
    "fixed",  # says that it ended well, or what mended it
    "not_it",  # says that the cause or the fix shown was wrong
    "yes",
    "no",
    "unsure",
    "retract",  # takes something back or corrects it
    "happened",
    "why",
    "sure",
    "fix",
    "next",
    "restart",
    "similar",
    "case",
    "search",
    "cause",
    "setting",
    "how_to",  # a question of the field that is about no incident
    "option",  # picks from a list by its place
    "lang_zh",
    "lang_en",
    "recap",
    "new_job",
    "same_job",
    "help",
    "courtesy",
    "impatient",
    "off_topic",
]
# How far a message says the incident is (`kb.chat.acts`).
Progress = Literal[
    "none",  # says nothing of that, or what works besides
    "trying",  # something was changed, and the outcome is not known yet
    "failing",  # something was changed in vain
    "solved",  # it works again
]
# What a question asks for by its form, where words of it tell.
QuestionForm = Literal[
    "",
    "summary",  # all of it in a few lines
    "movement",  # why the ranking moved
    "standing",  # what it is by now
    "choice",  # which of several
    "plan",  # what to do, in what order
    "proposal",  # whether doing something would help
    "meaning",  # what something is or tells
    "how",  # how something is done
    "yes_no",  # whether something is so
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """What a statement rests on.

    `id` is that of a case, a cause, a setting or a note; `line` counts from 1 in the log (0: none),
    of several logs in `file`; `quote` is a literal piece of the redacted input or of the named
    entry; `url` is empty or http(s).
    """

    kind: CitationKind
    id: str = ""
    quote: str = ""
    line: int = 0
    url: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of a reply: plain text, untrusted parts included, with what it rests on.

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
    """How a message moved a cause's probability; `why` quotes the new evidence."""

    cause: str
    title: str
    before: float
    after: float
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentOutcome:
    """How the incident ended, by the person's word: what a face may store as feedback.

    `cause` is the one the answer named, `actual` the one it was, empty where nobody knows yet.
    The fields are those of the body of ``POST /v1/feedback``; its `diagnosis` is the conversation.
    """

    verdict: Literal["right", "wrong"]
    cause: str
    actual: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to one message.

    `diagnosis` is there when this message made or changed it. `suggestions` are things the person
    might say next, in the reply's language. `outcome` is there where the person has said yes to how
    it ended, which a question asked before: faces store it.
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
    outcome: IncidentOutcome | None = None

    def with_addition(self, addition: Reply) -> Reply:
        """The reply with what was added to it later (`Chat.follow_up`)."""
        return replace(
            self,
            statements=(*self.statements, *addition.statements),
            changes=addition.changes or self.changes,
            diagnosis=addition.diagnosis or self.diagnosis,
        )

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the cases it shows, in its order."""
        cited = (
            citation.id
            for statement in self.statements
            if statement.role == "case"
            for citation in statement.citations
            if citation.kind == "case"
        )
        return tuple(dict.fromkeys(cited))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A message (its redacted beginning) and the reply to it, stored without its diagnosis."""

    asked: str
    reply: Reply
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The answer to a check's question: which of its outcomes was observed, counted from 1.

    `quote` is what the person wrote; `is_denied` says that they saw nothing of that outcome.
    """

    check: str
    outcome: int
    quote: str
    is_denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedCause:
    """What the person says is why it happens, or is not why (`is_denied`).

    `weights` tell what each cause gains or loses by it, in nats.
    """

    quote: str
    weights: dict[str, float]
    is_denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStatement:
    """What a language model read in the words `quote` of a remark: a topic, and how it stands.

    Words that do not speak of trouble count by this, not by the cues in them.
    """

    quote: str
    topic: str
    polarity: Polarity


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the person said of how it ended: it was that cause, or not (`is_denied`)."""

    cause: str
    quote: str
    is_denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """All that is stored of a conversation. Times are seconds since the epoch.

    Attributes:
        language: of the last reply; the person asked for it where `language_pinned`.
        reading: the incident, as read from the logs and from a description that began it.
        remarks: what the person wrote about it since (redacted), oldest first; `misleading` are
            those sentences of them whose words alone mislead.
        asked_checks: checks asked about, none of them twice; `open_checks` holds the last one, as
            long as nobody has answered it.
        asked_for: the cause that led when the last of them was asked.
        stated_causes: what was said of why it happens.
        statements: what a language model read in the remarks.
        refused_tools: programs the person cannot or will not run.
        excluded: frameworks the person says the job does not use.
        others: the other incidents of the conversation, without their turns; `began` is how many
            turns there were before this one.
        endings: what was said of how it ended; of one cause the last word counts.
        asked_outcome: the outcome the last reply asked to confirm.
        focus: the cause spoken of last.
        shown_cases: cases shown so far.
        unanswered: the last question nothing of ours answers; a language model may.
        model_question: what the language model asked and nobody has answered yet.
        model_answers: its earlier questions, each with what the person answered.
    """

    id: str
    language: Language | None = None
    language_pinned: bool = False
    created_s: float
    reading: LogReading | None = None
    remarks: tuple[str, ...] = ()
    misleading: tuple[str, ...] = ()
    check_results: tuple[CheckResult, ...] = ()
    stated_causes: tuple[StatedCause, ...] = ()
    statements: tuple[ReadStatement, ...] = ()
    refused_tools: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    others: tuple[Conversation, ...] = ()
    began: int = 0
    asked_checks: tuple[str, ...] = ()
    open_checks: tuple[str, ...] = ()
    asked_for: str = ""
    endings: tuple[Ending, ...] = ()
    asked_outcome: IncidentOutcome | None = None
    focus: str = ""
    shown_cases: tuple[str, ...] = ()
    unanswered: str = ""
    model_question: str = ""
    model_answers: tuple[tuple[str, str], ...] = ()
    turns: tuple[Turn, ...] = ()

    def excluded_by(self, frameworks: tuple[str, ...]) -> bool:
        """Whether something made for `frameworks` is for none that the job may use."""
        return bool(frameworks) and set(frameworks) <= set(self.excluded)

    @property
    def is_over(self) -> bool:
        """Whether the person has said how it ended."""
        return any(not ending.is_denied for ending in self.endings)
