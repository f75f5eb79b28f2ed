"""Answers about what happened: the first error, who waits for whom, since when."""

from __future__ import annotations

from kb.chat.answers.evidence import shorten
from kb.chat.talk import QUOTE_CHARS, Said, Talk, cite_cause, cite_line
from kb.chat.types import Citation, Statement
from kb.diagnose.wording import Placed, place
from kb.types import AnswerIncident, Event

MOMENTS_SHOWN = 4
RANKS_NAMED = 8


def answer_happened(talk: Talk) -> Said:
    """The story of the incident, each sentence with its line."""
    if talk.judged is None or talk.diagnosis is None:
        return talk.need_log()
    incident = talk.diagnosis.incident
    statements = [*_culprits(talk, incident), *_first_error(talk, incident)]
    statements += [*_hung(talk, incident), *_ranks(talk, incident)]
    statements += _moments(talk, incident)
    if not statements:
        leading = talk.leading
        cited = cite_cause(talk.knowledge.cause_by_id[leading.id], talk) if leading else ()
        statements = [
            Statement(
                role="verdict" if cited else "note", text=talk.diagnosis.summary, citations=cited
            )
        ]
    return Said(statements=tuple(statements))


def _culprits(talk: Talk, incident: AnswerIncident) -> list[Statement]:
    known = talk.judged.reading.incident.culprit_ranks if talk.judged else ()
    places: dict[int, Placed] = {culprit.rank: culprit for culprit in known}
    return [
        talk.say(
            "verdict",
            "chat.culprit",
            (_at(talk, places.get(culprit.rank), culprit.reason, culprit.rank),),
            rank=culprit.rank,
            reason=culprit.reason,
        )
        for culprit in incident.culprit_ranks[:2]
    ]


def _first_error(talk: Talk, incident: AnswerIncident) -> list[Statement]:
    first = incident.first_error
    if first is None:
        return []
    label = "chat.first_error" if first.rank is None else "chat.first_error_rank"
    cited = (cite_line(first, first.text, first.rank),)
    where, quote = place(talk.words, first), shorten(first.text)
    return [talk.say("evidence", label, cited, rank=first.rank, place=where, quote=quote)]


def _hung(talk: Talk, incident: AnswerIncident) -> list[Statement]:
    event = _timeout_event(talk)
    if not incident.op or event is None:
        return []
    cited, where = (cite_line(event, event.text, event.rank),), place(talk.words, event)
    if incident.timeout_ms is None:
        return [talk.say("evidence", "chat.hung", cited, op=incident.op, place=where)]
    seconds = str(round(incident.timeout_ms / 1000))
    values = {"op": incident.op, "seconds": seconds, "place": where}
    if incident.ran_ms is None:
        return [talk.say("evidence", "chat.hung_for", cited, command="", **values)]
    waited = round(incident.ran_ms / 1000)
    return [talk.say("evidence", "chat.hung_waited", cited, command="", waited=waited, **values)]


def _ranks(talk: Talk, incident: AnswerIncident) -> list[Statement]:
    event = _timeout_event(talk)
    if event is None or not incident.ranks_reporting:
        return []
    cited = (cite_line(event, event.text, event.rank),)
    values = {"reporting": _named(talk, incident.ranks_reporting)}
    if not incident.ranks_silent:
        return [talk.say("evidence", "chat.reporting", cited, **values)]
    silent = _named(talk, incident.ranks_silent)
    return [talk.say("evidence", "chat.reporting_silent", cited, silent=silent, **values)]


def _moments(talk: Talk, incident: AnswerIncident) -> list[Statement]:
    told = []
    seen: set[str] = set()
    for moment in incident.timeline:
        if moment.what in seen:
            continue
        seen.add(moment.what)
        rank = "" if moment.rank is None else talk.words.say("word.rank", rank=moment.rank)
        where = " ".join(part for part in (moment.time, rank) if part)
        label = "chat.moment_at" if where else "chat.moment"
        cited = (_at(talk, moment, moment.what, moment.rank),)
        stands = place(talk.words, moment)
        told.append(talk.say("evidence", label, cited, place=stands, where=where, what=moment.what))
    return told[:MOMENTS_SHOWN] if len(told) > 1 else []


def _timeout_event(talk: Talk) -> Event | None:
    events = talk.judged.reading.events if talk.judged else ()
    return next((event for event in events if event.kind == "timeout"), None)


def _at(talk: Talk, item: Placed | None, text: str, rank: int | None) -> Citation:
    """The log's line where something stands, or the rank itself where the log has none (dumps)."""
    if item is None or not item.line:
        return Citation(kind="rank", id="" if rank is None else str(rank), quote=text[:QUOTE_CHARS])
    events = talk.judged.reading.events if talk.judged else ()
    there = (event.text for event in events if (event.file, event.line) == (item.file, item.line))
    return cite_line(item, next(there, text), rank)


def _named(talk: Talk, ranks: tuple[int, ...]) -> str:
    names = talk.words.join([str(rank) for rank in ranks[:RANKS_NAMED]])
    return names if len(ranks) <= RANKS_NAMED else f"{names} …"
