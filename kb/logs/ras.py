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

import msgspec

from kb.logs.reading import Reading
from kb.logs.reasons import reason
from kb.types import Culprit, Fact

LAG_OPS = 2  # a difference of one is ordinary sampling

_HEADS = ("Job summary", "Communicators...", "NCCL version")
_SECTION = re.compile(r"^#(\d+-\d+) \(([0-9a-f]+)\) ([A-Z]+)")
_DIFFERENT = re.compile(r"ranks have different (.+?)(?: operation)? (?:counts|status)")
_LAUNCHED = r"(?:launched up to operation (\d{1,18})|not launched any)"
_USUAL = re.compile(rf"^\s*(\d{{1,18}}) ranks have {_LAUNCHED}")
_ONE = re.compile(rf"^\s*Rank (\d{{1,18}}) has {_LAUNCHED}")
_LISTED = re.compile(r"^\s*Rank (\d{1,18}) -- GPU \S+ managed by process (\d{1,18}) on node (\S+)")
_MISSING = re.compile(r"^\s*The missing ranks?: ([\d, -]+)")
_DEAD = re.compile(r"^\s*(\d{1,18}) job process(?:es are| is) considered dead")
_PROCESS = re.compile(r"^\s*Process (\d{1,18}) on node (\S+) managing GPUs? ([\d, -]+)")
_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")


def looks_like_ras(text: str) -> bool:
    """Whether the text is a RAS report, text or JSON."""
    head = text[:4000]
    if head.lstrip().startswith("{"):
        return '"communicators"' in head and '"nccl_version"' in head
    return sum(mark in head for mark in _HEADS) >= 2 or bool(
        re.search(r"^Group +Comms +Nodes +Ranks", head, re.MULTILINE)
    )


def read_ras(text: str) -> Reading:
    """Read one report; unknown lines are skipped, a damaged JSON gives no facts."""
    if text.lstrip().startswith("{"):
        return _read_json(text)
    report = _Text()
    for number, line in enumerate(text.splitlines(), start=1):
        report.take(number, line)
    version = _VERSION.search(text[:4000])
    return report.result({"nccl": version[1]} if version else {})


class _Text:
    """A text report line by line; counts belong to the section they stand in."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.culprits: dict[int, Culprit] = {}
        self.late: list[tuple[int, int, int, str]] = []  # rank, own count, usual count, operation
        self.lines: dict[int, tuple[int, str]] = {}
        self.op, self.usual, self.count = "collective", 0, 0

    def take(self, number: int, line: str) -> None:
        """Read one line."""
        quote = line.strip()[:200]
        if section := _SECTION.match(line):
            self.facts.append(Fact(name=f"ras_{section[3].lower()}", line=number, quote=quote))
            self.usual = self.count = 0
        elif different := _DIFFERENT.search(line):
            self.op = different[1]
        elif several := _USUAL.match(line):
            self.count = int(several[2] or 0)
            self.usual = max(self.usual, self.count)
        elif one := _ONE.match(line) or _LISTED.match(line):
            own = int(one[2] or 0) if _ONE.match(line) else self.count
            self.late.append((int(one[1]), own, self.usual, self.op))
            self.lines.setdefault(int(one[1]), (number, quote))
        else:
            self._take_dead(number, line, quote)

    def _take_dead(self, number: int, line: str, quote: str) -> None:
        if missing := _MISSING.match(line):
            for rank in _numbers(missing[1]):
                self.culprits[rank] = _dead(rank, number, quote)
        elif _DEAD.match(line):
            self.facts.append(Fact(name="ras_dead", line=number, quote=quote))
        elif _PROCESS.match(line):
            self.facts.append(Fact(name="ras_process", line=number, quote=quote))

    def result(self, versions: dict[str, str]) -> Reading:
        """The reading after the last line."""
        for rank, own, usual, op in self.late:
            if usual - own >= LAG_OPS and rank not in self.culprits:
                number, quote = self.lines[rank]
                self.culprits[rank] = _behind(rank, own, usual, op, number)
                fact = Fact(name="ras_behind", line=number, quote=quote, detail=f"rank {rank}")
                self.facts.append(fact)
        return _reading(self.facts, self.culprits, versions)


def _reading(facts: list[Fact], culprits: dict[int, Culprit], versions: dict[str, str]) -> Reading:
    dead = [rank for rank, culprit in culprits.items() if "RAS reports" in culprit.reason.en]
    if dead:
        detail = "rank " + ", ".join(str(rank) for rank in sorted(dead)[:32])
        line = min(culprits[rank].line for rank in dead)
        facts.append(Fact(name="ras_rank_missing", line=line, detail=detail))
    return Reading(
        kind="ras",
        culprits=tuple(culprits[rank] for rank in sorted(culprits)),
        facts=tuple(facts),
        fault_type="missing_rank" if dead else ("cpu_stall" if culprits else ""),
        versions=versions,
    )


def _dead(rank: int, line: int, quote: str) -> Culprit:
    return Culprit(rank=rank, reason=reason("ras_dead", {"quote": quote}), line=line)


def _behind(rank: int, own: int, peers: int, op: str, line: int) -> Culprit:
    values = {"own": own, "peers": peers, "op": op}
    return Culprit(rank=rank, reason=reason("ras_behind", values), line=line)


def _numbers(text: str) -> Iterator[int]:
    """Ranks of a list such as ``3, 8-11``, at most 4096."""
    left = 4096
    for first, last in re.findall(r"(\d{1,7})(?:-(\d{1,7}))?", text):
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


def _read_json(text: str) -> Reading:
    try:
        report = msgspec.json.decode(text, type=_Report)
    except (msgspec.DecodeError, RecursionError):
        return Reading(kind="ras")
    versions = {"nccl": report.nccl_version} if report.nccl_version else {}
    if not report.communicators:
        return Reading(kind="ras", versions=versions)
    world = max(report.communicators, key=lambda comm: (comm.size, comm.hash))
    facts: list[Fact] = []
    culprits: dict[int, Culprit] = {}
    for item in world.missing_ranks:
        dead = item.status.get("considered_dead")
        state = "considered_dead" if dead else "unresponsive"
        detail = f"rank {item.rank} on {item.host} (pid {item.pid}) {state}"
        facts.append(Fact(name="ras_dead" if dead else "ras_incomplete", detail=detail))
        culprits[item.rank] = _dead(item.rank, 0, detail)
    for op, usual, counts in _json_counts(world):
        for rank, count in counts.items():
            if usual - count >= LAG_OPS and rank not in culprits:
                culprits[rank] = _behind(rank, count, usual, op, 0)
                facts.append(Fact(name="ras_behind", detail=f"rank {rank}: {op} {count}/{usual}"))
    return _reading(facts, culprits, versions)


def _json_counts(world: _Communicator) -> Iterator[tuple[str, int, Mapping[int, int]]]:
    """Operation, the count most ranks have, and the count of each rank."""
    ops = sorted({op for item in world.ranks for op in item.collective_counts})
    for op in ops:
        counts = {item.rank: item.collective_counts.get(op, 0) for item in world.ranks}
        usual, _ = min(Counter(counts.values()).items(), key=lambda pair: (-pair[1], -pair[0]))
        yield op, usual, counts
