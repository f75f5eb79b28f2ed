"""Dumps of several ranks laid side by side: who issued what, what is pending, who waits for whom.

Ranks that wait point at ranks that have not come: an edge a → b means that a has a pending
operation which b, a member of the group, has not issued. Nobody inside the job waits for a rank
that waits itself forever without reason, so the end points of the edges are where the fault is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from kb.evidence.flight_recorder.dump_file import Dump, GroupKey, RecordedOperation

DEFAULT_GROUP = "default_pg"
UNNAMED = frozenset({"", "undefined"})  # descriptions that say nothing about a group's role

_FAR = 1 << 62  # progress nobody knows: the rank is not called late

OpKey = tuple[GroupKey, int]  # a collective: its group and its number there


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All that the rules ask of the dumps.

    Attributes:
        ranks: ranks whose dump was read, ascending.
        world: ranks the dumps name as members of any group, ascending.
        members: global ranks of a group in the group's own order.
        enqueued, done: highest collective number a rank issued and finished without a gap, per
            group; a pair is missing where the dump cannot say.
        pending: unfinished entries of a rank, oldest first.
        matched: entries of each collective by rank.
        waits: for each rank that waits, the ranks it waits for.
        missing: for each waited-for rank without a dump, the ranks that wait for it.
    """

    ranks: tuple[int, ...]
    world: tuple[int, ...]
    members: dict[GroupKey, tuple[int, ...]]
    enqueued: dict[tuple[int, GroupKey], int]
    done: dict[tuple[int, GroupKey], int]
    pending: dict[int, tuple[RecordedOperation, ...]]
    matched: dict[OpKey, dict[int, RecordedOperation]]
    waits: dict[int, frozenset[int]] = field(default_factory=dict)
    missing: dict[int, frozenset[int]] = field(default_factory=dict)

    def blocker(self, rank: int) -> RecordedOperation | None:
        """The first pending collective of a rank in its own order, or None."""
        return next((entry for entry in self.pending[rank] if not entry.p2p), None)

    def waited_for(self) -> dict[int, int]:
        """How many ranks wait for each rank that somebody waits for."""
        counts: dict[int, int] = defaultdict(int)
        for targets in self.waits.values():
            for target in targets:
                counts[target] += 1
        return dict(counts)


def build_table(dumps: Sequence[Dump]) -> Table:
    """Lay the dumps (one a rank) side by side."""
    dumps = sorted(dumps, key=lambda dump: dump.rank)
    members = _all_members(dumps)
    ids = _group_ids(dumps)
    matched: dict[OpKey, dict[int, RecordedOperation]] = defaultdict(dict)
    pending: dict[int, tuple[RecordedOperation, ...]] = {}
    enqueued: dict[tuple[int, GroupKey], int] = {}
    done: dict[tuple[int, GroupKey], int] = {}
    mixed = {entry.group.desc for dump in dumps for entry in dump.entries if entry.p2p}
    for dump in dumps:
        pending[dump.rank] = tuple(entry for entry in dump.entries if not entry.done)
        for entry in dump.entries:
            if not entry.p2p:
                matched[entry.group, entry.seq][dump.rank] = entry
        for group, (issued, finished) in _progress(dump, ids[dump.rank], mixed, members).items():
            enqueued[dump.rank, group] = issued
            done[dump.rank, group] = finished
    table = Table(
        ranks=tuple(dump.rank for dump in dumps),
        world=tuple(sorted({r for group in members.values() for r in group} | set(pending))),
        members=members,
        enqueued=enqueued,
        done=done,
        pending=pending,
        matched=dict(matched),
    )
    _add_waits(table)
    return table


def _all_members(dumps: Sequence[Dump]) -> dict[GroupKey, tuple[int, ...]]:
    """Groups as configured; a group no dump configures has the ranks that used it.

    Gloo records no members: its default group then has every rank up to the highest seen.
    """
    members: dict[GroupKey, tuple[int, ...]] = {}
    users: dict[GroupKey, set[int]] = defaultdict(set)
    for dump in dumps:
        members.update(dump.members)
        for entry in dump.entries:
            users[entry.group].add(dump.rank)
    highest = max((dump.rank for dump in dumps), default=-1)
    for group, ranks in users.items():
        if group not in members:
            whole = group.desc == DEFAULT_GROUP
            members[group] = tuple(range(highest + 1)) if whole else tuple(sorted(ranks))
    return members


def _group_ids(dumps: Sequence[Dump]) -> dict[int, dict[str, GroupKey]]:
    """Each rank's own group ids (the keys of `pg_status`) as groups.

    A rank's entries say which id is which group. Ranks that run the same program number their
    groups alike: a rank with nothing recorded learns which description an id has from ranks with
    the same ids, or with its ids and more when it has not used every group yet, and takes its own
    group of that description.
    """
    descriptions: dict[frozenset[str], dict[str, str]] = defaultdict(dict)
    for dump in dumps:
        for entry in dump.entries:
            descriptions[frozenset(dump.status)].setdefault(entry.group_id, entry.group.desc)
    result: dict[int, dict[str, GroupKey]] = {}
    for dump in dumps:
        of_desc: dict[str, list[GroupKey]] = defaultdict(list)
        for group in dump.members:
            of_desc[group.desc].append(group)
        own = {entry.group_id: entry.group for entry in dump.entries}
        for group_id, desc in _descriptions_for(frozenset(dump.status), descriptions).items():
            if group_id not in own and len(of_desc[desc]) == 1:
                own[group_id] = of_desc[desc][0]
        result[dump.rank] = own
    return result


