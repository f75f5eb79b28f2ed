"""What is known of each rank: who reports, who is silent, who is behind, who died."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kb.logs.event_log import EventLog
from kb.logs.incident.hosts import rank_places
from kb.logs.incident.observations import MAX_LAG, Observations, WorkReport, number
from kb.types.incident import Event, RankState
from kb.types.vocabulary import EventRole

SIGNALS = {  # of Linux, wherever this runs
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
}
_SIGNAL_NUMBERS = {name: value for value, name in SIGNALS.items()}
EXIT_FIELDS = frozenset({"signal_number", "signal", "exit_code", "return_code"})
WATCHDOG_ABORT = -6  # SIGABRT, by which the watchdog ends its own process
# The watchdog ends its process with SIGABRT, the launcher ends the others with SIGTERM.
ENDED_ON_PURPOSE = (WATCHDOG_ABORT, -15)
MAX_RANKS_LISTED = 4096  # of silent ranks: a world size beyond it is listed in part


def reporting_ranks(log: EventLog) -> tuple[int, ...]:
    """Ranks that report a timeout themselves."""
    waited = {event.rank for event in log.of(EventRole.RANK_WAITED)}
    return tuple(sorted(rank for rank in waited if rank is not None))


def silent_ranks(
    log: EventLog, reporting: Sequence[int], world_size: int | None
) -> tuple[int, ...]:
    """Ranks that take part and report nothing.

    Without a world size only gaps below the highest reporting rank count, and only where several
    ranks report: one pasted line says nothing about the others.
    """
    if not reporting or (world_size is None and len(reporting) < 2):
        return ()
    if world_size is not None and world_size > max(reporting):
        size = world_size if len(reporting) > 1 else 0
    else:
        # events that show that their rank exists: it failed, or the launcher lists it
        shown = log.of_kind("timeout", "root", "cascade") + log.of(EventRole.FAILED_RANK_ROW)
        size = max({*reporting, *(event.rank for event in shown if event.rank is not None)}) + 1
    return tuple(sorted(set(range(min(size, MAX_RANKS_LISTED))).difference(reporting)))


def behind(observations: Observations) -> dict[int, Event]:
    """Ranks whose progress is lower than others' in one process group, with the event saying so.

    Numbers of two groups, and numbers so far apart that they are of two runs, are not compared.
    """
    by_group: dict[str, dict[int, tuple[int, Event]]] = defaultdict(dict)
    unnamed = observations.unnamed_is_one_group
    for item in observations.progress:
        if item.rank is None or item.enqueued is None:
            continue
        if item.process_group or unnamed:
            by_group[item.process_group][item.rank] = (item.enqueued, item.event)
    lowest = _lowest(by_group)
    if lowest:
        return lowest
    by_seq: dict[str, dict[int, tuple[int, Event]]] = defaultdict(dict)
    for report in observations.first_reports:
        if report.rank is None or report.seq is None:
            continue
        if report.process_group or unnamed:
            by_seq[report.process_group].setdefault(report.rank, (report.seq, report.event))
    return _lowest(by_seq)


def _lowest(by_group: dict[str, dict[int, tuple[int, Event]]]) -> dict[int, Event]:
    """The ranks at the lowest number of a group, if they are fewer than half of it."""
    lowest: dict[int, Event] = {}
    for group in sorted(by_group):
        members = by_group[group]
        low = min(value for value, _ in members.values())
        slow = {rank: event for rank, (value, event) in members.items() if value == low}
        high = max(value for value, _ in members.values())
        if len(members) > 1 and len(slow) * 2 <= len(members) and high - low <= MAX_LAG:
            lowest.update(slow)
    return lowest


def rank_states(observations: Observations) -> tuple[RankState, ...]:
    """The rank table, one row a rank, by rank."""
    lagging = behind(observations)
    events: dict[int | None, list[Event]] = defaultdict(list)
    for event in observations.log.events:
        events[event.rank].append(event)
    reports = {report.rank: report for report in reversed(observations.reports)}
    progress: dict[int | None, list[WorkReport]] = defaultdict(list)
    for item in observations.progress:
        progress[item.rank].append(item)
    ranks = {rank for rank in events if rank is not None}.union(observations.incident.ranks_silent)
    places = rank_places(observations.log, observations.incident.backend)
    states = (
        _state(rank, events[rank], reports.get(rank), progress[rank], observations, lagging)
        for rank in sorted(ranks)
    )
    return tuple(
        replace(state, host=place.host, gpu=place.gpu)
        if (place := places.get(state.rank))
        else state
        for state in states
    )


def _state(
    rank: int,
    events: Sequence[Event],
    report: WorkReport | None,
    in_groups: Sequence[WorkReport],
    observations: Observations,
    lagging: dict[int, Event],
) -> RankState:
    group = report.process_group if report else ""
    own = [progress for progress in in_groups if progress.process_group == group]
    progress = next(iter([*own, *in_groups]), None)
    steps = [step for e in events if (step := number(e.fields.get("step"))) is not None]
    code = next((c for e in events if (c := exit_code(e)) is not None), None)
    shown = report.event if report else next(iter(events), None)
    return RankState(
        rank=rank,
        state=_state_name(rank, events, observations, lagging, code),
        process_group=progress.process_group if progress else group,
        last_enqueued=progress.enqueued if progress else None,
        last_completed=progress.completed if progress else None,
        last_seq=report.seq if report else (progress.seq if progress else None),
        last_op=report.op if report else "",
        numel_in=report.numel_in if report else None,
        numel_out=report.numel_out if report else None,
        last_step=steps[-1] if steps else None,
        exit_code=code,
        signal=SIGNALS.get(-code, "") if code is not None else "",
        line=shown.line if shown else 0,
        file=shown.file if shown else "",
    )


def crashed(code: int | None) -> bool:
    """Whether a process that ended with `code` was killed by a fault and not on purpose."""
    return code is not None and code < 0 and code not in ENDED_ON_PURPOSE


def exit_code(event: Event) -> int | None:
    """The exit code an event names, -n for signal n; shells print 128 + n, others the signal."""
    if EXIT_FIELDS.isdisjoint(event.fields):
        return None
    get = event.fields.get
    signal = number(get("signal_number")) or _SIGNAL_NUMBERS.get(get("signal", ""))
    code = number(get("exit_code") or get("return_code"))
    if code is None:
        return -signal if signal else None
    return 128 - code if 128 < code < 160 else code


def _state_name(
    rank: int,
    events: Sequence[Event],
    observations: Observations,
    lagging: dict[int, Event],
    code: int | None,
) -> str:
    error = observations.first_error
    if crashed(code) or (error is not None and error.rank == rank):
        return "crashed"
    if rank in lagging:
        return "behind"
    if rank in observations.incident.ranks_reporting:
        return "waiting"
    if rank in observations.incident.ranks_silent:
        return "silent"
    return "seen" if events else ""
