"""Rules over flight-recorder dumps: which rank, what kind of fault, and why.

Each rule uses what a collective is, never a topology, a rank number or a framework:

* **GPU stall.** A collective in which every rank gives and takes (all-reduce, all-gather,
  reduce-scatter, all-to-all, barrier) finishes nowhere before every member has entered it with
  its data. So when a peer has finished number *s* and this rank still shows *s* as pending, this
  rank's own device stopped finishing work. Counting pending entries finds the same ranks only
  while nobody else's queue is long; comparing the same number in the same group does not depend
  on that. A rank that others do not even wait for is found too. Broadcast and reduce prove
  nothing, for their root may finish alone; Gloo works on the CPU and has no device to stall.
  (An all-to-all with empty splits could finish without a rank; mixture-of-experts layers with a
  few thousand tokens never have that for long.)
* **CPU stall.** A rank issued less than its peers in a group, and all it has pending its peers
  have pending as well: what it waits for has not stopped them, so its own host thread did (GIL,
  data loader, file system, debugger, an early exit of the loop). With nothing pending at all that
  is plainest. Receives posted ahead of time are pending on everybody and excuse nobody.
* **Missing rank.** Everyone who could come has come, and a member has left no dump.
* **Mismatch.** The same number of the same group is another operation, size or type on some
  ranks; the smaller side is named.
* **Desync.** Ranks wait for each other in a circle, each in another group: another order. Or a few
  ranks wait in a collective that most have not come to and that nothing keeps them from.
* **A group hangs as a whole.** All members issued the number, none finished it, and the others wait
  for this group: started on some and not on others names the device; otherwise the members are
  named as suspects only.
* **Straggler.** A collective ends for all at once, so the ranks set out together each time; who
  enters the next one last, and by a clear margin, computed longest. Over the recorded history that
  tells a slow rank from one that stopped just now.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from kb.evidence.flight_recorder.dump_file import GroupKey, RecordedOperation
from kb.evidence.flight_recorder.table import UNNAMED, OpKey, Table

SYMMETRIC = frozenset(
    {
        *("all_reduce", "allreduce_coalesced", "all_gather", "_all_gather_base", "all_to_all"),
        *("all_gather_into_tensor_coalesced", "_reduce_scatter_base", "reduce_scatter"),
        *("reduce_scatter_tensor_coalesced", "all_gather_base", "all_reduce_barrier", "barrier"),
        "alltoall_base",
    }
)
CPU_BACKENDS = frozenset({"gloo", "mpi"})
UNEVEN_IN = frozenset({"all_to_all", "alltoall_base", "scatter", "all_gather", "coalesced"})
UNEVEN_OUT = frozenset({"all_to_all", "alltoall_base", "gather", "reduce_scatter", "coalesced"})

FaultType = Literal[
    "gpu_stall", "cpu_stall", "desync", "mismatch", "straggler", "missing_rank", "unknown"
]
INCOMPLETE_SHARE = 0.25  # above it the caller has not collected the dumps: absence proves nothing

STRAGGLE_OPS = 4  # fewer matched collectives are no history
STRAGGLE_LAST = 20  # look at the most recent ones: skew changes over a run
STRAGGLE_SHARE = 0.75  # share of them in which the rank came last
STRAGGLE_S = 0.1  # seconds behind the others' median; steps of real jobs jitter by milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found. `ranks` are culprits; `suspects` could not be told apart.

    `values` fill the reason's template, per rank; `op` is the collective it shows in.
    """

    rule: str
    fault_type: FaultType
    ranks: tuple[int, ...]
    op: OpKey | None
    values: dict[int, dict[str, object]]
    suspects: tuple[int, ...] = ()
    mismatch: str = ""
    detail: str = ""


def find_mismatch(table: Table) -> Finding | None:
    """The first collective that ranks disagree on, pending or the last thing of a rank.

    A backend without watchdog (Gloo) fails the operation at once: nothing is pending any more, but
    nothing came after it either.
    """
    mismatches: list[tuple[int, str, int, str, Finding]] = []
    for (group, seq), entries in table.matched.items():
        if len(entries) < 2 or not any(
            not entry.done or table.enqueued.get((rank, group)) == seq
            for rank, entry in entries.items()
        ):
            continue
        for kind, view in _views(entries):
            if len(set(view.values())) > 1:
                finding = _mismatch((group, seq), kind, view)
                when = min(entry.created_ns for entry in entries.values())
                mismatches.append((when, group.name, seq, kind, finding))
                break
    return min(mismatches, key=lambda item: item[:4])[4] if mismatches else None


