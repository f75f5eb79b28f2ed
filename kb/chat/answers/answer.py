"""The answer to one request: what it is made from, and its statements as they are added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from kb.chat.assessment import Assessment
from kb.chat.checks import is_foreign
from kb.chat.meaning import UserRequest
from kb.chat.passages import PassageFinder
from kb.chat.phrases import Phrasebook
from kb.chat.repeats import ShownTexts
from kb.chat.types import (
    Change,
    Citation,
    Conversation,
    IncidentOutcome,
    Question,
    Statement,
    StatementRole,
)
from kb.diagnose.wording import Placed, model_percent, place
from kb.knowledge.framework_names import framework_names
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge
from kb.text.tokenizer import default_tokenizer
from kb.types.answer import Diagnosis, Evidence, RankedCause
from kb.types.entries import NoteHit
from kb.types.incident import Incident
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.service import Service

QUOTE_CHARS = 200
INLINE_CHARS = 120  # of a quote inside a sentence; the citation has more
MAX_SOURCES = 3  # pages cited for one statement
MIN_NATS = 0.15  # weaker evidence is not worth a tired person's time
REASONS = 3  # shown of one line
SHORT_QUESTION = 4  # words of a question that leans on what the message says before it
Switch = Literal["", "other", "earlier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a message did to the conversation, and what is to be answered.

    Attributes:
        conversation: as it is now; `previous` as it was, where the incident's causes may move.
        asks: whether the reply ends with a question.
        event: merged, repeated, other, asked_new, answered, skip, complaint, retracted, ended,
            helped, trying, settled, or empty.
        other_job: why the logs pasted are of another job.
        retracted_remarks: those the message took back; `instead` is what counts in their place.
        shown_changes: those of an earlier reply that is repeated.
        outcome: how it ended, where the person has said yes to it.
        switched: whether the message turned to another incident, or to an earlier one.
    """

    conversation: Conversation
    requests: tuple[UserRequest, ...]
    previous: Conversation | None = None
    asks: bool = True
    event: str = ""
    other_job: str = ""
    retracted_remarks: tuple[str, ...] = ()
    instead: str = ""
    shown_changes: tuple[Change, ...] = ()
    outcome: IncidentOutcome | None = None
    switched: Switch = ""


