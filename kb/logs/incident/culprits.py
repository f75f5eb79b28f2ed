"""Ranks the evidence points to, and why, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kb.logs.incident.at_work import at_work
from kb.logs.incident.endings import came_late, ended_from_outside, lost_by_all
from kb.logs.incident.joining import awaited, not_joined
from kb.logs.incident.observations import Observations, WorkReport, number
from kb.logs.incident.progress import behind_in_steps, finished_early, uneven_epochs
from kb.logs.incident.ranks import WATCHDOG_ABORT, behind, crashed, exit_code
from kb.logs.incident.sizes import odd_sizes
from kb.logs.scan.prefix import split_front
from kb.types.incident import Culprit, Event
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import EventRole

MAX_CULPRITS = 16  # more is no pointer any more
MAX_SILENT_SHARE = 0.34  # silent ranks are suspects only where they are the exception
PAIRED = frozenset({"SEND", "RECV"})  # differ by nature: one rank sends what the other receives
ROOT_CAUSE_LINES = 8  # lines of one row of torchrun's failure table
Fingerprint = tuple[str, str, str]  # of a collective, as printed: operation, shape and type


def find_culprits(observations: Observations) -> tuple[Culprit, ...]:
    """Suspect ranks, the strongest reason first; each rank once."""
    culprits: dict[int, Culprit] = {}
    for source in _SOURCES:
        for culprit in source(observations):
            culprits.setdefault(culprit.rank, culprit)
        if culprits:
            break
    return tuple(culprits.values())[:MAX_CULPRITS]


def _crashed(observations: Observations) -> Iterator[Culprit]:
    error = observations.first_error
    if error is not None and not observations.log.plays(error, EventRole.SHARED_ERROR):
        yield from _at(error, error.rank, _reason(observations, "first_error"))
    for event in observations.log.events:
        code = exit_code(event)
        if crashed(code):
            yield from _at(event, event.rank, _reason(observations, "exit_code", code=code))


def odd_fingerprint(observations: Observations) -> Iterator[Culprit]:
    """The ranks whose collective's fingerprint differs from that of most ranks.

    The debug mode prints a rank's own fingerprint beside one that differs from it, so every rank
    complains, the right ones too. A tie accuses nobody.
    """
    for seq, prints in sorted(_fingerprints(observations).items()):
        counts = Counter(shown for shown, _ in prints.values())
        (usual, most), *rest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if not rest or most <= rest[0][1]:
            continue
        for rank in sorted(rank for rank, (shown, _) in prints.items() if shown != usual):
            values = {"own": _print_words(prints[rank][0]), "usual": _print_words(usual)}
            reason = _reason(observations, "odd_fingerprint", seq=seq or "?", **values)
            yield from _at(prints[rank][1], rank, reason)


def _fingerprints(
    observations: Observations,
) -> dict[str, dict[int, tuple[Fingerprint, Event]]]:
    """Per sequence number and rank: the fingerprint and where it is printed."""
    prints: dict[str, dict[int, tuple[Fingerprint, Event]]] = defaultdict(dict)
    for event in observations.log.of(EventRole.MISMATCH):
        get = event.fields.get
        sides = ((event.rank, ""), (_peer(event), "peer_"))
        for rank, side in sides:
            if rank is not None and get(f"{side}op"):
                shown = (get(f"{side}op", ""), get(f"{side}shape", ""), get(f"{side}dtypes", ""))
                prints[get("seq", "")].setdefault(rank, (shown, event))
    return prints


def _print_words(shown: Fingerprint) -> str:
    return f"{shown[0]}[{shown[1]}]"


def _named(observations: Observations) -> Iterator[Culprit]:
    """Ranks other ranks name: desync report, monitored barrier's roll call, a closed connection."""
    rolls = observations.log.of(EventRole.ROLL_CALL)
    yield from _listed(
        observations.log.of(EventRole.DESYNC_REPORT), _reason(observations, "desync_report")
    )
    yield from _listed(rolls, _reason(observations, "roll_call"))
    waiters = observations.log.of(EventRole.BARRIER_WAITER)
    for peer in sorted({_peer(event) or 0 for event in waiters}):
        if not rolls:
            yield from _at(waiters[0], peer, _reason(observations, "awaited"))
    closed = observations.log.of(EventRole.PEER_CLOSED)
    peers = {event.fields["peer"]: event for event in reversed(closed) if _peer(event) is not None}
    if len(peers) == 1:
        (event,) = peers.values()
        yield from _at(event, _peer(event), _reason(observations, "peer_closed"))


