"""Chunks of any size become blocks of whole lines, each with the number of its first line.

Blocks do not depend on where the chunks were cut, so neither does any hit in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kb.files.archives import CHUNK_BYTES

BLOCK_BYTES = CHUNK_BYTES
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")
NUMPY_FROM = 64 * 1024  # below, counting in Python is faster than importing numpy


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines without terminal colours or CRLF; `first_line` counts from 1."""

    data: bytes
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
    for following in pieces:
        data = carry + piece
        cut = _cut(data)
        block = _block(data[:cut], line, last=False)
        carry = data[cut:]
        line += block.newlines
        yield block
        piece = following
    yield _block(carry + piece, line, last=True)


def _exact(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of `size`, the last one shorter; files come that way already."""
    rest = bytearray()
    for chunk in chunks:
        if not rest and len(chunk) == size:
            yield chunk
            continue
        rest += chunk
        while len(rest) >= size:
            yield bytes(rest[:size])
            del rest[:size]
    if rest:
        yield bytes(rest)


def _cut(data: bytes) -> int:
    for mark in (b"\n", b"\r", b" "):
        place = data.rfind(mark)
        if place > 0:
            return place + 1
    return len(data)


def _block(data: bytes, line: int, *, last: bool) -> Block:
    newlines = count_newlines(data)
    data = data.replace(b"\r\n", b"\n")
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    return Block(data, line, newlines, last)


def count_newlines(data: bytes) -> int:
    """Newlines in `data`; `bytes.count` takes ten times as long on large blocks."""
    if len(data) < NUMPY_FROM:
        return data.count(b"\n")
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")))