def _descriptions_for(
    ids: frozenset[str], descriptions: dict[frozenset[str], dict[str, str]]
) -> dict[str, str]:
    """Descriptions by id, of ranks with the same ids, else of those with the fewest more."""
    wider = [known for known in descriptions if known >= ids and descriptions[known]]
    nearest = min(wider, key=lambda known: (len(known), sorted(known)), default=ids)
    return descriptions.get(nearest, {})


def _progress(
    dump: Dump,
    ids: dict[str, GroupKey],
    mixed: set[str],
    members: dict[GroupKey, tuple[int, ...]],
) -> dict[GroupKey, tuple[int, int]]:
    """Highest issued and gaplessly finished collective per group.

    The recorder's own counters fill in where no entry is left; in a group that also carries
    point-to-point traffic (`mixed`, by description) they count both and say nothing here.
    """
    progress: dict[GroupKey, tuple[int, int]] = {}
    for group_id, group in ids.items():
        status = dump.status.get(group_id)
        if group.desc not in mixed:
            issued, finished = status or (0, 0)
            progress[group] = (max(0, issued), max(0, finished))
    collectives: dict[GroupKey, list[RecordedOperation]] = defaultdict(list)
    for entry in dump.entries:
        if not entry.p2p:
            collectives[entry.group].append(entry)
    for group, entries in collectives.items():
        issued = max(entry.seq for entry in entries)
        open_seqs = [entry.seq for entry in entries if not entry.done]
        progress[group] = (issued, min(open_seqs) - 1 if open_seqs else issued)
    whole_history = dump.entries[0].record == 0 if dump.entries else not dump.status
    if whole_history:  # nothing was dropped: a group without entries was never used
        for group, ranks in members.items():
            if dump.rank in ranks:
                progress.setdefault(group, (0, 0))
    return progress


def _add_waits(table: Table) -> None:
    missing: dict[int, set[int]] = defaultdict(set)
    for rank in table.ranks:
        entry = table.blocker(rank)
        late: set[int] = set()
        if entry is not None:
            members = table.members[entry.group]
            present = [member for member in members if member in table.pending]
            late = {m for m in present if table.enqueued.get((m, entry.group), _FAR) < entry.seq}
            if not late:
                for absent in set(members) - set(present):
                    missing[absent].add(rank)
                late = {m for m in present if not _stands_at(table, m, entry)}
        late |= _partners_late(table, rank, entry)
        if late:
            table.waits[rank] = frozenset(late)
    table.missing.update({rank: frozenset(late) for rank, late in missing.items()})


def _stands_at(table: Table, rank: int, entry: RecordedOperation) -> bool:
    """Whether nothing a rank issued before this collective keeps it from it."""
    own = table.matched[entry.group, entry.seq].get(rank)
    return own is None or own.done or own is table.blocker(rank)


def _partners_late(table: Table, rank: int, blocker: RecordedOperation | None) -> set[int]:
    """Partners that have yet to come to a send or receive this rank's device stands at.

    Point-to-point numbers count a rank's own traffic and do not match across ranks, so open
    operations of the pair are counted on both sides. A transfer blocks only when nothing issued
    between it and the first pending collective has finished: a receive posted ahead does not.
    """
    late: set[int] = set()
    own = _open_pairs(table, rank)
    blocking = _blocking_pairs(table, rank, blocker)
    for (group, partner, op), count in own.items():
        if partner not in table.pending or (group, partner, op) not in blocking:
            continue
        other = "recv" if op == "send" else "send"
        if _open_pairs(table, partner).get((group, rank, other), 0) < count:
            late.add(partner)
    return late


def _blocking_pairs(
    table: Table, rank: int, blocker: RecordedOperation | None
) -> set[tuple[GroupKey, int, str]]:
    pending = table.pending[rank]
    if blocker is not None:
        before = [entry for entry in pending if entry.record < blocker.record]
        expected = blocker.record
        pending = ()
        for entry in reversed(before):
            expected -= 1
            if entry.record != expected:
                break
            pending = (*pending, entry)
    return {pair for entry in pending if (pair := _pair(table, entry)) is not None}


def _pair(table: Table, entry: RecordedOperation) -> tuple[GroupKey, int, str] | None:
    if not entry.p2p or entry.peer is None or entry.peer >= len(table.members[entry.group]):
        return None
    return entry.group, table.members[entry.group][entry.peer], entry.op


def _open_pairs(table: Table, rank: int) -> dict[tuple[GroupKey, int, str], int]:
    counts: dict[tuple[GroupKey, int, str], int] = defaultdict(int)
    for entry in table.pending[rank]:
        pair = _pair(table, entry)
        if pair is not None:
            counts[pair] += 1
    return dict(counts)
