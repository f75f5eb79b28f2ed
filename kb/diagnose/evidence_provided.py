"""What the input holds already: an answer asks for nothing it was given."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kb.types.incident import LogReading
from kb.types.knowledge import InputEvidence


def evidence_provided(reading: LogReading, known: Sequence[InputEvidence]) -> frozenset[str]:
    """Ids of data/input_evidence.yaml that `reading` shows."""
    seen = seen_names(reading)
    return frozenset(item.id for item in known if shows(item.shown_by, seen))


def shows(any_of: Sequence[Sequence[str]], seen: Collection[str]) -> bool:
    """Whether one of the lists was seen whole."""
    return any(all(_seen(name, seen) for name in names) for names in any_of)


def seen_any(names: Sequence[str], seen: Collection[str]) -> bool:
    """Whether one of the names was seen."""
    return any(_seen(name, seen) for name in names)


def _seen(name: str, seen: Collection[str]) -> bool:
    if name.startswith("!"):
        return not _seen(name[1:], seen)
    if not name.endswith("*"):
        return name in seen
    return any(other.startswith(name[:-1]) for other in seen)


def seen_names(reading: LogReading) -> frozenset[str]:
    """All that was seen, by the names data/input_evidence.yaml uses."""
    incident = reading.incident
    names = {f"event:{event.event}" for event in reading.events}
    names |= {f"pattern:{event.pattern_id}" for event in reading.events}
    names |= {f"fact:{fact.name}" for fact in incident.facts}
    names |= {f"version:{package}" for package in incident.versions}
    names |= {f"evidence:{kind}" for kind in incident.evidence_kinds}
    for name, value in incident.settings.items():
        names |= {f"setting:{name}", f"setting:{name}={value.upper()}"}
    return frozenset(names | _of_the_whole(reading))


def _of_the_whole(reading: LogReading) -> set[str]:
    """What the input as a whole holds: all ranks, files of several ranks, who broke first."""
    incident = reading.incident
    names: set[str] = set()
    ranks = {event.rank for event in reading.events if event.rank is not None}
    if incident.world_size and ranks.issuperset(range(incident.world_size)):
        names.add("log:all_ranks")
    if len({event.file for event in reading.events if event.file and event.rank is not None}) > 1:
        names.add("log:several_ranks_files")
    if incident.first_error is not None and incident.first_error.rank is not None:
        names.add("log:first_error_rank")
    if incident.timeout_ms is not None:
        names.add("log:timeout")
    return names
