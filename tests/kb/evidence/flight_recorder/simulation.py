"""A small model of a parallel training job that leaves flight-recorder dumps.

Ranks run the same kind of program (tensor, expert, pipeline and data parallel groups); a rank's
host issues operations ahead of its device and waits for it at sync points; a collective finishes
when every member's device has reached it. Faults strike a rank at a random moment:

* ``lock_gil``: the host issues nothing more, the device goes on.
* ``gpu_error``: the device reports no more completions; the host goes on to its next sync point.
* ``gpu_sleep``: the device starts nothing more, the host goes on to its next sync point.
* ``sigstop``: neither goes on and there is no dump.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from kb.evidence.flight_recorder.dump_file import Dump, GroupKey, RecordedOperation

Step = tuple[str, GroupKey | None, int]  # what, in which group, partner's index in the group


@dataclass(kw_only=True)
class Operation:
    """One issued operation on one rank."""

    record: int
    kind: str
    group: GroupKey
    partner: int
    seq: int
    created: int
    done: bool = False
    seen: bool = False  # the recorder saw it finish


@dataclass(kw_only=True)
class Rank:
    """One process: its program, how far the host is, and what it has issued."""

    number: int
    program: list[Step]
    at: int = 0
    issued: list[Operation] = field(default_factory=list)
    counts: dict[tuple[GroupKey, bool], int] = field(default_factory=lambda: defaultdict(int))
    host: bool = True
    device: bool = True
    watched: bool = True
    alive: bool = True


@dataclass(kw_only=True)
class Job:
    """A job of tensor × data × pipeline ranks; `experts` puts all of a stage into one group."""

    tensor: int
    data: int
    pipeline: int
    experts: bool
    seed: int
    only_active: bool = True
    groups: dict[GroupKey, tuple[int, ...]] = field(default_factory=dict)

    def run(self, faults: dict[int, str]) -> list[Dump]:
        """Run until nothing moves any more, with `faults` by rank, and dump every live rank."""
        rng = random.Random(self.seed)
        size = self.tensor * self.data * self.pipeline
        names = self._make_groups(size, rng)
        ranks = [Rank(number=r, program=self._program(r, names[r])) for r in range(size)]
        strike = rng.randrange(20, 60)
        moments = {rank: strike + rng.randrange(0, 4) for rank in faults}
        idle = tick = 0
        while idle < 12:
            tick += 1
            for rank, kind in faults.items():
                if tick == moments[rank]:
                    _strike(ranks[rank], kind)
            moved = [_host(rank, rng.randrange(2, 6), tick) for rank in ranks if rank.host]
            finished = _device(ranks, self.groups)
            idle = 0 if any(moved) or finished or tick <= max(moments.values()) else idle + 1
        return [self._dump(rank) for rank in ranks if rank.alive]

    def _make_groups(self, size: int, rng: random.Random) -> dict[int, dict[str, GroupKey]]:
        def where(rank: int) -> tuple[int, int, int]:
            return (
                rank % self.tensor,
                rank // self.tensor % self.data,
                rank // self.tensor // self.data,
            )

        kinds: dict[str, Callable[[int, int, int], object]] = {
            "WORLD": lambda t, d, p: 0,
            "TENSOR": lambda t, d, p: (d, p),
            "DATA": lambda t, d, p: (t, p),
            "PIPELINE": lambda t, d, p: (t, d),
            "EXPERT": lambda t, d, p: p,
        }
        names: dict[int, dict[str, GroupKey]] = defaultdict(dict)
        number = rng.randrange(0, 50)
        for kind, key in kinds.items():
            members: dict[object, list[int]] = defaultdict(list)
            for rank in range(size):
                members[key(*where(rank))].append(rank)
            for ranks in members.values():
                number += 1
                group = GroupKey(name="0" if kind == "WORLD" else str(number), desc=kind)
                self.groups[group] = tuple(ranks)
                for rank in ranks:
                    names[rank][kind] = group
        return names

    def _program(self, rank: int, of: dict[str, GroupKey]) -> list[Step]:
        stage = rank // self.tensor // self.data
        pipe = of["PIPELINE"]
        steps: list[Step] = []

        def layer() -> None:
            steps.append(("_all_gather_base", of["TENSOR"], 0))
            if self.experts:
                steps.extend([("all_to_all", of["EXPERT"], 0), ("sync", None, 0)])
                steps.append(("all_to_all", of["EXPERT"], 0))
            steps.append(("_reduce_scatter_base", of["TENSOR"], 0))

        for _ in range(40):
            for _ in range(2):
                if stage + 1 < self.pipeline:
                    steps.append(("recv", pipe, stage + 1))  # posted early for the way back
                if stage:
                    steps.extend([("recv", pipe, stage - 1), ("wait", pipe, stage - 1)])
                layer()
                layer()
                if stage + 1 < self.pipeline:
                    steps.extend([("send", pipe, stage + 1), ("wait", pipe, stage + 1)])
                layer()
                if stage:
                    steps.append(("send", pipe, stage - 1))
            steps.append(("all_reduce", of["DATA"], 0))
            steps.extend([("all_reduce", of["WORLD"], 0), ("sync", None, 0)])
        return steps

    def _dump(self, rank: Rank) -> Dump:
        mine = {group: ranks for group, ranks in self.groups.items() if rank.number in ranks}
        ids = {group: str(index) for index, group in enumerate(mine)}
        entries = tuple(
            _entry(operation, ids[operation.group])
            for operation in rank.issued
            if not operation.seen or not self.only_active
        )
        status: dict[str, tuple[int, int]] = {}
        for group, group_id in ids.items():
            own = [op for op in rank.issued if op.group == group]
            if own:
                left = [op.seq for op in own if not op.seen]
                last = max(op.seq for op in own)
                status[group_id] = (last, min(left) - 1 if left else last)
        return Dump(
            rank=rank.number,
            version="2.10",
            library="2.27.3",
            members=mine,
            status=status,
            entries=entries,
        )


def _strike(rank: Rank, kind: str) -> None:
    rank.host = kind not in ("lock_gil", "sigstop")
    rank.device = kind not in ("gpu_sleep", "sigstop")
    rank.watched = kind != "gpu_error"
    rank.alive = kind != "sigstop"


def _host(rank: Rank, budget: int, tick: int) -> bool:
    moved = False
    for _ in range(budget):
        if rank.at >= len(rank.program):
            break
        what, group, partner = rank.program[rank.at]
        if what == "sync" and any(not op.done for op in rank.issued if _on_main(op)):
            break
        if what == "sync" and not rank.watched:
            break  # the sync point raises the device's error
        rank.at += 1
        moved = True
        if group is not None and what != "wait":
            key = (group, what in ("send", "recv"))
            rank.counts[key] += 1
            rank.issued.append(
                Operation(
                    record=len(rank.issued),
                    kind=what,
                    group=group,
                    partner=partner,
                    seq=rank.counts[key],
                    created=tick * 1_000_000 + len(rank.issued),
                )
            )
    return moved


def _on_main(operation: Operation) -> bool:
    return operation.kind not in ("send", "recv")


def _reached(rank: Rank) -> list[Operation]:
    """Operations the device stands at: the first open one of its stream and all open transfers."""
    if not rank.device:
        return []
    reached: list[Operation] = []
    for operation in rank.issued:
        if operation.done:
            continue
        reached.append(operation)
        if _on_main(operation):
            break
    return reached


def _device(ranks: list[Rank], groups: dict[GroupKey, tuple[int, ...]]) -> bool:
    """Finish what every member has reached; one collective a stream and tick."""
    standing: dict[tuple[GroupKey, int], list[Operation]] = defaultdict(list)
    pairs: dict[tuple[GroupKey, int, int, str], list[Operation]] = defaultdict(list)
    for rank in ranks:
        for operation in _reached(rank):
            if _on_main(operation):
                standing[operation.group, operation.seq].append(operation)
            else:
                other = groups[operation.group][operation.partner]
                pairs[operation.group, rank.number, other, operation.kind].append(operation)
    finished: list[Operation] = []
    for (group, _), operations in standing.items():
        finished += operations if len(operations) == len(groups[group]) else []
    for (group, source, target, kind), sends in pairs.items():
        receives = pairs.get((group, target, source, "recv"), []) if kind == "send" else []
        for send, receive in zip(sends, receives, strict=False):
            finished += [send, receive]
    for operation in finished:
        operation.done = True
    for operation in (op for rank in ranks if rank.watched for op in rank.issued):
        operation.seen = operation.done
    return bool(finished)


def _entry(operation: Operation, group_id: str) -> RecordedOperation:
    p2p = operation.kind in ("send", "recv")
    return RecordedOperation(
        record=operation.record + 1,
        group=operation.group,
        group_id=group_id,
        seq=operation.seq,
        backend="nccl",
        op=operation.kind,
        done=operation.seen,
        started=False,
        p2p=p2p,
        peer=operation.partner if p2p else None,
        in_sizes=((4096,),),
        out_sizes=((4096,),),
        dtypes=("BFloat16", "BFloat16"),
        created_ns=operation.created,
        timeout_ms=180_000,
    )
