"""Events written by hand, for tables of inputs and exact outputs."""

from __future__ import annotations

from functools import cache

from kb.knowledge.load import Knowledge, load_knowledge
from kb.logs.event_log import EventLog, EventVocabulary
from kb.logs.incident.assemble import observe
from kb.logs.incident.facts import find_facts
from kb.logs.incident.observations import Observations
from kb.settings import shipped_data
from kb.types.incident import Event
from kb.types.knowledge import Pattern


@cache
def knowledge() -> Knowledge:
    """The shipped knowledge."""
    return load_knowledge(shipped_data())


@cache
def _pattern(event: str) -> Pattern:
    return next(pattern for pattern in knowledge().patterns if pattern.event == event)


def event(
    name: str,
    line: int = 1,
    /,
    *,
    rank: int | None = None,
    group: str = "",
    file: str = "",
    host: str = "",
    time_s: float | None = None,
    pattern: str = "",
    text: str = "",
    **fields: object,
) -> Event:
    """An event as the first pattern of its kind makes it; `fields` are its captures."""
    return Event(
        pattern_id=pattern or _pattern(name).id,
        kind=_pattern(name).kind,
        event=name,
        line=line,
        text=text or f"{name} on line {line}",
        file=file,
        host=host,
        rank=rank,
        process_group=group,
        time_s=time_s,
        fields={key: str(value) for key, value in fields.items()},
    )


def report(line: int = 1, rank: int | None = 0, **fields: object) -> Event:
    """A rank's report of a timed-out collective; number 50 of ALLREDUCE(1000) unless said."""
    group = str(fields.pop("group", ""))
    file = str(fields.pop("file", ""))
    values = {"seq": 50, "op": "ALLREDUCE", "numel_in": 1000, "timeout_ms": 700_000} | fields
    values = {key: value for key, value in values.items() if value is not None}
    return event("collective_timeout", line, rank=rank, group=group, file=file, **values)


def log(*events: Event) -> EventLog:
    """The events as one log, with the shipped vocabulary."""
    return EventLog(events, EventVocabulary.of(knowledge()))


def observed(*events: Event) -> Observations:
    """What is observed in these events."""
    return observe(log(*events))


def facts(*events: Event) -> dict[str, str]:
    """The facts of these events: detail by name."""
    return {fact.name: fact.detail for fact in find_facts(observed(*events))}
