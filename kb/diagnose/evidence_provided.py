"""What the input holds already: an answer asks for nothing it was given."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kb.diagnose.cues import CueHit
from kb.diagnose.statements import TopicStatement
from kb.settings_check.job import JobReading
from kb.types.incident import LogReading
from kb.types.knowledge import InputEvidence
from kb.types.vocabulary import Polarity

TRACEBACK = "traceback"  # the event of a traceback's head
FRAME = 'File "'  # in the line of a frame
ENVIRONMENT_EVENTS = {"setting", "version", "package"}  # people write these, too


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
    if name in seen:
        return True
    if name.startswith("!"):
        return not _seen(name[1:], seen)
    return name.endswith("*") and any(other.startswith(name[:-1]) for other in seen)


def seen_names(reading: LogReading) -> frozenset[str]:
    """All that was seen, by the names data/input_evidence.yaml uses."""
    incident = reading.incident
    names = {f"event:{event.event}" for event in reading.events}
    names |= {f"pattern:{event.pattern_id}" for event in reading.events}
    names |= {f"fact:{fact.name}" for fact in incident.facts}
    names |= {f"version:{package}" for package in incident.versions}
    names |= {f"evidence:{kind}" for kind in incident.evidence_kinds}
    names |= {f"framework:{framework}" for framework in incident.frameworks}
    if incident.backend:
        names.add(f"backend:{incident.backend}")
    if incident.stage != "unknown":
        names.add(f"stage:{incident.stage}")
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


def missing_names(reading: LogReading) -> Iterator[str]:
    """What `reading` lacks: ranks, the failure itself, the end of a traceback."""
    incident, events = reading.incident, reading.events
    if len(incident.ranks_reporting) == 1:
        yield "log:one_rank"
    if incident.ranks_reporting and incident.ranks_silent:
        yield "log:silent_ranks"
    if {event.event for event in events} <= ENVIRONMENT_EVENTS:
        yield "log:none"
    elif not incident.has_timeout and incident.first_error is None:
        yield "log:no_failure"
    if incident.first_error is not None and not any(event.kind == "timeout" for event in events):
        yield "log:error_alone"
    if _is_cut(reading):
        yield "log:cut_traceback"


def _is_cut(reading: LogReading) -> bool:
    """Whether the input ends inside a traceback, before its exception."""
    heads = [event for event in reading.events if event.event == TRACEBACK]
    if not heads or "until" in heads[-1].fields:
        return False
    file, line = heads[-1].file, heads[-1].line
    return all(
        FRAME in event.text for event in reading.events if event.file == file and event.line > line
    )


def node_names(job: JobReading) -> frozenset[str]:
    """Whether the job runs on one node or on several, where its settings say so.

    They are named as the facts that the log's hosts show.
    """
    counts = {value.count for value in job.of("nodes")} - {None, 0}
    if counts == {1}:
        return frozenset({"fact:single_node"})
    return frozenset({"fact:multi_node"} if counts else ())


def remark_names(hits: Sequence[CueHit], statements: Sequence[TopicStatement]) -> frozenset[str]:
    """What a person says is so (``cue:<id>``), is not so (``cue:<id>!``), and of which topic how.

    A guess, a question or another occasion says nothing of this incident.
    """
    cues = {f"cue:{hit.cue.id}{'!' if hit.denied else ''}" for hit in hits if _is_told(hit)}
    return frozenset(cues | {f"topic:{item.topic.id}:{item.polarity}" for item in statements})


def _is_told(hit: CueHit) -> bool:
    return hit.denied or hit.polarity in (Polarity.TROUBLE, Polarity.HELPED)
