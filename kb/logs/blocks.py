"""Chunks of any size become blocks of whole lines, each with the number of its first line.

Blocks do not depend on where the chunks were cut, so neither does anything found in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kb.logs.source import CHUNK_BYTES

BLOCK_BYTES = CHUNK_BYTES
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")


NUMPY_FROM = 64 * 1024  # below, counting in Python is faster than importing numpy


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines without terminal colours or CRLF; `first_line` counts from 1.

    The lines are ``data[:size]``: what follows belongs to the next block and is not copied away.
    """

    data: bytes
    size: int
    first_line: int
    newlines: int
    last: bool


def blocks(chunks: Iterable[bytes], size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Cut a stream into blocks of about `size` bytes that end with a line.

    A line longer than a block is cut at a carriage return or blank where it has one.
    """
    line = 1
    carry = b""
    pieces = _exact(chunks, size)
    piece = next(pieces, b"")
    while True:
        following = next(pieces, None)
        data = carry + piece if carry else piece
        if following is None:
            yield _block(data, len(data), line, last=True)
            return
        cut = _cut(data)
        block = _block(data, cut, line, last=False)
        carry = data[cut:]
        line += block.newlines
        yield block
        piece = following


def _exact(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of `size`, the last one shorter; files come that way already."""
    parts: list[bytes] = []
    held = 0
    for chunk in chunks:
        if not held and len(chunk) == size:
            yield chunk
            continue
        start = 0
        while held + len(chunk) - start >= size:
            stop = start + size - held
            yield b"".join([*parts, chunk[start:stop]])
            parts, held, start = [], 0, stop
        if start < len(chunk):
            parts.append(chunk[start:])
            held += len(chunk) - start
    if parts:
        yield b"".join(parts)


def _cut(data: bytes) -> int:
    for mark in (b"\n", b"\r", b" "):
        place = data.rfind(mark)
        if place > 0:
            return place + 1
    return len(data)


def _block(data: bytes, size: int, line: int, *, last: bool) -> Block:
    newlines = count_newlines(data, size)
    bare = data
    if _has_crlf(bare):
        bare = bare[:size].replace(b"\r\n", b"\n")
    if b"\x1b" in bare:
        bare = _ANSI.sub(b"", bare[: size if bare is data else len(bare)])
    return Block(bare, size if bare is data else len(bare), line, newlines, last)


def count_newlines(data: bytes, size: int) -> int:
    """Newlines in ``data[:size]``; `bytes.count` takes five times as long on large blocks."""
    if size < NUMPY_FROM:
        return data.count(b"\n", 0, size)
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8, count=size) == ord("\n")))


def _has_crlf(data: bytes) -> bool:
    """Whether lines end with CRLF; searching for the pair alone is slow in long bars."""
    first = data.find(b"\r")
    if first < 0:
        return False
    if data[first + 1 : first + 2] == b"\n":
        return True
    if len(data) < NUMPY_FROM:
        return b"\r\n" in data
    import numpy as np

    view = np.frombuffer(data, dtype=np.uint8)
    return bool(((view[:-1] == ord("\r")) & (view[1:] == ord("\n"))).any())
