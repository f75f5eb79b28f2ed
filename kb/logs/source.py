"""Where log bytes come from: text, bytes, streams, plain and compressed files, folders.

Everything arrives as chunks of UTF-8 (bytes that are no UTF-8 stay as they are and are decoded
line by line later). Nothing is ever held whole: gigabytes pass in constant memory.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from kb.errors import InputError

CHUNK_BYTES = 256 * 1024  # fits a core's second-level cache, so copying costs little
HEAD_BYTES = 4096  # what is looked at to tell text from binary and to guess the encoding
BLANK_BYTES = 256 * 1024 * 1024  # blanks and NULs passed over at a log's start; an archive of
# nothing else would unpack for hours
MAX_NUL_SHARE = 0.02  # logs cut off by a crash hold a few NULs; binaries hold many
MAX_CONTROL_SHARE = 0.05  # other control characters; terminals print few, binaries a tenth
MAX_FILES = 20_000  # a folder with more is a dataset, not a run's logs
_UTF16_NUL_SHARE = 0.25  # Latin text in UTF-16 is half NULs, mixed with Chinese still a quarter

_COMPRESSED = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"\xfd7zXZ\x00": "xz"}
_BINARY = (
    (b"\x7fELF", "a program", "binary"),
    (b"\x89PNG", "an image", "picture"),
    (b"\xff\xd8\xff", "an image", "picture"),
    (b"GIF8", "an image", "picture"),
    (b"%PDF", "a PDF", "document"),
    (b"PK\x03\x04", "a zip archive", "archive"),
    (b"BZh9", "a bzip2 archive", "archive"),
    (b"SQLite format 3", "a database", "binary"),
    (b"\x80\x02", "a pickle (flight-recorder dump?)", "pickle"),
    (b"\x80\x04", "a pickle (flight-recorder dump?)", "pickle"),
    (b"\x80\x05", "a pickle (flight-recorder dump?)", "pickle"),
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes(sorted(set(range(32)) - set(b"\0\t\n\r\x08\x0c\x1b")))
THE_INPUT = "the input"  # a paste or a stream has no name
_TODO_PASTE = "paste the log, or name a file"
_TODO_TEXT = "pass a text log (.log .out .txt, also .gz .zst .xz); dumps go to --dump"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One log: its name (empty for pasted text), the rank its name tells, and how to read it.

    `chunks` opens the log anew and yields decoded UTF-8 pieces of any length.
    """

    name: str
    chunks: Callable[[], Iterable[bytes]]
    rank: int | None = None


def from_text(text: str) -> Source:
    """Pasted text; lone surrogates become question marks."""
    data = text.encode("utf-8", "replace")
    if not data.strip():
        raise _refused("empty", "", "is empty", todo=_TODO_PASTE)
    return from_bytes(data)


def from_bytes(data: bytes, name: str = "") -> Source:
    """Bytes of a log in any of the encodings and compressions a file may have."""
    if not data.strip():
        raise _refused("empty", name, "is empty", todo=_TODO_PASTE)
    return Source(name=name, chunks=lambda: decoded(_slices(data), name=name))


def from_stream(chunks: Iterable[bytes], name: str = "") -> Source:
    """A stream that can be read once, such as standard input or a request's body."""
    return Source(name=name, chunks=lambda: decoded(chunks, name=name))


def from_path(path: Path, rank: int | None = None) -> Source:
    """A file."""
    return Source(name=str(path), rank=rank, chunks=lambda: decoded(_file(path), name=str(path)))


def short_names(names: Sequence[str]) -> list[str]:
    """What tells the files of one input apart: their paths below the folder all share.

    A single one needs no name.
    """
    if len(names) < 2:
        return [""] * len(names)
    names = [legible(name) for name in names]
    try:
        shared = os.path.commonpath([Path(name).parent for name in names])
        return [str(Path(name).relative_to(shared)) for name in names]
    except ValueError:  # some absolute, some not; `//`, a root of its own
        return names