def _late(observations: Observations) -> Iterator[Culprit]:
    """Ranks that did not join, as far as the store tells who they are."""
    missing = not_joined(observations.log)
    for rank, event in missing.items():
        get = event.fields.get
        counts = {name: get(name, "?") for name in ("present", "world_size")}
        yield from _at(event, rank, _reason(observations, "not_joined", **counts))
    if not missing:
        for rank, event in awaited(observations.log).items():
            key = event.fields.get("key", "ncclUniqueId")
            yield from _at(event, rank, _reason(observations, "awaited_key", key=key))


def _peer(event: Event) -> int | None:
    """The other rank an event names."""
    return number(event.fields.get("peer"))


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why a rank is named: the label `culprit.<kind>`, and its words."""

    kind: str
    words: Bilingual


def _reason(observations: Observations, kind: str, /, **values: object) -> _Reason:
    label = observations.log.vocabulary.label
    return _Reason(kind, label(f"culprit.{kind}", **values))


def _at(event: Event, rank: int | None, why: _Reason) -> Iterator[Culprit]:
    """The rank as a culprit for what stands on the event's line; nothing where it is not known."""
    if rank is not None:
        yield Culprit(rank=rank, reason=why.words, line=event.line, file=event.file, kind=why.kind)


def _listed(events: Sequence[Event], why: _Reason) -> Iterator[Culprit]:
    """Ranks of a printed list such as ``[3, 7]``."""
    for event in events:
        for text in event.fields.get("peers", "").split(","):
            if text.strip().isdecimal():
                yield from _at(event, int(text), why)


def odd_reports(observations: Observations) -> list[tuple[WorkReport, WorkReport]]:
    """Pairs (odd one, usual one) with one process group and number but another op or size."""
    groups: dict[tuple[str, int], list[WorkReport]] = defaultdict(list)
    unnamed = observations.unnamed_is_one_group
    for report in observations.first_reports:
        if report.seq is None or report.rank is None:
            continue
        if not report.process_group and not unnamed:
            continue
        if report.op and report.op not in PAIRED:
            groups[report.process_group, report.seq].append(report)
    pairs: list[tuple[WorkReport, WorkReport]] = []
    for key in sorted(groups):
        kinds = Counter((r.op, r.numel_in) for r in groups[key])
        if len(kinds) < 2 or any(size is None for _, size in kinds):
            continue
        usual = min(kinds, key=lambda kind: (-kinds[kind], kind[0], kind[1] or 0))
        plain = next(r for r in groups[key] if (r.op, r.numel_in) == usual)
        pairs += [(r, plain) for r in groups[key] if (r.op, r.numel_in) != usual]
    return pairs


def hanging_places(observations: Observations) -> list[tuple[WorkReport, tuple[int, ...]]]:
    """Where ranks of the main report's process group hang: a report and all ranks in that work.

    The place of most ranks first. Of each rank the first report counts: later ones follow from it.
    """
    main = observations.main
    first: dict[int, WorkReport] = {}
    unnamed = observations.unnamed_is_one_group
    for report in observations.first_reports:
        if main is None or report.rank is None or report.seq is None or not report.op:
            continue
        groups = {report.process_group, main.process_group}
        if unnamed if "" in groups else len(groups) == 1:
            first.setdefault(report.rank, report)
    places: dict[tuple[int | None, str], list[int]] = defaultdict(list)
    for rank in sorted(first):
        places[first[rank].seq, first[rank].op].append(rank)
    ordered = sorted(places.values(), key=lambda ranks: (-len(ranks), ranks))
    return [(first[ranks[0]], tuple(ranks)) for ranks in ordered]


def work(report: WorkReport) -> str:
    """The operation and how many elements go into it, where that was printed: ``ALLREDUCE(8)``."""
    return report.op if report.numel_in is None else f"{report.op}({report.numel_in})"


def _kind(report: WorkReport) -> tuple[str, int | None, str, int | None]:
    return (report.process_group, report.seq, report.op, report.numel_in)


def _odd_collective(observations: Observations) -> Iterator[Culprit]:
    """The ranks that run something else than most do; a tie accuses nobody."""
    of_ranks = [report for report in observations.first_reports if report.rank is not None]
    ranks = Counter(map(_kind, of_ranks))
    for odd, usual in odd_reports(observations):
        if odd.rank is None or ranks[_kind(odd)] >= ranks[_kind(usual)]:
            continue
        values = {"own": work(odd), "usual": work(usual)}
        reason = _reason(observations, "odd_work", seq=odd.seq, **values)
        yield from _at(odd.event, odd.rank, reason)


