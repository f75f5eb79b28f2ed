"""Compressed streams: recognised by their first bytes, unpacked in constant memory."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from kb.errors import InputError
from kb.files.paths import THE_INPUT, legible

CHUNK_BYTES = 256 * 1024  # fits a core's second-level cache, so copying costs little
HEAD_BYTES = 4096  # what is looked at to tell text from binary and to guess the encoding
_COMPRESSED = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"\xfd7zXZ\x00": "xz"}


def is_compressed(head: bytes) -> bool:
    """Whether bytes that begin so are compressed; they may hold far more than their size tells."""
    return head.startswith(tuple(_COMPRESSED))


def unpacked(chunks: Iterable[bytes], *, name: str = "") -> Iterator[bytes]:
    """Plain bytes of a stream, compressed or not; a cut-off archive gives what it still holds.

    Raises:
        InputError: the archive is damaged from its start.
    """
    head, whole = peek(chunks)
    kind = next((kind for magic, kind in _COMPRESSED.items() if head.startswith(magic)), "")
    return _uncompress(whole, kind, name) if kind else whole


def peek(chunks: Iterable[bytes], size: int = HEAD_BYTES) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, `size` of them where there are so many, and all of the stream."""
    stream = iter(chunks)
    first: list[bytes] = []
    while sum(map(len, first)) < size and (chunk := next(stream, None)) is not None:
        first.append(chunk)
    return b"".join(first)[:size], chain(first, stream)


class ChunkReader(io.RawIOBase):
    """A file over chunks, for decompressors that ask for one."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer with what comes next; 0 at the end."""
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
    from kb.files.zstd import ZstdError, ZstdFile

    raw = cast("BinaryIO", io.BufferedReader(ChunkReader(chunks), CHUNK_BYTES))
    started = False
    read: Callable[[int], bytes]
    try:
        if kind == "zst":
            read = ZstdFile(raw).read1  # goes on into the next frame
        elif kind == "gz":
            read = gzip.GzipFile(fileobj=raw).read1  # gives what a cut archive still holds
        else:
            read = lzma.LZMAFile(raw).read1  # noqa: SIM115 - lives as long as `raw`
        while chunk := read(CHUNK_BYTES):
            started = True
            yield chunk
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError, ZstdError) as error:
        if not started:
            raise InputError(
                f"{name or THE_INPUT}: damaged {kind} archive: {error}",
                todo="unpack it and pass the text",
                reason="damaged",
                values={"name": legible(Path(name).name), "kind": kind},
            ) from error
