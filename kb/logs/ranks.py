"""What is known of each rank: who reports, who is silent, who is behind, who died."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kb.logs.picture import Picture, number
from kb.types import Event, RankState

# Events by which a rank says that it waited itself.
REPORTS = frozenset(
    {
        "collective_timeout",
        "watchdog_timeout",
        "rank_progress",
        "barrier_waiter",
        "monitored_barrier",
        "gloo_timeout",
    }
)
MAX_RANKS_LISTED = 4096  # of silent ranks: a world size beyond it is listed in part
SIGNALS = {
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
}
CRASH_EVENTS = frozenset({"signal_death", "segfault", "cuda_oom", "device_assert", "exception"})


def reporting_ranks(events: Sequence[Event]) -> tuple[int, ...]:
    """Ranks that report a timeout themselves."""
    return tuple(sorted({e.rank for e in events if e.event in REPORTS and e.rank is not None}))


def silent_ranks(
    events: Sequence[Event], reporting: Sequence[int], world_size: int | None
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
        seen = {e.rank for e in events if e.rank is not None and _takes_part(e)}
        size = max({*reporting, *seen}) + 1
    there = set(reporting)
    return tuple(rank for rank in range(min(size, MAX_RANKS_LISTED)) if rank not in there)


def _takes_part(event: Event) -> bool:
    """Whether the event shows that its rank exists: it failed, or torchrun lists it."""
    return event.kind in ("timeout", "root", "cascade") or event.event == "rank_row"


def behind(picture: Picture) -> dict[int, Event]:
    """Ranks whose progress is lower than others' in one process group, with the event saying so."""
    by_group: dict[str, dict[int, tuple[int, Event]]] = defaultdict(dict)
    for item in picture.progress:
        if item.enqueued is not None:
            by_group[item.process_group][item.rank] = (item.enqueued, item.event)
    found = _lowest(by_group)
    if found:
        return found
    by_seq: dict[str, dict[int, tuple[int, Event]]] = defaultdict(dict)
    for report in picture.opening:
        if report.rank is not None and report.seq is not None:
            by_seq[report.process_group].setdefault(report.rank, (report.seq, report.event))
    return _lowest(by_seq)


def _lowest(by_group: dict[str, dict[int, tuple[int, Event]]]) -> dict[int, Event]:
    """The ranks at the lowest number of a group, if they are fewer than half of it."""
    found: dict[int, Event] = {}
    for group in sorted(by_group):
        members = by_group[group]
        low = min(value for value, _ in members.values())
        slow = {rank: event for rank, (value, event) in members.items() if value == low}
        if len(members) > 1 and len(slow) * 2 <= len(members):
            found.update(slow)
    return found


def rank_states(picture: Picture) -> tuple[RankState, ...]:
    """The rank table, one row a rank, by rank."""
    lagging = behind(picture)
    by_rank: dict[int, list[Event]] = defaultdict(list)
    for event in picture.events:
        if event.rank is not None:
            by_rank[event.rank].append(event)
    ranks = sorted(set(by_rank) | set(picture.silent))
    return tuple(_state(rank, by_rank[rank], picture, lagging) for rank in ranks)


def _state(
    rank: int, events: Sequence[Event], picture: Picture, lagging: dict[int, Event]
) -> RankState:
    report = next((r for r in picture.reports if r.rank == rank), None)
    mine = [p for p in picture.progress if p.rank == rank]
    group = report.process_group if report else ""
    progress = next((p for p in mine if p.process_group == group), mine[0] if mine else None)
    steps = [step for e in events if (step := number(e.fields.get("step"))) is not None]
    code = next((c for e in events if (c := exit_code(e)) is not None), None)
    host = next((e.host for e in events if e.host), "")
    shown = report.event if report else next(iter(events), None)
    return RankState(
        rank=rank,
        state=_word(rank, events, picture, lagging, code),
        host=host,
        process_group=progress.process_group if progress else group,
        last_enqueued=progress.enqueued if progress else None,
        last_completed=progress.completed if progress else None,
        last_seq=report.seq if report else (progress.seq if progress else None),
        last_op=report.op if report else "",
        numel_in=report.numel_in if report else None,
        numel_out=report.numel_out if report else None,
        last_step=steps[-1] if steps else None,
        exit_code=code,
        signal=SIGNALS.get(-code, "") if code is not None and code < 0 else "",
        line=shown.line if shown else 0,
        file=shown.file if shown else "",
    )


def exit_code(event: Event) -> int | None:
    """The exit code an event tells; shells print 128 + signal."""
    code = number(event.fields.get("exit_code") or event.fields.get("return_code"))
    return 128 - code if code is not None and 128 < code < 160 else code


def _word(
    rank: int,
    events: Sequence[Event],
    picture: Picture,
    lagging: dict[int, Event],
    code: int | None,
) -> str:
    error = picture.first_error
    died = code is not None and code < 0 and code not in (-6, -15)
    if died or (error is not None and error.rank == rank):
        return "crashed"
    if rank in lagging:
        return "behind"
    if rank in picture.reporting:
        return "waiting"
    if rank in picture.silent:
        return "silent"
    return "seen" if events else ""