def _elsewhere(observations: Observations) -> Iterator[Culprit]:
    """The few ranks that stand in another line of the program than most."""
    yield from observations.places.culprits


def _lagging(observations: Observations) -> Iterator[Culprit]:
    slow = behind(observations)
    for rank in sorted(slow):
        yield from _at(slow[rank], rank, _reason(observations, "behind"))


def _first_failed(observations: Observations) -> Iterator[Culprit]:
    """The rank torchrun saw fail first.

    The watchdog's own abort says nothing, nor does an exception that is a timeout or follows from
    another rank's end. SIGTERM on the first failure came from outside: torchrun sends its own to
    the others only after it.
    """
    followers = {e.rank for e in observations.log.events if e.kind in ("timeout", "cascade")}
    for mark in observations.log.of(EventRole.FIRST_FAILURE_ROW):
        rows = [
            e
            for e in observations.log.of(EventRole.EXIT_ROW)
            if e.file == mark.file and 0 < e.line - mark.line <= ROOT_CAUSE_LINES
        ]
        for row in rows[:1]:
            code = exit_code(row)
            follows = code is not None and code > 0 and row.rank in followers
            if code not in (None, WATCHDOG_ABORT) and not follows:
                yield from _at(row, row.rank, _reason(observations, "first_failure"))


def _compared(observations: Observations) -> Iterator[Culprit]:
    """Ranks unlike the others in what they print of their progress."""
    epochs, steps = uneven_epochs(observations), behind_in_steps(observations)
    early = finished_early(observations)
    for unequal, reason in (
        (epochs, epochs and _reason(observations, "uneven_epoch", sides=epochs.words)),
        (early, _reason(observations, "finished_early")),
        (steps, steps and _reason(observations, "behind_in_steps", sides=steps.words)),
    ):
        if unequal and reason:
            for rank, event in unequal.ranks.items():
                yield from _at(event, rank, reason)
            return


def _ended(observations: Observations) -> Iterator[Culprit]:
    """Ranks that went first, or came last, by how all of them ended."""
    for source, name in (
        (ended_from_outside, "ended_from_outside"),
        (lost_by_all, "lost_by_all"),
        (came_late, "came_late"),
    ):
        for rank, event in source(observations).items():
            yield from _at(event, rank, _reason(observations, name))


def _odd_size(observations: Observations) -> Iterator[Culprit]:
    for rank, event, part in odd_sizes(observations):
        values = {name: event.fields.get(name, "?") for name in ("received", "expected")}
        reason = _reason(observations, f"{part}_other_size", **values)
        yield from _at(event, rank, reason)


def _in_code(observations: Observations) -> Iterator[Culprit]:
    """The one rank that the code quoted at the failure treats unlike the others."""
    quoted = "\n".join(event.fields.get("code", "") for event in observations.places.events)
    events = [
        event
        for event in observations.log.of(EventRole.RANK_IN_CODE)
        if split_front(event.text)[1].strip() in quoted.split("\n")
    ]
    if len({_peer(event) for event in events}) == 1:
        code = split_front(events[0].text)[1].strip()
        reason = _reason(observations, "rank_in_code", code=code)
        yield from _at(events[0], _peer(events[0]), reason)


def _at_work(observations: Observations) -> Iterator[Culprit]:
    """Silent ranks that say themselves what long work they do."""
    for rank, (event, stage) in at_work(observations).items():
        yield from _at(event, rank, _reason(observations, f"at_work_{stage}"))


def _silent(observations: Observations) -> Iterator[Culprit]:
    silent = observations.incident.ranks_silent
    world = len(silent) + len(observations.incident.ranks_reporting)
    if len(silent) > MAX_SILENT_SHARE * world:
        return
    main = observations.main
    for rank in silent:
        yield Culprit(
            rank=rank,
            kind="silent",
            reason=_reason(observations, "silent").words,
            line=main.line if main else 0,
            file=main.event.file if main else "",
        )


_SOURCES: tuple[Callable[[Observations], Iterator[Culprit]], ...] = (
    _crashed,
    odd_fingerprint,
    _named,
    _late,
    _odd_collective,
    _elsewhere,
    _lagging,
    _compared,
    _first_failed,
    _ended,
    _odd_size,
    _at_work,
    _silent,
    _in_code,
)