def _views(entries: dict[int, RecordedOperation]) -> Iterable[tuple[str, dict[int, str]]]:
    yield "op", {rank: entry.op for rank, entry in entries.items()}
    ops = {entry.op for entry in entries.values()}
    if not ops & UNEVEN_IN:
        yield "size", {rank: str(list(entry.in_sizes)) for rank, entry in entries.items()}
    if not ops & UNEVEN_OUT:
        yield "size", {rank: str(list(entry.out_sizes)) for rank, entry in entries.items()}
    if not ops & {"gather", "scatter", "broadcast"}:
        yield "dtype", {rank: ",".join(entry.dtypes) for rank, entry in entries.items()}


def _mismatch(op: OpKey, kind: str, view: dict[int, str]) -> Finding:
    counts = Counter(view.values())
    usual, top = min(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    tie = sum(1 for count in counts.values() if count == top) > 1
    odd = tuple(sorted(rank for rank, value in view.items() if value != usual))
    shown = "; ".join(
        f"{value or '-'}: rank {', '.join(str(r) for r in sorted(view) if view[r] == value)}"
        for value in sorted(counts, key=lambda value: (-counts[value], value))
    )
    return Finding(
        rule="mismatch",
        fault_type="mismatch",
        ranks=() if tie else odd,
        suspects=tuple(sorted(view)) if tie else (),
        op=op,
        values={rank: {"own": view[rank] or "-", "usual": usual or "-"} for rank in odd},
        mismatch=kind,
        detail=shown,
    )


def find_gpu_stall(table: Table) -> Finding | None:
    """Ranks on which a collective is pending that a peer has finished."""
    values: dict[int, dict[str, object]] = {}
    ops: list[RecordedOperation] = []
    for rank in table.ranks:
        for entry in table.pending[rank]:
            if entry.p2p or entry.op not in SYMMETRIC or entry.backend in CPU_BACKENDS:
                continue
            ahead = [p for p in table.members[entry.group] if _finished(table, p, entry)]
            if ahead:
                furthest = max(table.done[p, entry.group] for p in ahead)
                values[rank] = {
                    "own_done": table.done[rank, entry.group],
                    "peer_done": furthest,
                    "peer": ahead[0],
                    "pending": len(table.pending[rank]),
                }
                ops.append(entry)
                break
    if not values:
        return None
    first = min(ops, key=lambda entry: (entry.created_ns, entry.group.name))
    return Finding(
        rule="gpu_stall",
        fault_type="gpu_stall",
        ranks=tuple(values),
        op=(first.group, first.seq),
        values=values,
    )


def _finished(table: Table, rank: int, entry: RecordedOperation) -> bool:
    return table.done.get((rank, entry.group), -1) >= entry.seq


def find_missing(table: Table) -> Finding | None:
    """Members without a dump for whom everyone else waits."""
    absent = [rank for rank in table.world if rank not in table.pending]
    if not table.missing or len(absent) > max(1, INCOMPLETE_SHARE * len(table.world)):
        return None
    ranks = tuple(sorted(table.missing))
    return Finding(
        rule="missing",
        fault_type="missing_rank",
        ranks=ranks,
        op=_front(table),
        values={rank: {"waiting": len(table.missing[rank])} for rank in ranks},
    )


def find_cpu_stall(table: Table) -> Finding | None:
    """Ranks that stopped issuing although nothing they wait for stopped their peers."""
    counts = table.waited_for()
    shapes = {rank: _shape(table, rank) for rank in table.ranks}
    values: dict[int, dict[str, object]] = {}
    for rank in table.ranks:
        behind = _stopped_early(table, rank, shapes)
        free = table.blocker(rank) is None and rank not in table.waits
        if behind is None and not (free and counts.get(rank)):
            continue
        group, own, peers = behind or (None, 0, 0)
        values[rank] = {
            "waiting": counts.get(rank, 0),
            "group": str(group) if group else "send/recv",
            "own": own,
            "peers": peers,
            "pending": len(table.pending[rank]),
        }
    if not values:
        return None
    waiting = {rank for rank in table.waits if table.waits[rank] & values.keys()}
    if not waiting:
        return _stopped_first(table, values)
    if len(waiting) < len(values):
        return _few_wait(table, tuple(sorted(waiting)), tuple(values))
    return Finding(
        rule="cpu_stall",
        fault_type="cpu_stall",
        ranks=tuple(values),
        op=_front(table, blamed=frozenset(values)),
        values=values,
    )


def _stopped_first(table: Table, values: dict[int, dict[str, object]]) -> Finding | None:
    """The job failed and nobody waits any more: who never came to what the others tried last."""
    ranks = tuple(rank for rank in values if values[rank]["own"] != values[rank]["peers"])
    if not ranks or len(ranks) * 2 > len(table.ranks):
        return None
    return Finding(
        rule="stopped_first",
        fault_type="unknown",
        ranks=ranks,
        op=_front(table),
        values={rank: values[rank] for rank in ranks},
    )


def _few_wait(table: Table, waiting: tuple[int, ...], others: tuple[int, ...]) -> Finding:
    """Fewer ranks wait than have stopped: either side may be the wrong one, so none is named."""
    return Finding(
        rule="few_wait",
        fault_type="desync",
        ranks=(),
        suspects=tuple(sorted((*waiting, *others))),
        op=_front(table),
        values={},
        detail=f"only rank {', '.join(str(rank) for rank in waiting)} waits in it",
    )


def _stopped_early(
    table: Table, rank: int, shapes: dict[int, Counter[tuple[str, str, int]]]
) -> tuple[GroupKey, int, int] | None:
    """A group in which peers with the same things pending went further; own and their number.

    A rank that has a collective pending itself is named only when its peers agree: at least two
    stand at the furthest number, and at most half as many fall short. Hosts that run ahead of a
    stuck device do not all stop at exactly the same call.
    """
    best: tuple[GroupKey, int, int] | None = None
    for group in sorted(table.members, key=lambda key: (key.name, key.desc)):
        mine = table.enqueued.get((rank, group))
        if mine is None:
            continue
        all_at = [n for m in table.members[group] if (n := table.enqueued.get((m, group)))]
        furthest = max(all_at, default=0)
        at_front = all_at.count(furthest)
        agreed = at_front >= 2 and (len(all_at) - at_front) * 2 <= at_front
        if furthest <= mine or not (agreed or table.blocker(rank) is None):
            continue
        if not any(
            table.enqueued.get((peer, group)) == furthest and not shapes[rank] - shapes[peer]
            for peer in table.members[group]
            if peer in shapes
        ):
            continue
        if best is None or furthest - mine > best[2] - best[1]:
            best = (group, mine, furthest)
    return best


def _shape(table: Table, rank: int) -> Counter[tuple[str, str, int]]:
    """What a rank has pending, comparable between ranks of the same program."""
    return Counter(
        (
            entry.group.name if entry.group.desc in UNNAMED else entry.group.desc,
            entry.op,
            entry.peer or 0 if entry.p2p else entry.seq,
        )
        for entry in table.pending[rank]
    )


def find_desync(table: Table) -> Finding | None:
    """Ranks that wait for each other in a circle; the one most wait for, or who stopped first."""
    circle = _circles(table)
    if not circle:
        return None
    counts = Counter(t for rank in circle for t in table.waits[rank] if t in circle)
    top = max(counts.values())
    named = [rank for rank in sorted(circle) if counts[rank] == top]
    if len(named) * 2 >= len(circle) and len(circle) > 2:
        named = []
    if len(circle) == 2:
        last = {rank: table.pending[rank][-1].created_ns for rank in circle}
        named = [min(sorted(circle), key=lambda rank: last[rank])]
    return Finding(
        rule="desync",
        fault_type="desync",
        ranks=tuple(named),
        suspects=() if named else tuple(sorted(circle)),
        op=_front(table),
        values={rank: {"waiting": counts[rank], "own": _blocked_on(table, rank)} for rank in named},
        detail="; ".join(f"rank {rank}: {_blocked_on(table, rank)}" for rank in sorted(circle)),
    )


def _circles(table: Table) -> set[int]:
    """Ranks that can reach themselves along the waits, found by peeling off all others."""
    left = {rank: set(targets) & table.waits.keys() for rank, targets in table.waits.items()}
    while True:
        sources = {target for targets in left.values() for target in targets}
        ends = [rank for rank, targets in left.items() if not targets or rank not in sources]
        if not ends:
            return set(left)
        for rank in ends:
            del left[rank]
        for targets in left.values():
            targets.difference_update(ends)


def _blocked_on(table: Table, rank: int) -> str:
    entry = table.blocker(rank) or next(iter(table.pending[rank]), None)
    return f"{entry.op} {entry.seq} / {entry.group}" if entry else "-"


def find_still_group(table: Table) -> Finding | None:
    """A collective all members issued and none finished, with nobody to wait for elsewhere."""
    free = [rank for rank in table.ranks if rank not in table.waits]
    fronts: dict[OpKey, list[int]] = defaultdict(list)
    for rank in free:
        entry = table.blocker(rank)
        if entry is not None:
            fronts[entry.group, entry.seq].append(rank)
    if not fronts:
        return None
    op, _ = min(fronts.items(), key=lambda item: (-len(item[1]), item[0][0].name, item[0][1]))
    entries = table.matched[op]
    members = tuple(rank for rank in table.members[op[0]] if rank in entries)
    if len(members) < len(table.members[op[0]]) or any(e.done for e in entries.values()):
        return None
    started = [rank for rank in members if entries[rank].started]
    stalled = tuple(rank for rank in members if rank not in started) if started else ()
    whole = len(members) == len(table.world)
    if not stalled and not whole:
        stalled = _furthest_back(table, members)
    gpu = bool(stalled) or not whole
    return Finding(
        rule="still_group",
        fault_type="gpu_stall" if gpu and not _on_cpu(entries) else "unknown",
        ranks=stalled,
        suspects=() if stalled else members,
        op=op,
        values={rank: {"started": len(started)} for rank in stalled},
    )


def _on_cpu(entries: dict[int, RecordedOperation]) -> bool:
    return all(entry.backend in CPU_BACKENDS for entry in entries.values())


def _furthest_back(table: Table, members: tuple[int, ...]) -> tuple[int, ...]:
    """Members that have pending all the others have and more: their queue stopped first."""
    shapes = {rank: _shape(table, rank) for rank in members}
    back = tuple(
        rank
        for rank in members
        if any(shapes[rank] - shapes[other] for other in members)
        and not any(shapes[other] - shapes[rank] for other in members)
    )
    return back if len(back) * 2 <= len(members) else ()


def _front(table: Table, *, blamed: frozenset[int] = frozenset()) -> OpKey | None:
    """The collective most ranks wait in, the earliest; with `blamed`, one those are late to."""
    counts: Counter[OpKey] = Counter()
    created: dict[OpKey, int] = {}
    for rank in table.waits.keys() | {r for ranks in table.missing.values() for r in ranks}:
        for entry in table.pending[rank]:
            late = {m for m in blamed if table.enqueued.get((m, entry.group), 1 << 62) < entry.seq}
            if entry.p2p or (blamed and not late):
                continue
            op = (entry.group, entry.seq)
            counts[op] += 1
            created[op] = min(created.get(op, entry.created_ns), entry.created_ns)
    if not counts:
        return None
    return min(counts, key=lambda op: (-counts[op], created[op], op[0].name, op[1]))


def find_straggler(table: Table) -> Finding | None:
    """The rank that came last to most of the recent collectives, by a clear margin."""
    lags: dict[int, list[float]] = defaultdict(list)
    last: Counter[int] = Counter()
    matched = sorted(
        (min(e.created_ns for e in entries.values()), op[0].name, op[1], op)
        for op, entries in table.matched.items()
        if len(entries) > 2 and len(entries) == len(table.members[op[0]])
    )[-STRAGGLE_LAST:]
    for *_, op in matched:
        times = {rank: entry.created_ns / 1e9 for rank, entry in table.matched[op].items()}
        latest = max(sorted(times), key=lambda rank: times[rank])
        last[latest] += 1
        lags[latest].append(times[latest] - median(t for r, t in times.items() if r != latest))
    if len(matched) < STRAGGLE_OPS:
        return None
    rank = max(sorted(last), key=lambda rank: last[rank])
    lag = median(lags[rank])
    if last[rank] < STRAGGLE_SHARE * len(matched) or lag < STRAGGLE_S:
        return None
    return Finding(
        rule="straggler",
        fault_type="straggler",
        ranks=(rank,),
        op=matched[-1][-1],
        values={rank: {"last": last[rank], "of": len(matched), "lag_s": round(lag, 1)}},
    )
