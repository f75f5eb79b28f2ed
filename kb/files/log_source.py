"""Where log bytes come from: text, bytes, streams and files, compressed ones too.

Everything arrives as chunks of UTF-8. Nothing is ever held whole: gigabytes pass in constant
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kb.files.archives import CHUNK_BYTES
from kb.files.decode import decoded
from kb.files.paths import not_readable, refused


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """One log: its name (empty for pasted text), the rank its name tells, and how to read it.

    `chunks` opens the log anew and yields decoded UTF-8 pieces of any length.
    """

    name: str
    chunks: Callable[[], Iterable[bytes]]
    rank: int | None = None


def from_text(text: str) -> LogSource:
    """Pasted text; lone surrogates become question marks."""
    return from_bytes(text.encode("utf-8", "replace"))


def from_bytes(data: bytes, name: str = "") -> LogSource:
    """Bytes of a log in any of the encodings and compressions a file may have."""
    if not data.strip():
        raise refused("empty", name, "is empty", todo="paste the log, or name a file")
    return LogSource(name=name, chunks=lambda: decoded(_slices(data), name=name))


def from_stream(chunks: Iterable[bytes], name: str = "") -> LogSource:
    """A stream that can be read once, such as standard input or a request's body."""
    return LogSource(name=name, chunks=lambda: decoded(chunks, name=name))


def from_path(path: Path, rank: int | None = None) -> LogSource:
    """A file."""
    name = str(path)
    return LogSource(name=name, rank=rank, chunks=lambda: decoded(file_chunks(path), name=name))


def file_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file as they are, `CHUNK_BYTES` at a time.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with path.open("rb", buffering=0) as stream:
            yield from iter(lambda: stream.read(CHUNK_BYTES), b"")
    except OSError as error:
        raise not_readable(path, error, todo="check the path and rights") from error


def _slices(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    for start in range(0, len(data), CHUNK_BYTES):
        yield bytes(view[start : start + CHUNK_BYTES])
