"""Two readings of one incident as one: as if both logs had been pasted together."""

from __future__ import annotations

from dataclasses import replace

from kb.logs.event_log import EventVocabulary
from kb.logs.excerpt import excerpt
from kb.logs.incident.assemble import build_incident
from kb.types.incident import Event, Incident, LogReading

MAX_EVENTS = 8000  # of all logs of an incident: the first and the last ones
MAX_TEXT = 8000  # characters of the words and of the description
JOB_GAP_S = 12 * 3600.0  # between the logs of one job; a day later it is another run
DATED_S = 366 * 86_400.0  # below this a time has no date (seconds since midnight)


def merge_readings(first: LogReading, later: LogReading, vocabulary: EventVocabulary) -> LogReading:
    """One reading of both; lines of `later` count on from those of `first`, those of files do not.

    What dumps said about either incident stays, since no event holds it.
    """
    offset = first.incident.lines
    moved = [
        event if event.file else replace(event, line=event.line + offset) for event in later.events
    ]
    events = _bounded([*first.events, *moved])
    rebuilt = build_incident(
        events,
        vocabulary,
        lines=offset + later.incident.lines,
        size=first.incident.bytes + later.incident.bytes,
    )
    incident = _with_dumps(_with_dumps(rebuilt, first.incident), later.incident)
    return LogReading(
        incident=incident,
        events=events,
        excerpt=excerpt(events, incident),
        words=_joined(first.words, later.words),
        lines=(*first.lines, *later.lines),
        redactions=first.redactions + later.redactions,
    )


def other_job(first: LogReading, later: LogReading) -> str:
    """Why two readings are plainly of different jobs: ``torch 2.3 ≠ 2.6``; empty if not."""
    one, other = first.incident, later.incident
    pairs = (
        ("backend", one.backend, other.backend),
        ("torch", one.versions.get("torch", ""), other.versions.get("torch", "")),
        ("world size", str(one.world_size or ""), str(other.world_size or "")),
    )
    for name, left, right in pairs:
        if left and right and left != right and "gloo" not in (left, right):
            return f"{name} {left} ≠ {right}"
    gap_s = _gap_s(first, later)
    return f"{gap_s / 3600:.0f} h" if gap_s > JOB_GAP_S else ""


def _gap_s(first: LogReading, later: LogReading) -> float:
    """Seconds between the two, 0 where they overlap or bear no dates."""
    spans = []
    for reading in (first, later):
        times = [e.time_s for e in reading.events if e.time_s is not None and e.time_s > DATED_S]
        if not times:
            return 0.0
        spans.append((min(times), max(times)))
    (low, high), (start, end) = spans
    return max(0.0, start - high, low - end)


def _bounded(events: list[Event]) -> tuple[Event, ...]:
    if len(events) <= MAX_EVENTS:
        return tuple(events)
    half = MAX_EVENTS // 2
    return (*events[:half], *events[-half:])


def _with_dumps(incident: Incident, known: Incident) -> Incident:
    """The incident with what no event holds of `known`: facts of dumps and files not read."""
    names = {fact.name for fact in incident.facts}
    ranks = {state.rank for state in incident.ranks}
    off_log = tuple(culprit for culprit in known.culprit_ranks if not culprit.line)
    return replace(
        incident,
        facts=(
            *incident.facts,
            *(fact for fact in known.facts if not fact.line and fact.name not in names),
        ),
        ranks=tuple(
            sorted(
                (*incident.ranks, *(state for state in known.ranks if state.rank not in ranks)),
                key=lambda state: state.rank,
            )
        ),
        culprit_ranks=incident.culprit_ranks or off_log,
        versions=known.versions | incident.versions,
        fault_type=incident.fault_type or known.fault_type,
        has_timeout=incident.has_timeout or known.has_timeout,
        op=incident.op or known.op,
        backend=incident.backend or known.backend,
        timeout_ms=incident.timeout_ms if incident.timeout_ms is not None else known.timeout_ms,
        ranks_reporting=incident.ranks_reporting or known.ranks_reporting,
        ranks_silent=incident.ranks_silent or known.ranks_silent,
        unread=(*incident.unread, *known.unread),
        evidence_kinds=tuple(sorted({*incident.evidence_kinds, *known.evidence_kinds})),
    )


def _joined(first: str, later: str) -> str:
    if later in first:
        return first
    return f"{first}\n{later}".strip()[:MAX_TEXT]
