"""What a file is: the one place that decides it, for every face.

A file is told by its content. Evidence beside the log is a flight-recorder dump, torchrun's error
file, a RAS report, stacks, or a kernel log; all else is a log, or is refused by who reads logs.
A job's log may hold stacks, kernel lines or a RAS report: it stays a log. So among logs both the
beginning and the end of a file must look like evidence, with no block of other lines between. A
file that was handed over as evidence needs less: it cannot be the log.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from kb.errors import InputError
from kb.evidence.flight_recorder.dump_file import looks_like_dump
from kb.evidence.kernel import KERNEL_LINE, MAX_LINE, looks_like_kernel
from kb.evidence.ras import looks_like_ras
from kb.evidence.stacks import looks_like_stacks
from kb.evidence.torchrun import parse_error_file
from kb.files.archives import peek, unpacked
from kb.files.decode import decoded
from kb.files.log_source import file_chunks

EvidenceKind = Literal["flight_recorder", "torchrun", "ras", "stacks", "kernel"]

HEAD_BYTES = 16 * 1024  # of a file, to tell what it is
MAX_NAME = 255  # characters of a file's name that are looked at, as file systems allow
STREAM_HEAD_BYTES = 64 * 1024  # of a stream; torchrun's error files are smaller
END_BYTES = 16 * 1024  # at a file's end, for `END_LINES`
END_LINES = 50  # most of which must look like the kind it begins as
MAX_TEXT = 64 * 1024 * 1024  # bytes of a text file; kernel logs and stacks are far smaller
MAX_ERROR_FILE = 1024 * 1024  # bytes; a message and a Python stack
BLOCK_LINES = 8  # so many lines in a row of no evidence are a log's; nvidia-smi -q begins with four
STACK_LINES = 2  # faulthandler may print one line before the first thread, a crash prints more
REPORT_LINES = 10  # within which a RAS report has its version and its first headings
_RECORDER_KEYS = (b"pg_config", b"pg_status", b"comm_lib_version", b"nccl_version", b"entries")
_STACK_LINE = re.compile(
    r"^(?:\s|Process [0-9]|Thread |Current thread |Python v|Extension modules:)"
)
_KERNEL_LINE = re.compile(rf"{KERNEL_LINE.pattern}|^(?:\s|GPU |=)")  # or one of nvidia-smi -q
# Names evidence has and no log has: Slack tells a file's name and type before it is fetched.
_EVIDENCE_NAME = re.compile(
    r"(?:trace|dump|stack|pyspy)[\w.-]*[0-9]\Z|error[_-]?[0-9]*\.json\Z|(?:dmesg|ncclras)[^.]*\Z"
)


def named_like_evidence(name: str) -> bool:
    """Whether a file's name alone says that it may be evidence, such as ``nccl_trace_rank_3``."""
    return _EVIDENCE_NAME.search(name.lower()[-MAX_NAME:]) is not None


def evidence_among(paths: Iterable[Path]) -> dict[Path, EvidenceKind]:
    """Those of a run's files that are evidence beside its logs, and of which kind.

    A pipe can be read once and is left to who reads logs; so is a file that cannot be read.
    """
    kinds: dict[Path, EvidenceKind] = {}
    for path in paths:
        try:
            kind = evidence_kind(file_chunks(path)) if path.is_file() else None
        except InputError:
            kind = None
        if kind is not None:
            kinds[path] = kind
    return kinds


def evidence_in_stream(chunks: Iterable[bytes]) -> tuple[EvidenceKind | None, Iterator[bytes]]:
    """Of which kind of evidence a stream is, and all of the stream.

    A flight-recorder dump is none here: its rank stands in a file's name.
    """
    head, stream = peek(chunks, STREAM_HEAD_BYTES)
    try:
        kind = evidence_kind([head])
        if kind is not None:
            data, stream = peek(stream, MAX_TEXT)
            kind = evidence_kind([data])
    except InputError:
        kind = None
    return (None if kind == "flight_recorder" else kind), stream


def evidence_kind(chunks: Iterable[bytes], *, among_logs: bool = True) -> EvidenceKind | None:
    """Of which kind of evidence a file is, compressed or not; None for a log and anything else.

    Raises:
        InputError: the file is empty, binary, damaged or cannot be read.
    """
    head, content = peek(unpacked(chunks), HEAD_BYTES)
    if looks_like_dump(head):
        named = any(key in head for key in _RECORDER_KEYS)
        return "flight_recorder" if named or not among_logs else None
    content = decoded(content)
    first, content = peek(content, HEAD_BYTES)
    text = first.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        return _json_kind(text, content)
    return _text_kind(text, content, among_logs=among_logs)


def _json_kind(head: str, content: Iterable[bytes]) -> EvidenceKind | None:
    if looks_like_ras(head):
        return "ras"
    if '"message"' not in head:
        return None
    text = peek(content, MAX_ERROR_FILE)[0].decode("utf-8", "replace")
    return "torchrun" if parse_error_file(text, path="") else None


def _text_kind(head: str, content: Iterable[bytes], *, among_logs: bool) -> EvidenceKind | None:
    """The kind of a text that begins as evidence does and, among logs, ends so, too."""
    report = stacks = head
    if among_logs:
        lines = head.strip().splitlines()
        report = "\n".join([line for line in lines if line.strip()][:REPORT_LINES])
        stacks = "\n".join(lines[:STACK_LINES])
    if looks_like_ras(report):
        return "ras"
    if looks_like_stacks(stacks):
        return "stacks" if not among_logs or _fits(content, _STACK_LINE) else None
    if looks_like_kernel(head):
        return "kernel" if not among_logs or _fits(content, _KERNEL_LINE) else None
    return None


def _fits(content: Iterable[bytes], expression: re.Pattern[str]) -> bool:
    """Whether most of the last lines match and no block before does not; not where out of reach."""
    data, _ = peek(content, MAX_TEXT)
    if len(data) >= MAX_TEXT:
        return False
    end = data[-END_BYTES:].decode("utf-8", "replace")
    last = [_matches(line, expression) for line in end.splitlines() if line.strip()][-END_LINES:]
    return sum(last) * 2 >= len(last) and not _has_block(data, expression)


def _has_block(data: bytes, expression: re.Pattern[str]) -> bool:
    """Whether `BLOCK_LINES` lines in a row do not match; empty ones do not count."""
    others = 0
    for raw in io.BytesIO(data):
        line = raw[: 4 * MAX_LINE].decode("utf-8", "replace")
        if line.strip():
            others = 0 if _matches(line, expression) else others + 1
        if others == BLOCK_LINES:
            return True
    return False


def _matches(line: str, expression: re.Pattern[str]) -> bool:
    return expression.search(line[:MAX_LINE]) is not None
