"""Ranks the evidence points to, and why, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from kb.logs.picture import Picture, Report, number
from kb.logs.ranks import behind, exit_code
from kb.types import Bilingual, Culprit, Event

MAX_CULPRITS = 16  # more is no pointer any more
MAX_SILENT_SHARE = 0.34  # silent ranks are suspects only where they are the exception
PAIRED = frozenset({"SEND", "RECV"})  # differ by nature: one rank sends what the other receives
ROOT_CAUSE_LINES = 8  # lines of one row of torchrun's failure table
_IN_DESYNC = Bilingual(zh="失步报告点名：落后或未加入", en="named by the desync report as lagging")
_NOT_AT_BARRIER = Bilingual(
    zh="没有到达 monitoredBarrier", en="did not reach the monitored barrier"
)
_AWAITED = Bilingual(zh="其他卡在屏障处等它", en="others wait for it at the barrier")
_CLOSED = Bilingual(
    zh="只有它的连接被关闭：进程已退出", en="only its connection closed: its process ended"
)


def find_culprits(picture: Picture) -> tuple[Culprit, ...]:
    """Suspect ranks, the strongest reason first; each rank once."""
    found: dict[int, Culprit] = {}
    for source in _SOURCES:
        for culprit in source(picture):
            found.setdefault(culprit.rank, culprit)
        if found:
            break
    return tuple(list(found.values())[:MAX_CULPRITS])


def _crashed(picture: Picture) -> Iterator[Culprit]:
    error = picture.first_error
    event = picture.first_error_event
    if error is not None and error.rank is not None and event is not None and _local(event):
        yield Culprit(
            rank=error.rank,
            reason=Bilingual(
                zh=f"最先报出真正的错误（{error.kind}），其余是连锁反应",
                en=f"the first real error ({error.kind}) is on this rank; the rest follows from it",
            ),
            line=error.line,
            file=error.file,
        )
    for item in picture.events:
        code = exit_code(item)
        if item.rank is not None and code is not None and code < 0 and code not in (-6, -15):
            yield Culprit(
                rank=item.rank,
                reason=Bilingual(zh=f"进程退出码 {code}", en=f"the process ended with code {code}"),
                line=item.line,
                file=item.file,
            )


# Errors every rank meets at once say nothing about the rank that printed one first.
SHARED = frozenset(
    {
        "mismatch_detected",
        "store_connect",
        "rendezvous_failed",
        "nccl_system_error",
        "gloo_full_mesh",
    }
)


def _local(event: Event) -> bool:
    return event.event not in SHARED


def odd_fingerprint(picture: Picture) -> Iterator[Culprit]:
    """The ranks whose collective's fingerprint differs from that of most ranks.

    The debug mode prints a rank's own fingerprint beside one that differs from it, so every rank
    complains, the right ones too. A tie accuses nobody.
    """
    for seq, prints in sorted(_fingerprints(picture).items()):
        counts = Counter(shown for shown, _ in prints.values())
        (usual, most), *rest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if not rest or most <= rest[0][1]:
            continue
        for rank in sorted(rank for rank, (shown, _) in prints.items() if shown != usual):
            one = _print_words(prints[rank][0])
            yield Culprit(
                rank=rank,
                reason=Bilingual(
                    zh=f"序号 {seq or '?'} 处的指纹是 {one}，多数卡是 {_print_words(usual)}",
                    en=f"at number {seq or '?'} its fingerprint is {one}, "
                    f"most ranks have {_print_words(usual)}",
                ),
                line=prints[rank][1].line,
                file=prints[rank][1].file,
            )


def _fingerprints(picture: Picture) -> dict[str, dict[int, tuple[tuple[str, str, str], Event]]]:
    """Per sequence number and rank: operation, shape and type as printed, and where."""
    found: dict[str, dict[int, tuple[tuple[str, str, str], Event]]] = defaultdict(dict)
    for event in picture.of("mismatch_detected"):
        get = event.fields.get
        sides = ((event.rank, ""), (number(get("peer")), "peer_"))
        for rank, side in sides:
            if rank is not None and get(f"{side}op"):
                shown = (get(f"{side}op", ""), get(f"{side}shape", ""), get(f"{side}dtypes", ""))
                found[get("seq", "")].setdefault(rank, (shown, event))
    return found


def _print_words(shown: tuple[str, str, str]) -> str:
    return f"{shown[0]}[{shown[1]}]"


def _named(picture: Picture) -> Iterator[Culprit]:
    """Ranks other ranks name: desync report, monitored barrier's roll call, a closed connection."""
    rolls = picture.of("monitored_barrier")
    yield from _listed(picture.of("desync_report"), _IN_DESYNC)
    yield from _listed(rolls, _NOT_AT_BARRIER)
    waiters = picture.of("barrier_waiter")
    for peer in sorted({number(event.fields.get("peer")) or 0 for event in waiters}):
        if not rolls:
            yield _at(waiters[0], peer, _AWAITED)
    closed = [e for e in picture.of("peer_closed") if number(e.fields.get("peer")) is not None]
    if len({event.fields["peer"] for event in closed}) == 1:
        yield _at(closed[0], int(closed[0].fields["peer"]), _CLOSED)


def _at(event: Event, rank: int, reason: Bilingual) -> Culprit:
    return Culprit(rank=rank, reason=reason, line=event.line, file=event.file)


