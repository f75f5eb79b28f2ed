"""The headline of an answer: what happened, on which rank, in at most 15 words.

It says what the evidence shows, never which cause is likely: an unknown cause has a headline too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kb.diagnose.wording import duration, rank_span
from kb.knowledge.labels import Words
from kb.types.incident import Event, FirstError, Incident, LogReading
from kb.types.knowledge import EventType
from kb.types.vocabulary import DiagnosisStatus

EXCEPTION = re.compile(r"\b([A-Z][A-Za-z]{2,40}(?:Error|Exception|Interrupt))\b")
CLAUSE = re.compile(r"[:：;；(（]")  # what follows explains
NAMED_RANKS = 4  # more are counted, not named


def headline(
    reading: LogReading,
    status: DiagnosisStatus,
    types: Mapping[str, EventType],
    words: Words,
) -> str:
    """What happened, from the evidence; `types` are the kinds of events by id."""
    if status == "no_timeout":
        return _sentence(words("headline.no_timeout"))
    incident = reading.incident
    began = _began(incident, types, words)
    waited = _waited(incident, words)
    if began:
        return _sentence(words("headline.join").join(filter(None, (began, waited))))
    return _sentence(_timed_out(incident, words) or waited or _named(reading, types, words))


def _began(incident: Incident, types: Mapping[str, EventType], words: Words) -> str:
    """The first error, else the ranks that stand out, else what the ranks show together."""
    if incident.first_error is not None:
        return _error(incident.first_error, types, words)
    culprits = incident.culprit_ranks
    if culprits and words.has(f"headline.{culprits[0].kind}"):
        kind = culprits[0].kind
        same = [culprit.rank for culprit in culprits if culprit.kind == kind]
        return words(f"headline.{kind}", who=_ranks(same, words))
    for fact in incident.facts:
        if words.has(f"headline.fact_{fact.name}"):
            return words(f"headline.fact_{fact.name}", op=incident.op)
    return ""


def _error(error: FirstError, types: Mapping[str, EventType], words: Words) -> str:
    known = error.rank is not None
    who = _ranks([error.rank], words) if error.rank is not None else words("headline.somebody")
    raised = EXCEPTION.search(error.text) if error.kind == "exception" else None
    if raised is not None:
        return words("headline.raised", who=who, name=raised[1])
    kind = types.get(error.kind)
    if kind is None:
        return error.kind
    if kind.headline is not None:
        return kind.headline.get(words.language).format(who=who)
    means = _clause(kind.means.get(words.language))
    return words("headline.means", who=who, means=means) if known else means


def _waited(incident: Incident, words: Words) -> str:
    """How many ranks waited how long in which operation; empty where no operation is known."""
    ranks = incident.ranks_reporting
    if not incident.op or not ranks:
        return ""
    span = incident.timeout_ms or incident.ran_ms
    label = "headline.waited" if span else "headline.waited_op"
    values = {"op": incident.op, "span": duration(span, words) if span else ""}
    if len(ranks) == 1:
        return words(f"{label}_one", who=_ranks(ranks, words), **values)
    return words(label, count=len(ranks), **values)


def _timed_out(incident: Incident, words: Words) -> str:
    if not incident.op:
        return ""
    if incident.timeout_ms:
        span = duration(incident.timeout_ms, words)
        return words("headline.op_timeout", op=incident.op, span=span)
    return words("headline.op_hang", op=incident.op)


def _named(reading: LogReading, types: Mapping[str, EventType], words: Words) -> str:
    """The first timeout by what it is, else where the job hung."""
    first: Event | None = next((e for e in reading.events if e.kind == "timeout"), None)
    kind = types.get(first.event) if first else None
    if kind is not None:
        if kind.headline is not None:
            return kind.headline.get(words.language).format(who=words("headline.somebody"))
        return _clause(kind.means.get(words.language))
    if first is not None:
        return words("headline.timeout")
    return words(f"headline.hang_{reading.incident.stage}")


def _ranks(ranks: Iterable[int], words: Words) -> str:
    numbers = sorted(set(ranks))
    label = "headline.rank" if len(numbers) == 1 else "headline.ranks"
    shown = rank_span(numbers[:NAMED_RANKS]) + ("…" if len(numbers) > NAMED_RANKS else "")
    return words(label, ranks=shown)


def _clause(text: str) -> str:
    return CLAUSE.split(text, maxsplit=1)[0].strip()


def _sentence(text: str) -> str:
    """With a capital at its beginning, where that is a letter."""
    return text[:1].upper() + text[1:]
