"""Flight-recorder dumps of a job: which ranks are at fault and in which way.

`analyse` lays dumps (dump_file.py) side by side (table.py) and asks the rules (rules.py)
from proof to hint: a mismatch is proven; a number that a peer finished
and this rank did not is proof of its device; a member without a dump, ranks that stopped issuing
and a circle are read off who waits for whom; a group that hangs as a whole is the weakest.
Two faults of the same kind are both named; of different kinds the stronger proof counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kb.evidence.flight_recorder.dump_file import Dump, GroupKey, RecordedOperation, version_pair
from kb.evidence.flight_recorder.rules import (
    Finding,
    find_cpu_stall,
    find_desync,
    find_gpu_stall,
    find_mismatch,
    find_missing,
    find_still_group,
    find_straggler,
)
from kb.evidence.flight_recorder.table import Table, build_table
from kb.evidence.reading import EvidenceReading, reason
from kb.types.incident import Culprit, Fact, RankState

_RULES: tuple[Callable[[Table], Finding | None], ...] = (
    find_mismatch,
    find_gpu_stall,
    find_missing,
    find_cpu_stall,
    find_desync,
    find_still_group,
)
_FACTS = {
    "gpu_stall": "fr_pending_more",
    "cpu_stall": "fr_behind",
    "missing": "fr_rank_missing",
    "desync": "fr_wait_cycle",
    "straggler": "fr_straggler",
    "straggler_now": "fr_behind",
    "few_wait": "fr_few_wait",
    "stopped_first": "fr_behind",
    "still_group": "fr_group_still",
    "mismatch": "fr_mismatch_op",
}


def analyse(dumps: Sequence[Dump]) -> EvidenceReading:
    """Judge dumps that were read, at most one a rank."""
    table = build_table(dumps)
    slow = find_straggler(table)
    finding = next(filter(None, (rule(table) for rule in _RULES)), slow)
    if finding is not None and finding.rule == "gpu_stall":
        finding = _with_stopped_hosts(finding, table)
    if finding is not None and finding.rule == "cpu_stall" and slow and finding.ranks == slow.ranks:
        rank = slow.ranks[0]
        both = {rank: {**finding.values[rank], **slow.values[rank]}}
        finding = replace(finding, rule="straggler_now", fault_type="straggler", values=both)
    return _reading(dumps, table, finding, slow)


def _with_stopped_hosts(finding: Finding, table: Table) -> Finding:
    """Also name ranks whose host stopped: a device error may strike before anything is pending."""
    stopped = find_cpu_stall(table)
    more = set(stopped.ranks) - set(finding.ranks) if stopped else set()
    if stopped is None or not more:
        return finding
    return replace(
        finding,
        ranks=tuple(sorted((*finding.ranks, *more))),
        values=finding.values
        | {rank: {"rule": "cpu_stall"} | stopped.values[rank] for rank in more},
    )


def _culprit(finding: Finding, rank: int) -> Culprit:
    values = finding.values[rank]
    rule = str(values.get("rule", finding.rule))
    return Culprit(rank=rank, reason=reason(rule, values), kind=rule)


def _reading(
    dumps: Sequence[Dump],
    table: Table,
    finding: Finding | None,
    slow: Finding | None,
) -> EvidenceReading:
    shown = _shown_operation(table, finding)
    library = next((dump.library for dump in dumps if dump.library), "")
    newest = max((dump.version for dump in dumps), key=version_pair)
    return EvidenceReading(
        kind="flight_recorder",
        culprits=tuple(_culprit(finding, rank) for rank in finding.ranks) if finding else (),
        facts=tuple(_facts(table, finding, slow, shown)),
        ranks=tuple(_rank_state(table, rank, shown, finding) for rank in table.world),
        fault_type=finding.fault_type if finding else "unknown",
        versions={"flight_recorder": newest} | ({"nccl": library} if library else {}),
        present=table.ranks,
        absent=tuple(rank for rank in table.world if rank not in table.pending),
        collective=shown,
    )


def _shown_operation(table: Table, finding: Finding | None) -> RecordedOperation | None:
    """The entry of the collective the fault shows in, or the oldest pending one."""
    if finding is not None and finding.op in table.matched:
        entries = table.matched[finding.op]
        waiting = [rank for rank in sorted(entries) if not entries[rank].done]
        return entries[waiting[0] if waiting else min(entries)]
    pending = [entry for rank in table.ranks for entry in table.pending[rank]]
    return min(pending, key=lambda entry: (entry.created_ns, entry.record), default=None)


def _rank_state(
    table: Table, rank: int, shown: RecordedOperation | None, finding: Finding | None
) -> RankState:
    if rank not in table.pending:
        return RankState(rank=rank, state="missing")
    blocker = table.blocker(rank) or next(iter(table.pending[rank]), None)
    group = shown.group if shown else (blocker.group if blocker else GroupKey(name=""))
    last = _last_entry(table, rank, group)
    state = "waiting" if blocker else "idle"
    if finding is not None and rank in finding.ranks:
        state = "culprit"
    return RankState(
        rank=rank,
        state=state,
        process_group=str(group) if group.name else "",
        last_enqueued=table.enqueued.get((rank, group)),
        last_completed=table.done.get((rank, group)),
        last_seq=blocker.seq if blocker else (last.seq if last else None),
        last_op=blocker.op if blocker else (last.op if last else ""),
        numel_in=blocker.numel_in if blocker else None,
        numel_out=blocker.numel_out if blocker else None,
    )


def _last_entry(table: Table, rank: int, group: GroupKey) -> RecordedOperation | None:
    seq = table.enqueued.get((rank, group))
    return table.matched.get((group, seq), {}).get(rank) if seq is not None else None


def _facts(
    table: Table, finding: Finding | None, slow: Finding | None, entry: RecordedOperation | None
) -> list[Fact]:
    facts: list[Fact] = []
    absent = [rank for rank in table.world if rank not in table.pending]
    if absent:
        facts.append(Fact(name="fr_dumps_incomplete", detail=f"no dump of rank {_ranks(absent)}"))
    if finding is not None:
        facts += _finding_facts(table, finding, entry)
    if slow is not None and finding is not slow:
        values = slow.values[slow.ranks[0]]
        detail = f"rank {_ranks(slow.ranks)} came last to {values['last']} of {values['of']}"
        facts.append(Fact(name="fr_straggler", detail=detail))
    if entry is not None and entry.numel_in <= 1 and not entry.p2p and not entry.done:
        detail = f"{entry.op} of {entry.numel_in} elements"
        facts.append(Fact(name="fr_tiny_collective", detail=detail))
    if not any(table.pending.values()):
        facts.append(Fact(name="fr_nothing_pending", detail="every recorded operation is finished"))
    return facts


def _finding_facts(table: Table, finding: Finding, entry: RecordedOperation | None) -> list[Fact]:
    named = _ranks(finding.ranks or finding.suspects)
    where = f"{entry.op} {entry.seq} in {entry.group}" if entry else ""
    name = _FACTS[finding.rule]
    if finding.rule == "mismatch":
        name = f"fr_mismatch_{finding.mismatch}"
    elif finding.op is not None and len(table.matched[finding.op]) == len(table.world):
        name = "fr_all_same_collective" if finding.rule == "still_group" else name
    facts = [Fact(name=name, detail=f"rank {named}: {where} {finding.detail}".rstrip())]
    if finding.ranks and finding.fault_type in ("cpu_stall", "straggler"):
        only_first = finding.ranks == (0,)
        name = "fr_only_rank0_behind" if only_first else "fr_other_rank_behind"
        facts.append(Fact(name=name, detail=f"rank {named}"))
    if finding.rule == "gpu_stall":
        facts.append(Fact(name="fr_device_stopped", detail=f"rank {named}"))
    if finding.fault_type == "straggler":
        facts.append(Fact(name="fr_slow_all_along", detail=f"rank {named}"))
    idle = [rank for rank in finding.ranks if table.pending.get(rank) == ()]
    if idle and finding.fault_type in ("cpu_stall", "straggler"):
        facts.append(Fact(name="fr_no_entries", detail=f"nothing pending on rank {_ranks(idle)}"))
    for rank in finding.ranks:
        frame = _last_frame(table, rank)
        if frame:
            facts.append(Fact(name="fr_last_call", detail=f"rank {rank}: {frame}"))
    return facts


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(str(rank) for rank in ranks[:16])
    return f"{shown}, ..." if len(ranks) > 16 else shown


def _last_frame(table: Table, rank: int) -> str:
    """Where in the user's code a rank issued its last recorded operation."""
    own = [entries[rank] for entries in table.matched.values() if rank in entries]
    last = max(own, key=lambda entry: entry.record, default=None)
    return last.frame if last else ""
