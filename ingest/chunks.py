"""Sections to chunks, the units of retrieval: bounded, title in front, code kept whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kb.types.entries import Chunk, Section

MAX_CHUNK = 1200  # characters with the title; the embedding is a mean, longer texts blur it
MAX_TITLE = 200  # characters of the title in front of every chunk
MAX_CHUNKS = 400  # of one entry; a thread with more repeats itself
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_SENTENCE = re.compile(r"(?<=[。!?;])|(?<=[.!?;] )|(?<=\n)")


def chunks_of(entry_id: str, title: str, sections: Sequence[Section]) -> tuple[Chunk, ...]:
    """Chunks of an entry in the order of its sections; ids count from 0."""
    front = title[:MAX_TITLE]
    room = MAX_CHUNK - len(front) - 1
    chunks: list[Chunk] = []
    for section in sections:
        heading = section.title[:MAX_TITLE] if section.title not in (title, "") else ""
        for text in split_text(section.text, room - len(heading) - 1):
            if len(chunks) == MAX_CHUNKS:
                return tuple(chunks)
            chunks.append(
                Chunk(
                    id=f"{entry_id}#{len(chunks)}",
                    entry_id=entry_id,
                    role=section.role,
                    language=section.language,
                    text="\n".join(part for part in (front, heading, text) if part),
                )
            )
    return tuple(chunks)


def split_text(text: str, room: int) -> list[str]:
    """`text` in pieces of at most `room` characters, none empty, order and words kept.

    Pieces end at the end of a block (paragraph, list point, code), where that is too long at a
    line or sentence, and inside one only where there is no other place. A code block that must be
    split stands in fences in each of its pieces.
    """
    pieces: list[str] = []
    held = ""
    for block in _blocks(text):
        for part in [block] if len(block) <= room else list(_broken(block, room)):
            if held and len(held) + 1 + len(part) > room:
                pieces.append(held)
                held = part
            else:
                held = f"{held}\n{part}" if held else part
    if held.strip():
        pieces.append(held)
    return [piece.strip("\n") for piece in pieces if piece.strip()]


def _blocks(text: str) -> Iterator[str]:
    """Lines, with the lines of a code block together and with the line that leads into it."""
    held: list[str] = []
    inside = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            inside = not inside
            held.append(line)
            if not inside:
                yield "\n".join(held)
                held = []
        elif inside:
            held.append(line)
        elif line.strip():
            yield line
    if held:
        yield "\n".join(held)


def _broken(block: str, room: int) -> Iterator[str]:
    """A block that is too long, in pieces."""
    lines = block.split("\n")
    if _FENCE.match(lines[0]):
        body = lines[1:-1] if len(lines) > 1 and _FENCE.match(lines[-1]) else lines[1:]
        for piece in _packed((f"{line}\n" for line in body), room - 8):
            yield f"```\n{piece.rstrip()}\n```"
        return
    yield from (piece.strip() for piece in _packed(_SENTENCE.split(block), room))


def _packed(units: Iterator[str] | Sequence[str], room: int) -> Iterator[str]:
    """Units joined up to `room` characters; a longer unit is cut."""
    held = ""
    for unit in units:
        rest = unit
        while len(held) + len(rest) > room:
            if held:
                yield held
                held = ""
            else:
                yield rest[:room]
                rest = rest[room:]
        held += rest
    if held:
        yield held
