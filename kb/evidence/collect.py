"""Evidence beside the log: read files of every kind and merge what they say into the incident.

`kb.evidence.detect` says of which kind a file is. What is of none is left alone and named; what is
refused is named with the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from kb.errors import InputError, SlowInputError
from kb.evidence.detect import MAX_TEXT, EvidenceKind, evidence_kind
from kb.evidence.flight_recorder.analysis import analyse
from kb.evidence.flight_recorder.dump_file import Dump, parse_dump
from kb.evidence.flight_recorder.unpickle import MAX_BYTES
from kb.evidence.kernel import read_kernel
from kb.evidence.limits import EvidenceLimits
from kb.evidence.ras import read_ras
from kb.evidence.reading import EvidenceReading, why_unread
from kb.evidence.stacks import Stack, parse_stacks, read_stacks
from kb.evidence.torchrun import ErrorFile, parse_error_file, read_error_files
from kb.files.archives import peek, unpacked
from kb.files.decode import decoded
from kb.files.log_source import file_chunks
from kb.files.paths import files_under, legible
from kb.text.redact import redact, redact_name
from kb.types.incident import Culprit, Fact, Incident, RankState, Unread

MAX_FILES = 200_000  # a dump folder of the largest jobs, several kinds a rank
UNKNOWN_KIND = "is no dump, stack, RAS report, kernel log or error file"
NO_FILES = Unread(file="", reason="there are no files", code="no_evidence")
ARCHIVE = "is an archive of several files: unpack it and pass the folder"
TAR_HEAD = 512  # bytes of a tar's first header
_MODELS = frozenset({".pt", ".pth", ".pkl"})  # mostly pickles of gigabytes that are no dumps
T = TypeVar("T", Incident, RankState)
_SILENT = frozenset({"cpu_stall", "straggler", "missing_rank"})  # such ranks wait for nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedEvidence:
    """All that was read beside the log.

    Attributes:
        dumps: the flight recorder's, or None when there was none.
        readings: one a kind: stacks, ras (one a report), kernel (one a file), torchrun.
        problems: files that were refused and why.
        ignored: names of files that are no evidence of a known kind (ordinary logs among them).
    """

    dumps: EvidenceReading | None
    readings: tuple[EvidenceReading, ...]
    problems: tuple[Unread, ...]
    ignored: tuple[str, ...]

    @property
    def sources(self) -> tuple[EvidenceReading, ...]:
        """All readings, the flight recorder's first: it goes before the others."""
        return (self.dumps, *self.readings) if self.dumps else self.readings

    @property
    def empty(self) -> bool:
        """Whether nothing was read."""
        return not self.sources


def read_evidence(
    paths: Sequence[Path],
    *,
    known: Mapping[Path, EvidenceKind] | None = None,
    alone: bool = True,
    limits: EvidenceLimits | None = None,
) -> CollectedEvidence:
    """Read files, and folders with all below them, in the order of their names.

    Args:
        paths: what was handed over as evidence.
        known: further files, whose kind is known.
        alone: whether there is nothing else to answer from.
        limits: what all files together may take; a file that goes beyond is refused.

    Raises:
        InputError: a path does not exist, or, where they are `alone`, nothing could be read.
        SlowInputError: it takes longer than the limits allow.
    """
    known = known or {}
    files = _Files(limits or EvidenceLimits())
    named = {*files_under(paths, most=MAX_FILES, empty=True), *known}
    for path in sorted(named, key=lambda path: (path.name, path)):
        try:
            files.add_file(path, known.get(path))
        except SlowInputError:
            raise
        except InputError as error:
            files.problems.append(why_unread(error, legible(path.name), shown=path.name))
    evidence = files.evidence()
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


def read_evidence_stream(
    kind: EvidenceKind, chunks: Iterable[bytes], limits: EvidenceLimits | None = None
) -> CollectedEvidence:
    """Read text of a known kind that has no name, such as a request's body.

    Raises:
        InputError: it is damaged.
        SlowInputError: it takes longer than the limits allow.
    """
    files = _Files(limits or EvidenceLimits())
    files.add_text(kind, chunks, "")
    return files.evidence()


