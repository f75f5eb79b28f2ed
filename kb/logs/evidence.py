"""Evidence beside the log: read a folder of mixed files and merge what they say into the incident.

Each file is told by its content, not its name: flight-recorder dumps (pickle or JSON), Python
stacks, NCCL RAS reports, kernel logs and ``nvidia-smi -q``, torchrun error files. What cannot be
told is left alone and named; what is refused is named with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

from kb.errors import InputError
from kb.logs.flight import DumpReading, analyse
from kb.logs.flight_read import Dump, looks_like_dump, parse_dump
from kb.logs.kernel import looks_like_kernel, read_kernel
from kb.logs.ras import looks_like_ras, read_ras
from kb.logs.reading import Reading, why_unread
from kb.logs.redact import redact
from kb.logs.source import legible, not_readable
from kb.logs.stacks import Stack, looks_like_stacks, parse_stacks, read_stacks
from kb.logs.torchrun import ErrorFile, parse_error_file, read_error_files
from kb.logs.unpickle import MAX_BYTES
from kb.types import Culprit, Fact, Incident, LogReading, RankState, Unread

MAX_FILES = 200_000  # a dump folder of the largest jobs, several kinds a rank
MAX_TEXT = 64 * 1024 * 1024  # bytes of a text file; kernel logs and stacks are far smaller
UNKNOWN_KIND = "is no dump, stack, RAS report, kernel log or error file"
NO_FILES = Unread(file="", reason="there are no files", code="no_evidence")
_SKIPPED = frozenset({".gz", ".zst", ".xz", ".zip", ".tar", ".pt", ".safetensors", ".so"})
_KINDS = ("torchrun", "ras", "stacks", "kernel")
_SILENT = frozenset({"cpu_stall", "straggler", "missing_rank"})  # such ranks wait for nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that was read beside the log.

    Attributes:
        dumps: the flight recorder's, or None when there was none.
        readings: one a kind: stacks, ras (one a report), kernel (one a file), torchrun.
        problems: files that were refused and why.
        ignored: names of files that are no evidence of a known kind (ordinary logs among them).
    """

    dumps: DumpReading | None
    readings: tuple[Reading, ...]
    problems: tuple[Unread, ...]
    ignored: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing was read."""
        return self.dumps is None and not self.readings


def read_evidence(paths: Sequence[Path], *, alone: bool = True) -> Evidence:
    """Read files, and folders with all below them, in the order of their names.

    `alone` says that there is nothing else to answer from.

    Raises:
        InputError: a path does not exist, or, where they are `alone`, nothing could be read.
    """
    found = _Found()
    for path in _files(paths):
        try:
            found.add(path)
        except InputError as error:
            found.problems.append(why_unread(error, legible(path.name), shown=path.name))
    evidence = found.evidence()
    if not evidence.empty:
        return evidence
    unread = (
        *evidence.problems,
        *(Unread(file=name, reason=UNKNOWN_KIND, code="unknown_kind") for name in evidence.ignored),
    )
    if alone:
        first = next(iter(unread), NO_FILES)
        raise InputError(
            f"no evidence could be read: {f'{first.file}: {first.reason}'.removeprefix(': ')}",
            todo="pass flight-recorder dumps, py-spy stacks, ncclras, dmesg or error.json files",
            reason=first.code,
            values={"name": first.file, **first.values},
        )
    return replace(evidence, problems=unread)


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(item for item in path.rglob("*") if item.is_file())
        elif path.is_file():
            files.append(path)
        else:
            raise InputError(
                f"{path} does not exist",
                todo="check the path after --dump",
                reason="missing",
                values={"name": legible(path.name)},
            )
    return files[:MAX_FILES]


class _Found:
    """Files read so far, by kind."""

    def __init__(self) -> None:
        self.dumps: dict[int, Dump] = {}
        self.stacks: list[Stack] = []
        self.errors: list[ErrorFile] = []
        self.readings: list[Reading] = []
        self.problems: list[Unread] = []
        self.ignored: list[str] = []

    def add(self, path: Path) -> None:
        """Tell what the file is and read it."""
        if path.suffix in _SKIPPED:
            self.ignored.append(legible(path.name))
            return
        data = _load(path)
        if looks_like_dump(data):
            if len(data) > MAX_BYTES:
                raise InputError(
                    f"{path.name} is larger than {MAX_BYTES >> 20} MiB",
                    todo="split it",
                    reason="too_large",
                    values={"name": legible(path.name), "size": str(MAX_BYTES >> 20)},
                )
            dump = parse_dump(data, name=legible(path.name))
            self.dumps[dump.rank] = dump
        elif len(data) <= MAX_TEXT and b"\0" not in data[:4096]:
            text, _ = redact(data.decode("utf-8", errors="replace"))
            self._add_text(text, path)
        else:
            self.ignored.append(legible(path.name))

    def _add_text(self, text: str, path: Path) -> None:
        error = parse_error_file(text, path=legible(str(path))) if text[:1] == "{" else None
        if error is not None:
            self.errors.append(error)
        elif looks_like_ras(text):
            self.readings.append(read_ras(text))
        elif looks_like_stacks(text):
            self.stacks += parse_stacks(text, name=legible(path.name))
        elif looks_like_kernel(text):
            self.readings.append(read_kernel(text))
        else:
            self.ignored.append(legible(path.name))

    def evidence(self) -> Evidence:
        """Compare what belongs together, once all files are in."""
        readings = list(self.readings)
        if self.stacks:
            readings.append(read_stacks(self.stacks))
        if self.errors:
            readings.append(read_error_files(self.errors))
        return Evidence(
            dumps=analyse(list(self.dumps.values())) if self.dumps else None,
            readings=tuple(sorted(readings, key=lambda reading: reading.kind)),
            problems=tuple(self.problems),
            ignored=tuple(self.ignored),
        )


def _load(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise not_readable(Path(path.name), error, todo="check the file") from error


@overload
def merge_into(target: Incident, evidence: Evidence) -> Incident: ...
@overload
def merge_into(target: LogReading, evidence: Evidence) -> LogReading: ...


def merge_into(target: Incident | LogReading, evidence: Evidence) -> Incident | LogReading:
    """The incident, or the reading with its incident, with what the evidence adds.

    What the log says already stays. Culprits come from the strongest source that names any: a
    mismatch the flight recorder proves (the rank that breaks is often not the one that differs), an
    error the log shows on a rank, an error file, the flight recorder's waits, RAS, stacks, and last
    the log's own reading of who is silent. Facts of the evidence carry line 0: they do not stand in
    the log; their detail says where.
    """
    if isinstance(target, LogReading):
        return replace(target, incident=merge_into(target.incident, evidence))
    merged = replace(
        target,
        culprit_ranks=_culprits(target, evidence),
        facts=(*target.facts, *_all_facts(evidence), *_joint_facts(target, evidence.dumps)),
        unread=(*target.unread, *evidence.problems),
        ranks=_ranks(target, evidence),
        versions=_versions(evidence) | target.versions,
    )
    fault = target.fault_type or next((r.fault_type for r in evidence.readings if r.fault_type), "")
    if evidence.dumps is not None:
        return _with_dumps(merged, evidence.dumps, fault)
    # Who hands in a kernel log or a RAS report asks about a fault, whether or not it says timeout.
    shown = bool(merged.culprit_ranks) or any(reading.facts for reading in evidence.readings)
    return replace(merged, fault_type=fault, has_timeout=target.has_timeout or shown)


def _with_dumps(incident: Incident, dumps: DumpReading, fault: str) -> Incident:
    """Fill what the log leaves open with what the flight recorder says."""
    waiting = tuple(state.rank for state in dumps.ranks if state.state == "waiting")
    idle = {culprit.rank for culprit in dumps.culprits} if dumps.fault_type in _SILENT else set()
    quiet = tuple(sorted({*dumps.absent, *idle}))
    known = bool(incident.ranks_reporting)
    own = dumps.fault_type if dumps.fault_type != "unknown" else ""
    return replace(
        incident,
        backend=incident.backend or dumps.backend,
        op=incident.op or dumps.op,
        seq=_either(incident.seq, dumps.seq),
        numel_in=_either(incident.numel_in, dumps.numel_in),
        numel_out=_either(incident.numel_out, dumps.numel_out),
        timeout_ms=_either(incident.timeout_ms, dumps.timeout_ms),
        process_group=incident.process_group or dumps.process_group,
        world_size=incident.world_size or (max((s.rank for s in dumps.ranks), default=-1) + 1),
        ranks_reporting=incident.ranks_reporting if known else waiting,
        ranks_silent=incident.ranks_silent if known else quiet,
        fault_type=own or fault or dumps.fault_type,
        has_timeout=incident.has_timeout or bool(waiting) or bool(dumps.culprits),
    )


def _either(known: int | None, more: int | None) -> int | None:
    return known if known is not None else more


def _culprits(incident: Incident, evidence: Evidence) -> tuple[Culprit, ...]:
    own = incident.culprit_ranks
    first = incident.first_error
    if own and any(fact.name == "mismatch_proven" and fact.detail for fact in incident.facts):
        return own  # the log itself shows which rank differs
    proven = evidence.dumps is not None and evidence.dumps.fault_type == "mismatch"
    proven = proven and bool(_dump_culprits(incident.world_size, evidence.dumps))
    if not proven and first is not None and any(culprit.rank == first.rank for culprit in own):
        return own
    by_kind = {kind: [r for r in evidence.readings if r.kind == kind] for kind in _KINDS}
    sources = [
        list(evidence.dumps.culprits) if proven and evidence.dumps else [],
        [c for reading in by_kind["torchrun"] for c in reading.culprits],
        _dump_culprits(incident.world_size, evidence.dumps),
        [c for reading in by_kind["ras"] for c in reading.culprits],
        [c for reading in by_kind["stacks"] for c in reading.culprits],
        list(own),
    ]
    chosen = next((source for source in sources if source), [])
    unique = {culprit.rank: culprit for culprit in reversed(chosen)}
    from_log = chosen and chosen[0] in own
    return tuple(
        culprit if from_log else replace(culprit, line=0, file="")
        for _, culprit in sorted(unique.items())
    )


def _dump_culprits(world_size: int | None, dumps: DumpReading | None) -> list[Culprit]:
    """The flight recorder's culprits; a missing rank only when all others are accounted for."""
    if dumps is None:
        return []
    unseen = (world_size or 0) - len(dumps.present) - len(dumps.absent)
    return [] if dumps.fault_type == "missing_rank" and unseen > 0 else list(dumps.culprits)


