"""Flight-recorder dumps, pickle or JSON, as checked values; no torch, nothing executed.

PyTorch writes one file a rank (``nccl_trace_rank_3``, ``comm_lib_trace_rank_3``, ``_dump_3``): a
dict with `version`, `pg_config` (groups and their ranks), `pg_status` (last enqueued, started and
completed per group id) and `entries`, oldest first. Formats 2.x only add fields; the numbers are
compared as integer pairs, since as floats 2.10 would be older than 2.9. A field that is missing or
of another type counts as absent: dumps of a dying job are often incomplete.

An entry is done when its state says completed or it is retired. Gloo and jobs without
``TORCH_NCCL_ENABLE_TIMING`` leave the state at scheduled and only retire. Dumps with active
entries only hold nothing else than what is pending.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kb.errors import InputError
from kb.evidence.flight_recorder.unpickle import MAX_CONTAINERS, load_plain
from kb.evidence.limits import EvidenceLimits

SUPPORTED_MAJOR = 2
MAX_ENTRIES = 200_000  # 100 times the recorder's default buffer
MAX_NUMBER = 1 << 62  # numbers of the recorder are 64 bits
MAX_RANKS = 1_000_000  # no job is larger; a wrong rank list must not make a table of 2^63
MAX_MEMBERS = 16_000_000  # length of all rank lists; 16,384 ranks in 140 groups, as text
ENTRIES_A_LOOK = 1024  # entries between two looks at the clock
MAX_DTYPE = 64  # characters; no data type has a longer name

_RANK = re.compile(r"(?<![0-9])([0-9]{1,9})(?:\.[A-Za-z]{1,9}){0,4}\Z")
_P2P = re.compile(r"(send|recv) ([0-9]{1,7})(?:->|<-)([0-9]{1,7})\Z")
_TODO = "pass the folder the flight recorder wrote: one file a rank, the name ends in the rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """A process group: the name torch gives it and its description (``default_pg``, ...)."""

    name: str
    desc: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.desc})" if self.desc else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOperation:
    """One recorded operation.

    `seq` is the collective's number in its group, or the point-to-point number when `peer` is set
    (the other side's rank inside the group). Sizes are element counts, -1 when not recorded.
    """

    record: int
    group: GroupKey
    group_id: str
    seq: int
    backend: str
    op: str
    done: bool
    started: bool
    p2p: bool
    peer: int | None
    in_sizes: tuple[tuple[int, ...], ...]
    out_sizes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    created_ns: int
    timeout_ms: int | None
    frame: str = ""

    @property
    def numel_in(self) -> int:
        """Elements of all input tensors together."""
        return sum(math.prod(size) for size in self.in_sizes)

    @property
    def numel_out(self) -> int:
        """Elements of all output tensors together."""
        return sum(math.prod(size) for size in self.out_sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """One rank's dump.

    `members` are the ranks of each group; `status` has, by the rank's own group id, the numbers of
    the collectives it issued and finished last, -1 where none is recorded.
    """

    rank: int
    version: str
    library: str
    members: dict[GroupKey, tuple[int, ...]]
    status: dict[str, tuple[int, int]]
    entries: tuple[RecordedOperation, ...]


def version_pair(version: str) -> tuple[int, int]:
    """``"2.10"`` as ``(2, 10)``.

    Raises:
        InputError: not two numbers joined by a dot.
    """
    match = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", version)
    if match is None:
        raise InputError(
            f"format version {version!r} is not a number pair",
            todo=_TODO,
            reason="dump_version",
            values={"version": version or "?"},
        )
    return int(match[1]), int(match[2])


def looks_like_dump(data: bytes) -> bool:
    """Whether the first bytes are a pickle of protocol 2 and up, or a recorder's JSON."""
    if data[:1] == b"\x80":
        return True
    head = data[:4096].lstrip()
    return head.startswith(b"{") and any(
        key in head for key in (b'"pg_config"', b'"comm_lib_version"', b'"collective_seq_id"')
    )


def parse_dump(data: bytes, *, name: str, limits: EvidenceLimits | None = None) -> Dump:
    """Turn the bytes of a dump into a value; `name` is the file's name and gives the rank.

    `limits` are those of the request it belongs to; alone it has a request's to itself.

    Raises:
        InputError: hostile, of another format, or without a rank in its name. The message names
            the file and the next step.
        SlowInputError: it takes longer than the limits allow.
    """
    limits = limits or EvidenceLimits(size=len(data))
    match = _RANK.search(name)
    if match is None or int(match[1]) > MAX_RANKS:
        raise _refused("dump_rank", name, ": the name does not end in a rank")
    is_pickle = data[:1] == b"\x80"
    value = load_plain(data, name=name, limits=limits) if is_pickle else _load_json(data, name)
    if not isinstance(value, dict) or not ({"entries", "pg_status"} & value.keys()):
        raise _refused("no_dump", name, " is no flight-recorder dump")
    version = _text(value.get("version"))
    if version_pair(version)[0] != SUPPORTED_MAJOR:
        raise InputError(
            f"{name} has format {version}; this program reads {SUPPORTED_MAJOR}.x",
            todo="update this program",
            reason="dump_version",
            values={"name": name, "version": version},
        )
    raw_entries = value.get("entries")
    entries: list[RecordedOperation] = []
    listed = raw_entries if isinstance(raw_entries, (list, tuple)) else ()
    for number, item in enumerate(listed[-MAX_ENTRIES:]):
        if number % ENTRIES_A_LOOK == 0:
            limits.check_time()
        if isinstance(item, dict):
            entries.append(_entry(item))
    return Dump(
        rank=int(match[1]),
        version=version,
        library=_text(value.get("nccl_version")) or _text(value.get("comm_lib_version")),
        members=_members(value.get("pg_config"), name, limits),
        status=_status(value.get("pg_status")),
        entries=tuple(sorted(entries, key=lambda entry: entry.record)),
    )


def _load_json(data: bytes, name: str) -> object:
    if data.count(b"{") + data.count(b"[") > MAX_CONTAINERS:
        raise _refused("no_dump", name, f" holds more than {MAX_CONTAINERS:,} lists and objects")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _refused("no_dump", name, f" is neither a pickle nor JSON ({error})") from error


def _refused(reason: str, name: str, what: str, **values: str) -> InputError:
    return InputError(f"{name}{what}", todo=_TODO, reason=reason, values={"name": name, **values})


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""


def _number(value: object, default: int = -1) -> int:
    """A whole number; pickles hold any, and one no recorder writes counts as absent."""
    known = isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER
    return value if known else default  # type: ignore[return-value]


def _dicts(value: object) -> Sequence[tuple[str, Mapping[str, object]]]:
    if not isinstance(value, dict):
        return ()
    return [(str(key), item) for key, item in value.items() if isinstance(item, dict)]


def _members(value: object, file: str, limits: EvidenceLimits) -> dict[GroupKey, tuple[int, ...]]:
    """The groups' ranks; a pickle may share one list among any number of groups.

    Raises:
        InputError: the lists together are longer than `MAX_MEMBERS`.
    """
    members: dict[GroupKey, tuple[int, ...]] = {}
    room = MAX_MEMBERS
    for name, group in _dicts(value):
        ranks = group.get("ranks")
        room -= len(ranks) if isinstance(ranks, (str, list, tuple)) else 0
        if room < 0:
            raise _refused("no_dump", file, " lists more ranks than any job has")
        numbers: tuple[int, ...] = ()
        if isinstance(ranks, str):
            numbers = tuple(int(part) for part in re.findall(r"[0-9]{1,7}", ranks))
        elif isinstance(ranks, (list, tuple)):
            numbers = tuple(_number(rank) for rank in ranks)
        numbers = tuple(rank for rank in numbers if 0 <= rank <= MAX_RANKS)
        if numbers:
            key = GroupKey(name=_text(group.get("name")) or name, desc=_text(group.get("desc")))
            members[key] = numbers
            limits.take_members(len(numbers), file)
    return members


def _status(value: object) -> dict[str, tuple[int, int]]:
    counters = ("last_enqueued_collective", "last_completed_collective")
    return {
        key: (_number(item.get(counters[0])), _number(item.get(counters[1])))
        for key, item in _dicts(value)
    }


def _sizes(value: object) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    sizes = (
        tuple(max(0, _number(length, 0)) for length in size)
        for size in value[:64]
        if isinstance(size, (list, tuple)) and len(size) <= 16
    )
    return tuple(size for size in sizes if math.prod(size) < MAX_NUMBER)


def _dtypes(value: object) -> tuple[str, ...]:
    """Names of data types; one too long is absent, as cuts of a shared text are not shared."""
    names = value[:64] if isinstance(value, (list, tuple)) else ()
    return tuple(_text(name) if len(_text(name)) <= MAX_DTYPE else "" for name in names)


def _group(value: object) -> GroupKey:
    """`process_group` is a pair (name, description) since 2.1 and a name before."""
    if isinstance(value, (list, tuple)):
        parts = [_text(part) for part in value[:2]]
        return GroupKey(name=parts[0] if parts else "", desc=parts[1] if len(parts) > 1 else "")
    return GroupKey(name=_text(value))


def _frame(value: object) -> str:
    """The innermost frame outside torch, as ``function (file:line)``."""
    for frame in value if isinstance(value, (list, tuple)) else ():
        if not isinstance(frame, dict):
            continue
        file = _text(frame.get("filename"))
        if file and "/torch/" not in file and not file.startswith("<"):
            where = f"{Path(file).name}:{_number(frame.get('line'), 0)}"
            return f"{_text(frame.get('name'))} ({where})"
    return ""


def _entry(raw: Mapping[str, object]) -> RecordedOperation:
    backend, _, op = _text(raw.get("profiling_name")).rpartition(":")
    direction = _P2P.match(op)
    p2p = bool(raw.get("is_p2p")) or direction is not None
    collective = _number(raw.get("collective_seq_id"), _number(raw.get("seq_id"), 0))
    state = _text(raw.get("state"))
    completed = _number(raw.get("time_discovered_completed_ns"), 0) > 0
    timeout = _number(raw.get("timeout_ms"), 0)
    group_id = raw.get("pg_id", "")
    return RecordedOperation(
        record=_number(raw.get("record_id"), _number(raw.get("id"), 0)),
        group=_group(raw.get("process_group")),
        group_id=_text(group_id) if isinstance(group_id, str) else str(_number(group_id)),
        seq=_number(raw.get("p2p_seq_id"), collective) if p2p else collective,
        backend=backend,
        op=direction[1] if direction else op,
        done=state == "completed" or completed or raw.get("retired") is True,
        started=state == "started" or _number(raw.get("time_discovered_started_ns"), 0) > 0,
        p2p=p2p,
        peer=int(direction[3]) if direction else None,
        in_sizes=_sizes(raw.get("input_sizes")),
        out_sizes=_sizes(raw.get("output_sizes")),
        dtypes=(*_dtypes(raw.get("input_dtypes")), *_dtypes(raw.get("output_dtypes"))),
        created_ns=_number(raw.get("time_created_ns"), 0),
        timeout_ms=timeout if timeout > 0 else None,
        frame=_frame(raw.get("frames")),
    )