class _Files:
    """Files read so far, by kind."""

    def __init__(self, limits: EvidenceLimits) -> None:
        self.limits = limits
        self.dumps: dict[int, Dump] = {}
        self.stacks: list[Stack] = []
        self.errors: list[ErrorFile] = []
        self.readings: list[EvidenceReading] = []
        self.problems: list[Unread] = []
        self.ignored: list[str] = []

    def add_file(self, path: Path, kind: EvidenceKind | None) -> None:
        """Read a file of a kind; where none is known it is looked for, and need not be there."""
        name = redact_name(legible(path.name))
        if kind is None:
            kind = _kind_of(path)
        if kind is None and _is_archive(path):
            self.problems.append(Unread(file=name, reason=ARCHIVE, code="archive"))
        elif kind is None:
            self.ignored.append(name)
        elif kind == "flight_recorder":
            data, _ = peek(unpacked(file_chunks(path), name=name), MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise InputError(
                    f"{path.name} is larger than {MAX_BYTES >> 20} MiB",
                    todo="split it",
                    reason="too_large",
                    values={"name": name, "size": str(MAX_BYTES >> 20)},
                )
            self.limits.take_bytes(len(data), name)
            dump = parse_dump(data, name=name, limits=self.limits)
            self.dumps[dump.rank] = dump
        else:
            self.add_text(kind, file_chunks(path), redact_name(legible(str(path))))

    def add_text(self, kind: EvidenceKind, chunks: Iterable[bytes], path: str) -> None:
        """Read text of a kind; the path may tell a rank."""
        data, _ = peek(decoded(chunks), MAX_TEXT)
        self.limits.take_bytes(len(data), PurePath(path).name)
        text, _ = redact(data.decode("utf-8", "replace"))
        if kind == "torchrun":
            error = parse_error_file(text, path=path)
            self.errors += [error] if error else []
        elif kind == "stacks":
            self.stacks += parse_stacks(text, name=PurePath(path).name, limits=self.limits)
        else:
            read = read_ras if kind == "ras" else read_kernel
            self.readings.append(read(text, self.limits))

    def evidence(self) -> CollectedEvidence:
        """Compare what belongs together, once all files are in."""
        readings = list(self.readings)
        if self.stacks:
            readings.append(read_stacks(self.stacks))
        if self.errors:
            readings.append(read_error_files(self.errors))
        return CollectedEvidence(
            dumps=analyse(list(self.dumps.values())) if self.dumps else None,
            readings=tuple(sorted(readings, key=lambda reading: reading.kind)),
            problems=tuple(self.problems),
            ignored=tuple(self.ignored),
        )


def _kind_of(path: Path) -> EvidenceKind | None:
    """The kind of a file handed over as evidence; None where it is none, binary or empty.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return evidence_kind(file_chunks(path), among_logs=path.suffix in _MODELS)
    except InputError as error:
        if error.reason == "unreadable":
            raise
        return None


def _is_archive(path: Path) -> bool:
    """Whether a file holds several others: a zip, or a tar, compressed or not."""
    try:
        head, _ = peek(unpacked(file_chunks(path)), TAR_HEAD)
    except InputError:
        return False
    return head.startswith(b"PK\x03\x04") or head[257:262] == b"ustar"


def add_evidence(incident: Incident, evidence: CollectedEvidence) -> Incident:
    """The incident of the log with what the evidence adds.

    What the log says already stays. Culprits come from the strongest source that names any: a
    mismatch the flight recorder proves (the rank that breaks is often not the one that differs), an
    error the log shows on a rank, an error file, the flight recorder's waits, RAS, stacks, and last
    the log's own reading of who is silent. Facts of the evidence carry line 0: they do not stand in
    the log; their detail says where.
    """
    versions: dict[str, str] = {}
    for source in (*evidence.readings, *filter(None, [evidence.dumps])):
        versions |= source.versions
    merged = replace(
        incident,
        culprit_ranks=_culprits(incident, evidence),
        facts=(*incident.facts, *_all_facts(evidence), *_joint_facts(incident, evidence.dumps)),
        unread=(*incident.unread, *evidence.problems),
        ranks=_ranks(incident, evidence),
        versions=versions | incident.versions,
        evidence_kinds=tuple(sorted({source.kind for source in evidence.sources})),
    )
    fault = incident.fault_type or next(
        (r.fault_type for r in evidence.readings if r.fault_type), ""
    )
    if evidence.dumps is not None:
        return _with_dumps(merged, evidence.dumps, fault)
    # Who hands in a kernel log or a RAS report asks about a fault, whether or not it says timeout.
    shown = bool(merged.culprit_ranks) or any(reading.facts for reading in evidence.readings)
    return replace(merged, fault_type=fault, has_timeout=incident.has_timeout or shown)


def _with_dumps(incident: Incident, dumps: EvidenceReading, fault: str) -> Incident:
    """Fill what the log leaves open with what the flight recorder says."""
    waiting = tuple(state.rank for state in dumps.ranks if state.state == "waiting")
    idle = {culprit.rank for culprit in dumps.culprits} if dumps.fault_type in _SILENT else set()
    quiet = tuple(sorted({*dumps.absent, *idle}))
    known = bool(incident.ranks_reporting)
    own = dumps.fault_type if dumps.fault_type != "unknown" else ""
    incident = replace(
        incident,
        world_size=incident.world_size or (max((s.rank for s in dumps.ranks), default=-1) + 1),
        ranks_reporting=incident.ranks_reporting if known else waiting,
        ranks_silent=incident.ranks_silent if known else quiet,
        fault_type=own or fault or dumps.fault_type,
        has_timeout=incident.has_timeout or bool(waiting) or bool(dumps.culprits),
    )
    shown = dumps.collective
    if shown is None:
        return incident
    more = {"backend": shown.backend, "op": shown.op, "process_group": str(shown.group)}
    counts = ("seq", "numel_in", "numel_out", "timeout_ms")
    return _filled(incident, more | {name: getattr(shown, name) for name in counts})


def _culprits(incident: Incident, evidence: CollectedEvidence) -> tuple[Culprit, ...]:
    own = incident.culprit_ranks
    first = incident.first_error
    if own and any(fact.name == "mismatch_proven" and fact.detail for fact in incident.facts):
        return own  # the log itself shows which rank differs
    dumps = _dump_culprits(incident.world_size, evidence.dumps)
    proven = bool(dumps) and evidence.dumps is not None and evidence.dumps.fault_type == "mismatch"
    if not proven and first is not None and any(culprit.rank == first.rank for culprit in own):
        return own
    by_kind: dict[str, list[Culprit]] = defaultdict(list)
    for reading in evidence.readings:
        by_kind[reading.kind] += reading.culprits
    sources = [
        dumps if proven else [],
        by_kind["torchrun"],
        dumps,
        by_kind["ras"],
        by_kind["stacks"],
        list(own),
    ]
    chosen = next((source for source in sources if source), [])
    unique = {culprit.rank: culprit for culprit in reversed(chosen)}
    from_log = chosen and chosen[0] in own
    return tuple(
        culprit if from_log else replace(culprit, line=0, file="")
        for _, culprit in sorted(unique.items())
    )


def _dump_culprits(world_size: int | None, dumps: EvidenceReading | None) -> list[Culprit]:
    """The flight recorder's culprits; a missing rank only when all others are accounted for."""
    if dumps is None:
        return []
    unseen = (world_size or 0) - len(dumps.present) - len(dumps.absent)
    return [] if dumps.fault_type == "missing_rank" and unseen > 0 else list(dumps.culprits)


def _all_facts(evidence: CollectedEvidence) -> list[Fact]:
    facts = list(evidence.dumps.facts) if evidence.dumps else []
    for reading in evidence.readings:
        for fact in reading.facts:
            where = f"{reading.kind} line {fact.line}" if fact.line else reading.kind
            detail = f"{where}: {fact.detail}" if fact.detail else where
            facts.append(replace(fact, line=0, detail=detail))
    return facts


def _joint_facts(incident: Incident, dumps: EvidenceReading | None) -> list[Fact]:
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


def _ranks(incident: Incident, evidence: CollectedEvidence) -> tuple[RankState, ...]:
    """The log's table, gaps filled from the dumps, then from stacks and error files."""
    rows = {state.rank: state for state in incident.ranks}
    for state in (state for reading in evidence.sources for state in reading.ranks):
        known = rows.get(state.rank)
        rows[state.rank] = _filled(known, asdict(state)) if known else replace(state, line=0)
    return tuple(rows[rank] for rank in sorted(rows))


def _filled(known: T, more: Mapping[str, Any]) -> T:
    """`known` with its fields that are None or empty filled from `more`, where that has them."""
    gaps = {name: value for name, value in more.items() if getattr(known, name) in (None, "")}
    return replace(known, **{name: value for name, value in gaps.items() if value is not None})