@dataclass(kw_only=True)
class IntentAnswer:
    """The answer to one request, put together by the function of its intent.

    Attributes:
        assessment: of the incident now; `before` that before the message, `changes` between them.
        question: the next one to ask.
        passages: finds sentences of the knowledge that answer a free question.
        is_alone: whether nothing else is answered of the message.
        shown: what earlier replies said.
        statements, focus, cases: what is said, the cause it is about, the cases it shows.
    """

    service: Service
    phrases: Phrasebook
    passages: PassageFinder
    words: Words
    step: Step
    request: UserRequest
    assessment: Assessment | None = None
    before: Assessment | None = None
    changes: tuple[Change, ...] = ()
    question: Question | None = None
    statements: list[Statement] = field(default_factory=list)
    focus: str = ""
    cases: tuple[str, ...] = ()
    is_alone: bool = True
    shown: ShownTexts = field(default_factory=ShownTexts)

    @property
    def question_text(self) -> str:
        """What is asked; a few words lean on what the message says before them."""
        text = self.request.text
        is_short = len(default_tokenizer().tokens(text)) <= SHORT_QUESTION
        return f"{self.request.context} {text}".strip() if is_short else text

    @property
    def conversation(self) -> Conversation:
        """The conversation as the message left it."""
        return self.step.conversation

    @property
    def knowledge(self) -> Knowledge:
        """All knowledge."""
        return self.service.knowledge

    def is_for_others(self, frameworks: Iterable[str], command: str = "") -> bool:
        """Whether something is for frameworks the job does not use, by those told and denied.

        It is made for any of `frameworks`, and for what `command` (or another text) names. What the
        question itself names is for whoever asks.
        """
        if self.assessment is None:
            return False
        names = framework_names(self.knowledge.framework_names)
        excluded = {*self.conversation.excluded}
        uses = self.assessment.verdict.uses | names.named(self.request.text)
        named = names.named(command)
        named -= names.of_group(named, "base")  # “FSDP of torch” is for FSDP
        made_for = frozenset(frameworks)
        if (made_for | named) & excluded:
            return not (made_for | named) & uses
        foreign = (is_foreign(names, one, uses) for one in (made_for, named))
        return any(foreign) or names.foreign(command, uses)

    @property
    def language(self) -> Language:
        """The language of the reply."""
        return self.words.language

    @property
    def incident(self) -> Incident:
        """The incident, without anything known of it where there is none."""
        return self.assessment.reading.incident if self.assessment else Incident()

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The incident's diagnosis with all causes."""
        return self.assessment.diagnosis if self.assessment else None

    @cached_property
    def ranked(self) -> dict[str, RankedCause]:
        """The causes by id, best first."""
        return {item.id: item for item in self.diagnosis.causes} if self.diagnosis else {}

    @property
    def leading(self) -> RankedCause | None:
        """The first cause."""
        return next(iter(self.ranked.values()), None)

    @cached_property
    def subject(self) -> str:
        """The cause the request speaks of: named, numbered, spoken of last, or leading."""
        order = list(self.ranked)
        named = list(self.request.causes)
        if named and order and all(cause in self.ranked for cause in named):
            return min(named, key=order.index)
        if named:
            return named[0]
        if not self.request.is_fix_place and 1 <= self.request.ordinal <= len(order):
            return order[self.request.ordinal - 1]
        if self.conversation.focus in self.knowledge.cause_by_id:
            return self.conversation.focus
        return order[0] if order else ""

    def title(self, cause: str) -> str:
        """A cause's title."""
        entry = self.knowledge.cause_by_id.get(cause)
        return entry.title.get(self.language) if entry else cause

    def percent(self, cause: str) -> str:
        """A cause's probability in the diagnosis; empty where there is none."""
        ranked = self.ranked.get(cause)
        return model_percent(ranked.probability) if ranked else ""

    def cite(self, cause: str, quote: str = "") -> Citation:
        """A cause by a piece of its entry, or by its title."""
        return Citation(kind="cause", id=cause, quote=quote or self.title(cause))

    # --- what is said ----------------------------------------------------------------------

    def say(
        self,
        role: StatementRole,
        label: str,
        citations: Sequence[Citation] = (),
        command: str = "",
        **values: object,
    ) -> None:
        """Add a statement in the words of `label`."""
        text = self.words(label, **values)
        if text.endswith(("..", "。。")) and not text.endswith("..."):
            text = text[:-1]  # a sentence was put into a sentence
        self.statements.append(
            Statement(role=role, text=text, citations=tuple(citations), command=command)
        )

    def say_of(
        self,
        role: StatementRole,
        label: str,
        cause: str,
        *,
        quote: str = "",
        pages: Sequence[str] = (),
        command: str = "",
        **values: object,
    ) -> None:
        """Add a statement about a cause; the label may name its title and its probability.

        It cites the cause, by `quote` of its entry or by its title, and those pages.
        """
        values = {"title": self.title(cause), "percent": self.percent(cause)} | values
        self.say(role, label, (self.cite(cause, quote), *cite_pages(pages)), command, **values)

    def say_need_log(self) -> None:
        """Nothing to speak of yet: no log, or none with a timeout in it."""
        self.say("hint", "chat.need_log" if self.diagnosis is None else "chat.no_sign")

    def say_evidence(
        self, cause: str, *, speaks: int, limit: int, lead: str = "", cases: bool = True
    ) -> None:
        """Add the strongest evidence for (`speaks` = 1) or against (-1) a cause.

        The label `lead` says of what: “what speaks for it: …”.

        One statement a quote; what the log and the person say comes before similar `cases`.
        """
        ranked = self.ranked.get(cause)
        evidence = [
            item
            for item in (ranked.evidence if ranked else ())
            if item.weight * speaks >= MIN_NATS
            and (cases or item.kind != "case")
            and (item.quote or item.kind != "reader")
        ]
        evidence.sort(key=lambda item: item.kind == "case")
        for group in _by_quote(evidence)[:limit]:
            self._say_quote(cause, group)
            if lead:
                last = self.statements[-1]
                self.statements[-1] = replace(last, text=self.words(lead, what=last.text))

    def _say_quote(self, cause: str, group: list[Evidence]) -> None:
        item, quote = group[0], shorten(group[0].quote)
        if item.kind == "case":
            case = self.knowledge.case_by_id.get(item.source)
            self.say(
                "evidence",
                "chat.case_alike",
                (cite_case(item.source, item.quote, case.url if case else ""),),
                title=quote,
            )
            return
        reasons = list(dict.fromkeys(other.reason for other in group))[:REASONS]
        reason = self.words("chat.reasons").join(reasons)
        if not quote:
            pages = self.knowledge.cause_by_id[cause].sources
            self.say_of("evidence", "chat.log_shows", cause, pages=pages, reason=reason)
            return
        citation = _cite_evidence(item)
        label = "chat.log_says" if citation.line else "chat.found"
        if not citation.line and any(item.quote in text for text in self.conversation.remarks):
            label = "chat.you_said"
        where = place(self.words, item)
        self.say("evidence", label, (citation,), place=where, quote=quote, reason=reason)


