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


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of whole lines without terminal colours or CRLF; `first_line` counts from 1."""

    data: bytes
    first_line: int
    newlines: int
    last: bool


def blocks(chunks: Iterable[bytes], size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Cut a stream into blocks of about `size` bytes that end with a line.

    A line longer than a block is cut at a carriage return or blank where it has one.
    """
    line = 1
    parts: list[bytes] = []
    held = 0
    for chunk in chunks:
        view = memoryview(chunk)
        while held + len(view) >= size:
            take = size - held
            joined = b"".join([*parts, view[:take]])
            view = view[take:]
            cut = _cut(joined)
            block = _block(joined[:cut], line, last=False)
            parts, held = [joined[cut:]], len(joined) - cut
            line += block.newlines
            yield block
        if len(view):
            parts.append(bytes(view))
            held += len(view)
    yield _block(b"".join(parts), line, last=True)


def _cut(data: bytes) -> int:
    for mark in (b"\n", b"\r", b" "):
        place = data.rfind(mark)
        if place > 0:
            return place + 1
    return len(data)


def _block(data: bytes, line: int, *, last: bool) -> Block:
    newlines = data.count(b"\n")
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    return Block(data, line, newlines, last)
