"""NCCL RAS reports (``ncclras -v``, ``ncclras -f json``): dead, missing and lagging ranks.

Text since NCCL 2.24, JSON since 2.28.7; the wording is that of NVIDIA's documentation,
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html. Ranks are those
of the communicator; in the largest communicator they are the job's. One operation of difference is
normal on a running job (RAS samples a moving target), so only a wider gap or a missing rank names
a culprit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from kb.evidence.limits import EvidenceLimits
from kb.evidence.reading import EvidenceReading, reason
from kb.types.incident import Culprit, Fact

MAX_LINE = 20_000  # characters of a line that are looked at; 4,096 missing ranks fit
LAG_OPS = 2  # a difference of one is ordinary sampling

_HEADS = ("Job summary", "Communicators...", "NCCL version")
_SECTION = re.compile(r"^#([0-9]+-[0-9]+) \(([0-9a-f]+)\) ([A-Z]+)")
_DIFFERENT = re.compile(r"ranks have different (.{1,200}?)(?: operation)? (?:counts|status)")
_LAUNCHED = r"(?:launched up to operation ([0-9]{1,18})|not launched any)"
_USUAL = re.compile(rf"^\s*([0-9]{{1,18}}) ranks have {_LAUNCHED}")
_ONE = re.compile(rf"^\s*Rank ([0-9]{{1,18}}) has {_LAUNCHED}")
_LISTED = re.compile(
    r"^\s*Rank ([0-9]{1,18}) -- GPU \S+ managed by process ([0-9]{1,18}) on node (\S+)"
)
_MISSING = re.compile(r"^\s*The missing ranks?: ([0-9, -]+)")
_DEAD = re.compile(r"^\s*([0-9]{1,18}) job process(?:es are| is) considered dead")
_PROCESS = re.compile(r"^\s*Process ([0-9]{1,18}) on node (\S+) managing GPUs? ([0-9, -]+)")
_VERSION = re.compile(r"NCCL version ([0-9]+\.[0-9]+\.[0-9]+)")


@dataclass(frozen=True, slots=True)
class LateOperations:
    """How many operations of a kind a rank has launched, and how many the most ranks have."""

    rank: int
    own: int
    usual: int
    op: str
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStandings:
    """Where ranks stood when a report was made: the dead, and who had launched less than others."""

    dead: frozenset[int]
    late: tuple[LateOperations, ...]


def looks_like_ras(text: str) -> bool:
    """Whether the text is a RAS report, text or JSON."""
    head = text[:4000]
    if head.lstrip().startswith("{"):
        return '"communicators"' in head and '"nccl_version"' in head
    return sum(mark in head for mark in _HEADS) >= 2 or bool(
        re.search(r"^Group +Comms +Nodes +Ranks", head, re.MULTILINE)
    )


def read_ras(text: str, limits: EvidenceLimits | None = None) -> EvidenceReading:
    """Read one report; unknown lines are skipped, a damaged JSON gives no facts.

    Raises:
        SlowInputError: it takes longer than the limits allow.
    """
    ranks, version = _parse(text, limits)
    return ranks.reading({"nccl": version} if version else {})


def rank_standings(text: str) -> RankStandings:
    """Who is dead or behind in one report, by however little: reports that follow tell how long."""
    ranks, _ = _parse(text, None)
    late = tuple(item for item in ranks.late if item.own < item.usual)
    return RankStandings(dead=frozenset(ranks.dead), late=late)


def _parse(text: str, limits: EvidenceLimits | None) -> tuple[_Ranks, str]:
    """What a report says of ranks, and NCCL's version."""
    if text.lstrip().startswith("{"):
        return _parse_json(text)
    report = _Text()
    for number, line in (limits or EvidenceLimits()).lines(text):
        report.take(number, line[:MAX_LINE])
    version = _VERSION.search(text[:4000])
    return report.ranks, version[1] if version else ""


class _Ranks:
    """The ranks a report names so far, and the facts that say so."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.late: list[LateOperations] = []
        self.dead: list[int] = []
        self._culprits: dict[int, Culprit] = {}

    def add_dead(self, rank: int, quote: str, line: int = 0) -> None:
        """A rank that is dead or does not respond."""
        why = reason("ras_dead", {"quote": quote})
        self._culprits[rank] = Culprit(rank=rank, reason=why, line=line, kind="ras_dead")
        self.dead.append(rank)

    def _name_late(self, item: LateOperations) -> None:
        """Name a rank whose count is behind the others'; only a wide gap does."""
        rank, own, usual = item.rank, item.own, item.usual
        if usual - own >= LAG_OPS and rank not in self._culprits:
            why = reason("ras_behind", {"own": own, "peers": usual, "op": item.op})
            line = item.fact.line
            self._culprits[rank] = Culprit(rank=rank, reason=why, line=line, kind="ras_behind")
            self.facts.append(item.fact)

    def reading(self, versions: dict[str, str]) -> EvidenceReading:
        """What the report says."""
        for item in self.late:
            self._name_late(item)
        dead = sorted(set(self.dead))
        if dead:
            detail = "rank " + ", ".join(str(rank) for rank in dead[:32])
            line = min(self._culprits[rank].line for rank in dead)
            self.facts.append(Fact(name="ras_rank_missing", line=line, detail=detail))
        return EvidenceReading(
            kind="ras",
            culprits=tuple(self._culprits[rank] for rank in sorted(self._culprits)),
            facts=tuple(self.facts),
            fault_type="missing_rank" if dead else ("cpu_stall" if self._culprits else ""),
            versions=versions,
        )


