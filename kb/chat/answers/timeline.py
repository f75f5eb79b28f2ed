"""Answers about what happened: the first error, who waits for whom, since when."""

from __future__ import annotations

from kb.chat.answers.answer import QUOTE_CHARS, IntentAnswer, cite_line, cite_pages, shorten
from kb.chat.types import Citation, Statement, StatementRole
from kb.diagnose.wording import Placed, place
from kb.types.answer import AnswerIncident, AnswerMoment

CULPRITS_SHOWN = 2
MOMENTS_SHOWN = 4
RANKS_NAMED = 8


def answer_happened(answer: IntentAnswer) -> None:
    """The story of the incident, each sentence with its line."""
    if answer.diagnosis is None:
        answer.say_need_log()
        return
    incident = answer.diagnosis.incident
    places: dict[int, Placed] = {item.rank: item for item in answer.incident.culprit_ranks}
    for culprit in incident.culprit_ranks[:CULPRITS_SHOWN]:
        rank, reason = culprit.rank, culprit.reason
        citation = _cite(answer, places.get(rank), reason, rank)
        answer.say("verdict", "chat.culprit", (citation,), rank=rank, reason=reason)
    first = incident.first_error
    if first is not None:
        label = "chat.first_error" if first.rank is None else "chat.first_error_rank"
        citation, quote = cite_line(first, first.text, first.rank), shorten(first.text)
        where = place(answer.words, first)
        answer.say("evidence", label, (citation,), rank=first.rank, place=where, quote=quote)
    _say_timeout(answer, incident)
    _say_moments(answer, incident)
    if not answer.statements:
        leading = answer.leading
        citations: tuple[Citation, ...] = ()
        if leading:
            pages = answer.knowledge.cause_by_id[leading.id].sources
            citations = (answer.cite(leading.id), *cite_pages(pages))
        role: StatementRole = "verdict" if leading else "note"
        text = answer.diagnosis.summary
        answer.statements.append(Statement(role=role, text=text, citations=citations))


def _say_timeout(answer: IntentAnswer, incident: AnswerIncident) -> None:
    """What hung for how long, which ranks report it and which are silent."""
    events = answer.assessment.reading.events if answer.assessment else ()
    event = next((event for event in events if event.kind == "timeout"), None)
    if event is None:
        return
    citations, values = (cite_line(event, event.text, event.rank),), {"op": incident.op}
    values["place"] = place(answer.words, event)
    if incident.op:
        label = "chat.hung"
        if incident.timeout_ms is not None:
            label, values["seconds"] = "chat.hung_for", str(round(incident.timeout_ms / 1000))
            if incident.ran_ms is not None:
                label, values["waited"] = "chat.hung_waited", str(round(incident.ran_ms / 1000))
        answer.say("evidence", label, citations, command="", **values)
    if incident.ranks_reporting:
        label = "chat.reporting_silent" if incident.ranks_silent else "chat.reporting"
        reporting = _listing(answer, incident.ranks_reporting)
        silent = _listing(answer, incident.ranks_silent)
        answer.say("evidence", label, citations, reporting=reporting, silent=silent)


def _say_moments(answer: IntentAnswer, incident: AnswerIncident) -> None:
    """The timeline, each event once; one alone is no timeline."""
    moments: dict[str, AnswerMoment] = {}
    for moment in incident.timeline:
        moments.setdefault(moment.what, moment)
    for moment in list(moments.values())[:MOMENTS_SHOWN] if len(moments) > 1 else ():
        rank = "" if moment.rank is None else answer.words("word.rank", rank=moment.rank)
        where = " ".join(part for part in (moment.time, rank) if part)
        answer.say(
            "evidence",
            "chat.moment_at" if where else "chat.moment",
            (_cite(answer, moment, moment.what, moment.rank),),
            place=place(answer.words, moment),
            where=where,
            what=moment.what,
        )


def _cite(answer: IntentAnswer, item: Placed | None, text: str, rank: int | None) -> Citation:
    """The log's line where something stands, or the rank itself where the log has none (dumps)."""
    if item is None or not item.line:
        return Citation(kind="rank", id="" if rank is None else str(rank), quote=text[:QUOTE_CHARS])
    events = answer.assessment.reading.events if answer.assessment else ()
    there = (event.text for event in events if (event.file, event.line) == (item.file, item.line))
    return cite_line(item, next(there, text), rank)


def _listing(answer: IntentAnswer, ranks: tuple[int, ...]) -> str:
    names = answer.words.listing(str(rank) for rank in ranks[:RANKS_NAMED])
    return names if len(ranks) <= RANKS_NAMED else f"{names} …"
