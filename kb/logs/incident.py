"""Events become one incident: what hung, who waits for whom, what broke first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kb.logs import ranks, timeline
from kb.logs.culprits import find_culprits
from kb.logs.facts import find_facts
from kb.logs.first_error import as_value, first_error
from kb.logs.picture import Picture, Report, number, read_progress, read_reports
from kb.logs.stage import find_stage
from kb.logs.surroundings import component, read_surroundings
from kb.logs.waves import join_waves, second_begins, split_bursts
from kb.types import Bilingual, Event, Incident

# Components whose failure is a failure of communication even where no timeout was printed.
COMMUNICATION = frozenset({"nccl", "gloo", "hccl", "rccl", "store", "horovod", "ib", "mpi", "ucx"})
# Events that print a collective's fingerprint: its operation and number.
FINGERPRINTS = frozenset({"mismatch_detected", "wrapper_barrier"})
# Events that are one, whoever printed them.
COMMUNICATION_EVENTS = frozenset({"mismatch_detected", "uneven_inputs"})


def build_incident(
    events: tuple[Event, ...], *, means: dict[str, Bilingual], lines: int, size: int
) -> Incident:
    """Read the incident out of the events of one input."""
    picture = build_picture(events)
    main = picture.main
    fallback = next((e for e in events if e.kind == "timeout" and e.fields.get("timeout_ms")), None)
    return Incident(
        backend=picture.around.backend,
        op=main.op if main else _other_op(events),
        seq=main.seq if main else _other_seq(events),
        numel_in=main.numel_in if main else None,
        numel_out=main.numel_out if main else None,
        timeout_ms=_timeout(main, fallback),
        ran_ms=_ran(main, events),
        process_group=main.process_group if main else "",
        stage=picture.stage,
        world_size=picture.around.world_size,
        frameworks=picture.around.frameworks,
        versions=picture.around.versions,
        settings=picture.around.settings,
        transport=picture.around.transport,
        ranks_reporting=picture.reporting,
        ranks_silent=picture.silent,
        culprit_ranks=find_culprits(picture),
        first_error=picture.first_error,
        waves=picture.waves,
        timeline=timeline.build_timeline(events, means, picture.waves, picture.first_error),
        ranks=picture.states,
        facts=find_facts(picture),
        has_timeout=communication_failed(events),
        lines=lines,
        bytes=size,
    )


def build_picture(events: tuple[Event, ...]) -> Picture:
    """Derive everything the parts of the incident share."""
    reports = read_reports(events)
    bursts = split_bursts(events)
    second = second_begins(bursts)

    def opens(event: Event) -> bool:
        return event.line < second.get(event.file, event.line + 1)

    picture = Picture(
        events=events,
        reports=reports,
        opening=tuple(report for report in reports if opens(report.event)),
        progress=read_progress(event for event in events if opens(event)),
        around=read_surroundings(events),
    )
    reporting = ranks.reporting_ranks(events)
    world = picture.around.world_size
    if world is not None and reporting and world <= max(reporting):  # the size of a part of it
        picture = replace(picture, around=replace(picture.around, world_size=None))
    error = first_error(events)
    main = picture.main
    failure = error or (main.event if main else None)
    if main is not None and (error is None or error.line > main.line):
        failure = main.event
    failure = failure or next((e for e in events if e.kind in ("timeout", "cascade")), None)
    picture = replace(
        picture,
        waves=join_waves(bursts),
        first_error=as_value(error),
        first_error_event=error,
        stage=find_stage(events, failure, main),
        reporting=reporting,
        silent=ranks.silent_ranks(events, reporting, picture.around.world_size),
    )
    return replace(picture, states=ranks.rank_states(picture))


def communication_failed(events: Sequence[Event]) -> bool:
    """Whether program output shows a timeout, a hang, or a failed communication library."""
    return any(
        event.kind == "timeout"
        or event.event in COMMUNICATION_EVENTS
        or (event.kind in ("root", "cascade") and component(event) in COMMUNICATION)
        for event in events
    ) or _lost_a_rank(events)


def _lost_a_rank(events: Sequence[Event]) -> bool:
    """Whether torchrun lists several ranks of which one was killed: its peers lost it."""
    listed = {event.rank for event in events if event.event == "rank_row"}
    return len(listed) > 1 and any(event.event == "signal_death" for event in events)


def _timeout(main: Report | None, fallback: Event | None) -> int | None:
    if main is not None and main.timeout_ms is not None:
        return main.timeout_ms
    if fallback is None:
        return None
    text = fallback.fields["timeout_ms"]
    return int(text) if text.isdigit() else None


def _ran(main: Report | None, events: Sequence[Event]) -> int | None:
    """How long the collective ran; a wrapped paste tells it on the next line."""
    if main is None or main.ran_ms is not None:
        return main.ran_ms if main else None
    near = [e for e in events if e.fields.get("ran_ms") and 0 <= e.line - main.line <= 3]
    return number(near[0].fields["ran_ms"]) if near else None


def _other_op(events: Sequence[Event]) -> str:
    """The operation of a failure that is no NCCL work: a fingerprint, a Gloo recv, an RPC."""
    told = [e for e in events if e.fields.get("op")]
    named = [e for e in told if e.event in FINGERPRINTS]
    return next((e.fields["op"] for e in [*named, *told] if e in named or e.kind == "timeout"), "")


def _other_seq(events: Sequence[Event]) -> int | None:
    """The number in a collective's fingerprint, where no report tells one."""
    told = [e.fields["seq"] for e in events if e.event in FINGERPRINTS and e.fields.get("seq")]
    return number(next(iter(told), None))