def legible(name: str) -> str:
    """A file's name as text: bytes of it that are no UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def files_under(paths: Sequence[Path]) -> list[Path]:
    """The files named by `paths`, folders walked, in a fixed order; hidden files are left out.

    Raises:
        InputError: a path does not exist, may not be read, or holds no file.
    """
    found: list[Path] = []
    for path in paths:
        try:
            if path.is_dir():
                inside = sorted(
                    item
                    for item in path.rglob("*")
                    if item.is_file() and not item.name.startswith(".")
                )
                if not inside:
                    next(iter(path.iterdir()), None)  # tells a folder without rights from an empty
                    what = "holds no files"
                    raise _refused("no_files", path, what, todo="name the folder of the logs")
                found += inside
            elif path.exists():
                found.append(path)
            else:
                raise _refused("missing", path, "does not exist", todo="check the path")
        except OSError as error:
            raise not_readable(path, error, todo="check its permissions") from error
    if len(found) > MAX_FILES:
        raise InputError(
            f"{len(found)} files are too many",
            todo="name the folder of one run",
            reason="too_many",
            values={"count": str(len(found))},
        )
    return list(dict.fromkeys(found))


def decoded(chunks: Iterable[bytes], *, name: str = "") -> Iterator[bytes]:
    """Uncompress and recode a byte stream to UTF-8, chunk by chunk.

    Raises:
        InputError: the stream is empty, binary, or a damaged archive.
    """
    head, rest = _peek(chunks)
    for magic, kind in _COMPRESSED.items():
        if head.startswith(magic):
            head, rest = _peek(_uncompress(rest, kind, name))
            break
    if not head.strip(b" \t\r\n\0"):
        rest_head = _first_filled(rest)
        if not rest_head:
            raise _refused("empty", name, "is empty", todo="name the log of the failed run")
        head, rest = rest_head, _chain(rest_head, rest)
    encoding = _encoding(head, name)
    yield from rest if encoding is None else _recode(rest, encoding)


def _refused(reason: str, path: Path | str, what: str, *, todo: str = _TODO_TEXT) -> InputError:
    """That an input cannot be used; its last name alone is shown by faces."""
    values = {"name": legible(Path(path).name)}
    return InputError(f"{path or THE_INPUT} {what}", todo=todo, reason=reason, values=values)


def not_readable(path: Path, error: OSError, *, todo: str) -> InputError:
    """That a file or folder is there and cannot be read."""
    values = {"name": legible(path.name), "why": error.strerror or ""}
    return InputError(f"{path}: {error.strerror}", todo=todo, reason="unreadable", values=values)


def is_packed(head: bytes) -> bool:
    """Whether bytes that begin so are an archive, which may hold far more than its size tells."""
    return head.startswith(tuple(_COMPRESSED))


def _first_filled(chunks: Iterator[bytes]) -> bytes:
    """The first chunk with anything but blanks; empty where there is none within reason."""
    skipped = 0
    for chunk in chunks:
        if chunk.strip(b" \t\r\n\0"):
            return chunk
        skipped += len(chunk)
        if skipped > BLANK_BYTES:
            break
    return b""


def _slices(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    for start in range(0, len(data), CHUNK_BYTES):
        yield bytes(view[start : start + CHUNK_BYTES])


def _file(path: Path) -> Iterator[bytes]:
    """Chunks of a file."""
    try:
        with path.open("rb", buffering=0) as stream:
            yield from _read_chunks(stream)
    except OSError as error:
        raise not_readable(path, error, todo="check the path and rights") from error


def _read_chunks(stream: io.FileIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _chain(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _peek(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, at least `HEAD_BYTES` where there are so many, and all of the stream."""
    stream = iter(chunks)
    first = b""
    for chunk in stream:
        first += chunk
        if len(first) >= HEAD_BYTES:
            break
    return first[:HEAD_BYTES], _chain(first, stream)


class _Reader(io.RawIOBase):
    """A file over chunks, for decompressors that ask for one."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = bytes(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _uncompress(chunks: Iterator[bytes], kind: str, name: str) -> Iterator[bytes]:
    """Plain bytes of a compressed stream; a cut-off archive gives what it still holds."""
    raw = io.BufferedReader(_Reader(chunks), CHUNK_BYTES)
    given = False
    try:
        stream = _opened(cast("BinaryIO", raw), kind)
        while chunk := stream.read1(CHUNK_BYTES):  # gives what a cut archive still holds
            given = True
            yield chunk
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        if not given:
            raise InputError(
                f"{name or THE_INPUT}: damaged {kind} archive: {error}",
                todo="unpack it and pass the text",
                reason="damaged",
                values={"name": legible(Path(name).name), "kind": kind},
            ) from error


class _Opened(Protocol):
    """A decompressor: `read1` gives some bytes, none at the end."""

    def read1(self, size: int = -1, /) -> bytes: ...


def _opened(raw: BinaryIO, kind: str) -> _Opened:
    if kind == "gz":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if kind == "xz":
        return lzma.LZMAFile(raw, "rb")
    import zstandard

    class _Zstd:
        """zstandard's own error type becomes ValueError, so callers need not import it."""

        def __init__(self) -> None:
            self._inner = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)

        def read1(self, size: int = -1, /) -> bytes:
            try:
                return self._inner.read(size)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from error

    return _Zstd()


def _encoding(head: bytes, name: str) -> str | None:
    """The encoding to recode from, or None when the bytes can stay as they are.

    Raises:
        InputError: the head is that of a binary file.
    """
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return encoding
    for magic, what, reason in _BINARY:
        if head.startswith(magic):
            raise _refused(reason, name, f"is {what}, not a log")
    nuls = head.count(0)
    if nuls >= _UTF16_NUL_SHARE * len(head):
        even, odd = head[::2].count(0), head[1::2].count(0)
        if max(even, odd) > 4 * min(even, odd):
            return "utf-16-be" if even > odd else "utf-16-le"
    if nuls > MAX_NUL_SHARE * len(head):
        raise _refused("binary", name, f"is binary ({nuls} NULs at its start)")
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > MAX_CONTROL_SHARE * len(head):
        raise _refused("binary", name, f"is binary ({controls} control characters)")
    if _decodes(head, "utf-8"):
        return None
    return "gb18030" if _decodes(head, "gb18030") else None


def _decodes(head: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(head, final=False)
    except UnicodeDecodeError:
        return False
    return True


def _recode(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        if text := decoder.decode(bytes(chunk)):
            yield text.encode("utf-8", "replace")
    if text := decoder.decode(b"", final=True):
        yield text.encode("utf-8", "replace")
