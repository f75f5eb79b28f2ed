"""Events become one incident: what hung, who waits for whom, what broke first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kb.logs.event_log import EventLog, EventVocabulary
from kb.logs.incident import ranks
from kb.logs.incident.culprits import find_culprits
from kb.logs.incident.environment import component, read_environment
from kb.logs.incident.facts import find_facts
from kb.logs.incident.first_error import as_value, first_error
from kb.logs.incident.observations import (
    Observations,
    WorkReport,
    number,
    read_progress,
    read_reports,
)
from kb.logs.incident.places import read_places
from kb.logs.incident.stage import find_stage
from kb.logs.incident.timeline import build_timeline
from kb.logs.incident.waves import join_waves, second_begins, split_bursts
from kb.types.incident import Event, Incident
from kb.types.vocabulary import EventRole

# Components whose failure is a failure of communication even where no timeout was printed.
COMMUNICATION = frozenset({"nccl", "gloo", "hccl", "rccl", "store", "horovod", "ib", "mpi", "ucx"})


def build_incident(
    events: tuple[Event, ...], vocabulary: EventVocabulary, *, lines: int, size: int
) -> Incident:
    """Read the incident out of the events of one input of so many lines and bytes."""
    log = EventLog(events, vocabulary)
    observations = observe(log)
    incident, main = observations.incident, observations.main
    if main is None:
        incident = replace(incident, op=_other_op(log), seq=_other_seq(log))
    else:
        incident = replace(
            incident,
            op=main.op,
            seq=main.seq,
            numel_in=main.numel_in,
            numel_out=main.numel_out,
            ran_ms=_ran(main, events),
            process_group=main.process_group,
        )
    return replace(
        incident,
        timeout_ms=_timeout(main, log),
        culprit_ranks=find_culprits(observations),
        timeline=build_timeline(log, incident),
        facts=find_facts(observations),
        has_timeout=communication_failed(log),
        lines=lines,
        bytes=size,
    )


def observe(log: EventLog) -> Observations:
    """Derive everything that the fields of the incident share."""
    reports = read_reports(log)
    bursts = split_bursts(log)
    second = second_begins(bursts)

    def opens(event: Event) -> bool:
        return event.line < second.get(event.file, event.line + 1)

    environment = read_environment(log)
    world = environment.world_size
    reporting = ranks.reporting_ranks(log)
    if world is not None and reporting and world <= max(reporting):  # the size of a part of it
        world = None
    error = first_error(log)
    places = read_places(log, opens)
    waiting = {stack.rank for stack in places.stacks if stack.waits}
    silent = ranks.silent_ranks(log, reporting, world)
    observations = Observations(
        log=log,
        reports=reports,
        first_reports=tuple(report for report in reports if opens(report.event)),
        progress=read_progress(filter(opens, log.of(EventRole.WATCHDOG_REPORT))),
        first_error=error,
        places=places,
        incident=replace(
            environment,
            world_size=world,
            waves=join_waves(bursts),
            first_error=as_value(error),
            ranks_reporting=reporting,
            ranks_silent=tuple(rank for rank in silent if rank not in waiting),
        ),
    )
    main = observations.main
    failure = error or (main.event if main else None)
    if main is not None and (error is None or error.line > main.line):
        failure = main.event
    failure = failure or next(iter(log.of_kind("timeout", "cascade")), None)
    incident = replace(
        observations.incident,
        stage=find_stage(log, failure, main),
        ranks=ranks.rank_states(observations),
    )
    return replace(observations, incident=incident)


def communication_failed(log: EventLog) -> bool:
    """Whether program output shows a timeout, a hang, or a failed communication library."""
    return any(
        event.kind == "timeout"
        or log.plays(event, EventRole.COMMUNICATION_FAILURE)
        or (event.kind in ("root", "cascade") and component(event) in COMMUNICATION)
        for event in log.events
    ) or _lost_a_rank(log)


def _lost_a_rank(log: EventLog) -> bool:
    """Whether torchrun lists several ranks of which one was killed: its peers lost it."""
    listed = {event.rank for event in log.of(EventRole.FAILED_RANK_ROW)}
    return len(listed) > 1 and bool(log.of(EventRole.KILLED))


def _timeout(main: WorkReport | None, log: EventLog) -> int | None:
    if main is not None and main.timeout_ms is not None:
        return main.timeout_ms
    printed = [event.fields.get("timeout_ms") for event in log.of_kind("timeout")]
    return number(next(filter(None, printed), None))


def _ran(main: WorkReport, events: Sequence[Event]) -> int | None:
    """How long the collective ran; a wrapped paste has it on the next line."""
    if main.ran_ms is not None:
        return main.ran_ms
    near = [e for e in events if e.fields.get("ran_ms") and 0 <= e.line - main.line <= 3]
    return number(near[0].fields["ran_ms"]) if near else None


def _other_op(log: EventLog) -> str:
    """The operation of a failure that is no NCCL work: a fingerprint, a Gloo recv, an RPC."""
    printed = [*log.of(EventRole.FINGERPRINT), *log.of_kind("timeout")]
    return next((event.fields["op"] for event in printed if event.fields.get("op")), "")


def _other_seq(log: EventLog) -> int | None:
    """The number in a collective's fingerprint, where no report prints one."""
    printed = [event.fields.get("seq") for event in log.of(EventRole.FINGERPRINT)]
    return number(next(filter(None, printed), None))