def _by_quote(items: Iterable[Evidence]) -> list[list[Evidence]]:
    """Evidence of one quote together, since a line often gives several signals."""
    groups: dict[tuple[str, str, int, str], list[Evidence]] = {}
    for item in items:
        key = (item.quote, item.file, item.line, item.source if item.kind == "case" else "")
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def shorten(quote: str) -> str:
    """A quote of one line, short enough to stand in a sentence."""
    line = " ".join(quote.split())
    return line if len(line) <= INLINE_CHARS else f"{line[:INLINE_CHARS].rstrip()}…"


def cite_pages(urls: Sequence[str]) -> tuple[Citation, ...]:
    """Pages of the web among the sources of an entry, so many at most."""
    web = [url for url in urls if url.startswith(("https://", "http://"))]
    return tuple(Citation(kind="source", url=url) for url in web[:MAX_SOURCES])


def cite_case(identifier: str, quote: str, url: str) -> Citation:
    """A case by a piece of it."""
    return Citation(kind="case", id=identifier, quote=quote[:QUOTE_CHARS], url=url)


def cite_note(hit: NoteHit) -> Citation:
    """A note by its title."""
    return Citation(kind="note", id=hit.note.id, quote=hit.title[:QUOTE_CHARS])


def cite_remark(quote: str) -> Citation:
    """What the person wrote."""
    return Citation(kind="text", quote=quote[:QUOTE_CHARS])


def cite_line(item: Placed, quote: str, rank: int | None = None) -> Citation:
    """A line of the log, or of the incident where it has none."""
    return Citation(
        kind="line" if item.line else "text",
        id="" if rank is None else str(rank),
        quote=quote[:QUOTE_CHARS],
        line=item.line,
        file=item.file,
    )


def _cite_evidence(item: Evidence) -> Citation:
    quote = item.quote[:QUOTE_CHARS]
    url = item.source if item.source.startswith(("https://", "http://")) else ""
    if item.kind == "text":  # what a person says of a log is no line of it
        return Citation(kind="text", quote=quote, url=url)
    if item.line:
        return Citation(kind="line", quote=quote, line=item.line, url=url, file=item.file)
    return Citation(kind="rank" if item.kind == "rank" else "text", quote=quote, url=url)
