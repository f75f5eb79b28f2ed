"""Chunks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingest.chunks import MAX_CHUNK, chunks_of, split_text
from kb.types.entries import Section

LINE = st.text(alphabet="ab 。.!\n超时`", max_size=300)


@given(text=LINE, room=st.integers(20, 80))
def test_pieces_are_bounded_and_lose_nothing(text: str, room: int) -> None:
    """No piece is longer than the room, none is empty, and all characters are there in order."""
    plain = text.replace("`", "")
    pieces = split_text(plain, room)
    assert all(0 < len(piece) <= room and piece.strip() for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(plain.split())


@given(text=LINE)
def test_any_fences_are_bounded(text: str) -> None:
    """Code fences anywhere, closed or not, keep pieces bounded."""
    fenced = text.replace("`", "\n```\n")
    assert all(len(piece) <= 60 for piece in split_text(fenced, 60))


def test_code_is_not_split() -> None:
    """A code block that fits a chunk is whole in one; pieces end before it if need be."""
    code = "```\n" + "\n".join(f"line {number}" for number in range(6)) + "\n```"
    pieces = split_text(f"{'x' * 70}\n{code}\n{'y' * 70}", 80)
    assert pieces == ["x" * 70, code, "y" * 70]


def test_long_code_keeps_its_fences() -> None:
    """A code block that does not fit is split at lines, each piece in fences of its own."""
    code = "```\n" + "\n".join(f"line {number}" for number in range(8)) + "\n```"
    pieces = split_text(code, 40)
    assert all(piece.startswith("```\n") and piece.endswith("\n```") for piece in pieces)
    lines = [line for piece in pieces for line in piece.split("\n") if line != "```"]
    assert lines == [f"line {number}" for number in range(8)]


def test_chunks_carry_title_role_and_number() -> None:
    """Every chunk starts with the entry's title and its section's; ids count from 0."""
    sections = (
        Section(role="causes", title="Why", text="a" * 2000, language="en"),
        Section(role="fixes", title="", text="b", language="zh"),
    )
    chunks = chunks_of("writeup-1", "Title", sections)
    assert [chunk.id for chunk in chunks] == ["writeup-1#0", "writeup-1#1", "writeup-1#2"]
    assert [chunk.role for chunk in chunks] == ["causes", "causes", "fixes"]
    assert [chunk.text.split("\n")[:2] for chunk in chunks[:2]] == [["Title", "Why"]] * 2
    assert chunks[2].text == "Title\nb"
    assert max(len(chunk.text) for chunk in chunks) <= MAX_CHUNK
    assert sum(chunk.text.count("a") for chunk in chunks) == 2000
