"""Laying text out in terminal cells: wrapping, cutting and columns that know wide characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

MIN_WIDTH = 80  # a serial console; narrower windows wrap by themselves
MAX_WIDTH = 120  # longer lines are hard to follow
CUT = "…"
# Signs that may not start a line go with what stands before them; a wide sign is a word by itself.
_CLOSING = "，。；：、！？）】》」』”’…"
_NO_CELL = frozenset({"Mn", "Me", "Cf"})  # marks on the letter before, and signs of no shape
_WIDE = r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
_PIECES = re.compile(rf"\s+|{_WIDE}[{_CLOSING}]*|(?:(?!{_WIDE})\S)+[{_CLOSING}]*")


def cell_len(text: str) -> int:
    """Cells of a terminal that `text` takes: two of a wide character, none of a combining one."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.category(char) in _NO_CELL:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit_width(columns: int) -> int:
    """The width to lay out for in a window of `columns` cells."""
    return min(max(columns, MIN_WIDTH), MAX_WIDTH)


def wrap(text: str, width: int) -> list[str]:
    """Break `text` into lines of at most `width` cells, at spaces and between wide characters.

    A word wider than a line is broken where it must be. Always gives at least one line.
    """
    lines: list[str] = []
    line = ""
    for piece in _PIECES.findall(text):
        if cell_len(line) + cell_len(piece.rstrip()) <= width:
            line += piece
            continue
        if line.strip():
            lines.append(line.rstrip())
        line = piece.lstrip()
        while cell_len(line) > width:
            head = _fitting(line, width)
            lines.append(head)
            line = line[len(head) :]
    if line.strip() or not lines:
        lines.append(line.rstrip())
    return lines


def _fitting(text: str, width: int) -> str:
    """The longest start of `text` that fits into `width` cells; never empty."""
    used = 0
    for at, char in enumerate(text):
        used += cell_len(char)
        if used > width and at:
            return text[:at]
    return text


def hang(lead: str, text: str, width: int) -> list[str]:
    """`text` wrapped behind `lead`, further lines indented below its start."""
    indent = " " * cell_len(lead)
    room = max(width - len(indent), 1)
    first, *others = wrap(text, room)
    return [lead + first, *(indent + line for line in others)]


def cut(text: str, width: int) -> str:
    """`text` shortened to `width` cells, with an ellipsis where something is missing."""
    if cell_len(text) <= width:
        return text
    return _fitting(text, width - 1) + CUT


def pad(text: str, width: int) -> str:
    """`text` with spaces up to `width` cells; never cut."""
    return text + " " * (width - cell_len(text))


def columns(rows: Sequence[Sequence[str]], *, gap: int = 2) -> list[str]:
    """Rows as aligned lines, each column as wide as its widest cell."""
    if not rows:
        return []
    widths = [max(cell_len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        (" " * gap).join(pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def paragraphs(blocks: Iterable[Sequence[str]]) -> str:
    """Blocks of lines with one empty line between, empty blocks left out, ending in a newline."""
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