def _all_facts(evidence: Evidence) -> list[Fact]:
    facts = list(evidence.dumps.facts) if evidence.dumps else []
    for reading in evidence.readings:
        for fact in reading.facts:
            where = f"{reading.kind} line {fact.line}" if fact.line else reading.kind
            detail = f"{where}: {fact.detail}" if fact.detail else where
            facts.append(replace(fact, line=0, detail=detail))
    return facts


def _joint_facts(incident: Incident, dumps: DumpReading | None) -> list[Fact]:
    """What only log and dumps together say: is the rank at fault alive, what broke first."""
    if dumps is None or not dumps.culprits:
        return []
    ranks = tuple(culprit.rank for culprit in dumps.culprits)
    shown = ", ".join(str(rank) for rank in ranks[:16])
    broke = incident.first_error is not None and incident.first_error.rank in ranks
    if dumps.fault_type == "mismatch":
        return [Fact(name="fr_mismatch_explains", detail=f"rank {shown} differs, the rest follows")]
    if dumps.fault_type in ("cpu_stall", "straggler", "desync") and not broke:
        return [Fact(name="fr_host_alive", detail=f"rank {shown} left its dump and no error")]
    return []


def _versions(evidence: Evidence) -> dict[str, str]:
    versions: dict[str, str] = {}
    for reading in evidence.readings:
        versions |= reading.versions
    return versions | (evidence.dumps.versions if evidence.dumps else {})


def _ranks(incident: Incident, evidence: Evidence) -> tuple[RankState, ...]:
    """The log's table, gaps filled from the dumps, then from stacks and error files."""
    rows = {state.rank: state for state in incident.ranks}
    others = list(evidence.dumps.ranks) if evidence.dumps else []
    for reading in evidence.readings:
        others += [replace(state, line=0) for state in reading.ranks]
    for state in others:
        known = rows.get(state.rank)
        rows[state.rank] = _filled(known, state) if known else state
    return tuple(rows[rank] for rank in sorted(rows))


def _filled(known: RankState, more: RankState) -> RankState:
    gaps = {
        name: getattr(more, name)
        for name in RankState.__dataclass_fields__
        if getattr(known, name) in (None, "") and getattr(more, name) not in (None, "")
    }
    return replace(known, **gaps)