class _Text:
    """A text report line by line; counts belong to the section they stand in."""

    def __init__(self) -> None:
        self.ranks = _Ranks()
        self._lines: dict[int, Fact] = {}  # where each rank is named first
        self._op, self._usual, self._count = "collective", 0, 0

    def take(self, number: int, line: str) -> None:
        """Read one line."""
        fact = Fact(name="ras_process", line=number, quote=line.strip()[:200])
        if section := _SECTION.match(line):
            self.ranks.facts.append(replace(fact, name=f"ras_{section[3].lower()}"))
            self._usual = self._count = 0
        elif different := _DIFFERENT.search(line):
            self._op = different[1]
        elif several := _USUAL.match(line):
            self._count = int(several[2] or 0)
            self._usual = max(self._usual, self._count)
        elif one := _ONE.match(line) or _LISTED.match(line):
            rank, own = int(one[1]), int(one[2] or 0) if _ONE.match(line) else self._count
            behind = replace(fact, name="ras_behind", detail=f"rank {rank}")
            first = self._lines.setdefault(rank, behind)
            self.ranks.late.append(LateOperations(rank, own, self._usual, self._op, first))
        elif missing := _MISSING.match(line):
            for rank in _numbers(missing[1]):
                self.ranks.add_dead(rank, fact.quote, number)
        elif _DEAD.match(line):
            self.ranks.facts.append(replace(fact, name="ras_dead"))
        elif _PROCESS.match(line):
            self.ranks.facts.append(fact)


def _numbers(text: str) -> Iterator[int]:
    """Ranks of a list such as ``3, 8-11``, at most 4096."""
    left = 4096
    for first, last in re.findall(r"([0-9]{1,7})(?:-([0-9]{1,7}))?", text):
        for rank in range(int(first), min(int(last or first), int(first) + left) + 1):
            left -= 1
            if left < 0:
                return
            yield rank


class _Rank(msgspec.Struct):
    rank: int
    host: str = ""
    pid: int = 0
    status: dict[str, bool | int | str | None] = {}
    collective_counts: dict[str, int] = {}


class _Communicator(msgspec.Struct):
    hash: str = ""
    size: int = 0
    ranks: list[_Rank] = []
    missing_ranks: list[_Rank] = []


class _Report(msgspec.Struct):
    nccl_version: str = ""
    communicators: list[_Communicator] = []


def _parse_json(text: str) -> tuple[_Ranks, str]:
    ranks = _Ranks()
    try:
        report = msgspec.json.decode(text, type=_Report)
    except (msgspec.DecodeError, RecursionError):
        return ranks, ""
    if not report.communicators:
        return ranks, report.nccl_version
    world = max(report.communicators, key=lambda comm: (comm.size, comm.hash))
    for item in world.missing_ranks:
        dead = item.status.get("considered_dead")
        state = "considered_dead" if dead else "unresponsive"
        detail = f"rank {item.rank} on {item.host} (pid {item.pid}) {state}"
        ranks.facts.append(Fact(name="ras_dead" if dead else "ras_incomplete", detail=detail))
        ranks.add_dead(item.rank, detail)
    for op, usual, counts in _json_counts(world):
        for rank, count in counts.items():
            fact = Fact(name="ras_behind", detail=f"rank {rank}: {op} {count}/{usual}")
            ranks.late.append(LateOperations(rank, count, usual, op, fact))
    return ranks, report.nccl_version


def _json_counts(world: _Communicator) -> Iterator[tuple[str, int, Mapping[int, int]]]:
    """Operation, the count most ranks have, and the count of each rank."""
    ops = sorted({op for item in world.ranks for op in item.collective_counts})
    for op in ops:
        counts = {item.rank: item.collective_counts.get(op, 0) for item in world.ranks}
        usual, _ = min(Counter(counts.values()).items(), key=lambda pair: (-pair[1], -pair[0]))
        yield op, usual, counts
