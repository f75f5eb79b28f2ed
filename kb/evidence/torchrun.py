"""torchrun's error files (``TORCHELASTIC_ERROR_FILE``, ``attempt_0/2/error.json``).

A worker that runs under ``@record`` leaves its exception with a time stamp. The earliest file that
is not a consequence of another rank's death names the rank that failed first. The format is that of
torch.distributed.elastic.multiprocessing.errors: ``{"message": {"message", "extraInfo": {
"py_callstack", "timestamp"}}}``, or ``{"message": text, "timestamp": number}`` for signals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import msgspec

from kb.evidence.reading import EvidenceReading, reason
from kb.types.incident import Culprit, Fact, RankState

_RANK = re.compile(
    r"(?:attempt_[0-9]{1,6}/([0-9]{1,6})/)|(?:rank[_-]?([0-9]{1,6}))|(?:error[_-]([0-9]{1,6})\.json)"
)
# What a rank says when another one went away; never the first failure.
_CASCADE = re.compile(
    r"Connection (?:closed|reset) by|Broken pipe|Timed out waiting [0-9]+ms|Watchdog caught|"
    r"remote process exited|ncclRemoteError|recvValue failed|SIGTERM|received signal 15|"
    r"Socket Timeout|wait timeout after"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFile:
    """One worker's error: rank (None when the path does not say), message, time in seconds."""

    rank: int | None
    message: str
    timestamp: float
    file: str

    @property
    def cascade(self) -> bool:
        """Whether the error follows from another rank's failure."""
        return bool(_CASCADE.search(self.message))


class _Extra(msgspec.Struct):
    timestamp: str | int | float = 0


class _Message(msgspec.Struct):
    message: str = ""
    extraInfo: _Extra | None = None  # noqa: N815 - the file's own name


class _File(msgspec.Struct):
    message: _Message | str
    timestamp: str | int | float = 0


def parse_error_file(text: str, *, path: str) -> ErrorFile | None:
    """Read one file; None when it is no error file of torchrun."""
    try:
        raw = msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, RecursionError):
        return None
    match = _RANK.search(PurePath(path).as_posix())
    message = raw.message if isinstance(raw.message, str) else raw.message.message
    extra = None if isinstance(raw.message, str) else raw.message.extraInfo
    return ErrorFile(
        rank=int(next(group for group in match.groups() if group)) if match else None,
        message=message.strip()[:2000],
        timestamp=_seconds(extra.timestamp if extra else raw.timestamp),
        file=PurePath(path).name,
    )


def _seconds(value: str | float) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0


def read_error_files(files: Sequence[ErrorFile]) -> EvidenceReading:
    """Order the errors: own failures before cascades, then by time, rank and name."""
    ordered = sorted(
        files, key=lambda item: (item.cascade, item.timestamp, item.rank or 0, item.file)
    )
    facts: list[Fact] = []
    culprits: tuple[Culprit, ...] = ()
    for position, item in enumerate(ordered):
        quote = item.message.splitlines()[0][:300] if item.message else ""
        who = f"rank {item.rank}" if item.rank is not None else item.file
        first = position == 0 and not item.cascade
        name = "torchrun_first_failure" if first else "torchrun_error"
        facts.append(Fact(name=name, quote=quote, detail=who))
        if first and item.rank is not None:
            words = reason("torchrun_failed", {"quote": quote})
            culprits = (Culprit(rank=item.rank, reason=words, kind="torchrun_failed"),)
    return EvidenceReading(
        kind="torchrun",
        culprits=culprits,
        facts=tuple(facts),
        ranks=tuple(
            RankState(rank=item.rank, state="cascade" if item.cascade else "failed")
            for item in sorted(files, key=lambda item: (item.rank or 0, item.file))
            if item.rank is not None
        ),
    )
