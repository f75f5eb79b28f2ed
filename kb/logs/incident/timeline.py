"""A few moments a person should see, in order."""

from __future__ import annotations

from kb.logs.event_log import EventLog
from kb.types.incident import Event, Incident, TimelineItem

MAX_ITEMS = 40
A_PATTERN = 3  # items a pattern: the first ones show what happened


def build_timeline(log: EventLog, incident: Incident) -> tuple[TimelineItem, ...]:
    """The first lines of each kind of event, starts of waves and the first error, by place."""
    counts: dict[str, int] = {}
    starts = {(wave.file, wave.first_line) for wave in incident.waves}
    if incident.first_error is not None:
        starts.add((incident.first_error.file, incident.first_error.line))
    chosen: list[Event] = []
    for event in log.of_kind("root", "timeout", "cascade", "context"):
        must = (event.file, event.line) in starts
        counts[event.pattern_id] = counts.get(event.pattern_id, 0) + 1
        if must or counts[event.pattern_id] <= A_PATTERN:
            chosen.append(event)
    return tuple(
        TimelineItem(
            time=event.fields.get("clock", ""),
            rank=event.rank,
            what=log.vocabulary.means(event),
            line=event.line,
            kind=event.kind,
            file=event.file,
        )
        for event in chosen[:MAX_ITEMS]
    )