def _listed(events: Sequence[Event], reason: Bilingual) -> Iterator[Culprit]:
    """Ranks of a printed list such as ``[3, 7]``."""
    for event in events:
        for text in event.fields.get("peers", "").split(","):
            if text.strip().isdigit():
                yield _at(event, int(text), reason)


def odd_reports(picture: Picture) -> list[tuple[Report, Report]]:
    """Pairs (odd one, usual one) with one process group and number but another op or size."""
    groups: dict[tuple[str, int], list[Report]] = defaultdict(list)
    for report in picture.opening:
        if report.seq is None or report.rank is None:
            continue
        if report.op and report.op not in PAIRED:
            groups[report.process_group, report.seq].append(report)
    pairs: list[tuple[Report, Report]] = []
    for key in sorted(groups):
        kinds = Counter((r.op, r.numel_in) for r in groups[key])
        if len(kinds) < 2 or any(size is None for _, size in kinds):
            continue
        usual = min(kinds, key=lambda kind: (-kinds[kind], kind[0], kind[1] or 0))
        plain = next(r for r in groups[key] if (r.op, r.numel_in) == usual)
        pairs += [(r, plain) for r in groups[key] if (r.op, r.numel_in) != usual]
    return pairs


def hanging_places(picture: Picture) -> list[tuple[Report, tuple[int, ...]]]:
    """Where ranks of the main report's process group hang: a report and all ranks in that work.

    The place of most ranks first. Of each rank the first report counts: later ones follow from it.
    """
    main = picture.main
    first: dict[int, Report] = {}
    for report in picture.opening:
        if main is None or report.rank is None or report.seq is None or not report.op:
            continue
        one_group = report.process_group == main.process_group
        if one_group or not report.process_group or not main.process_group:
            first.setdefault(report.rank, report)
    places: dict[tuple[int | None, str], list[int]] = defaultdict(list)
    for rank in sorted(first):
        places[first[rank].seq, first[rank].op].append(rank)
    ordered = sorted(places.values(), key=lambda ranks: (-len(ranks), ranks))
    return [(first[ranks[0]], tuple(ranks)) for ranks in ordered]


def work(report: Report) -> str:
    """The operation and how many elements go into it, where that was printed: ``ALLREDUCE(8)``."""
    return report.op if report.numel_in is None else f"{report.op}({report.numel_in})"


def _kind(report: Report) -> tuple[str, int | None, str, int | None]:
    return (report.process_group, report.seq, report.op, report.numel_in)


def _odd_collective(picture: Picture) -> Iterator[Culprit]:
    """The ranks that run something else than most do; a tie accuses nobody."""
    ranks = Counter(_kind(report) for report in picture.opening if report.rank is not None)
    for odd, usual in odd_reports(picture):
        if odd.rank is None or ranks[_kind(odd)] >= ranks[_kind(usual)]:
            continue
        yield Culprit(
            rank=odd.rank,
            reason=Bilingual(
                zh=f"序号 {odd.seq} 处是 {work(odd)}，其他卡是 {work(usual)}",
                en=f"at sequence number {odd.seq} it runs {work(odd)}, others {work(usual)}",
            ),
            line=odd.line,
            file=odd.event.file,
        )


def _lagging(picture: Picture) -> Iterator[Culprit]:
    slow = behind(picture)
    for rank in sorted(slow):
        yield Culprit(
            rank=rank,
            reason=Bilingual(
                zh="在同一进程组里进度落后于其他卡",
                en="behind the others in the same process group",
            ),
            line=slow[rank].line,
            file=slow[rank].file,
        )


def _first_failed(picture: Picture) -> Iterator[Culprit]:
    """The rank torchrun saw fail first.

    The watchdog's own abort says nothing, nor does an exception that is a timeout or follows from
    another rank's end. SIGTERM on the first failure came from outside: torchrun sends its own to
    the others only after it.
    """
    followers = {e.rank for e in picture.events if e.kind in ("timeout", "cascade")}
    for mark in picture.of("root_cause_row"):
        rows = [
            e
            for e in picture.of("exit_row")
            if e.file == mark.file and 0 < e.line - mark.line <= ROOT_CAUSE_LINES
        ]
        for row in rows[:1]:
            code = exit_code(row)
            follows = code is not None and code > 0 and row.rank in followers
            if row.rank is not None and code not in (None, -6) and not follows:
                yield Culprit(
                    rank=row.rank,
                    reason=Bilingual(
                        zh="torchrun 最先观察到它失败", en="torchrun saw it fail first"
                    ),
                    line=row.line,
                    file=row.file,
                )


def _silent(picture: Picture) -> Iterator[Culprit]:
    world = len(picture.silent) + len(picture.reporting)
    if not picture.silent or len(picture.silent) > MAX_SILENT_SHARE * world:
        return
    main = picture.main
    for rank in picture.silent:
        yield Culprit(
            rank=rank,
            reason=Bilingual(
                zh="其他卡都报告超时，只有它没有", en="the others report the timeout, it does not"
            ),
            line=main.line if main else 0,
            file=main.event.file if main else "",
        )


_SOURCES: tuple[Callable[[Picture], Iterator[Culprit]], ...] = (
    _crashed,
    odd_fingerprint,
    _named,
    _odd_collective,
    _lagging,
    _first_failed,
    _silent,
)
