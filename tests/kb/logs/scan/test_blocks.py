"""Blocks hold whole lines and do not depend on how the stream was cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kb.logs.scan.blocks import blocks, count_newlines

LINES = st.lists(st.text("ab \r\x1b[31m", max_size=12), max_size=40)
SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=30)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """`data` in chunks of these sizes, over and over."""
    chunks: list[bytes] = []
    place = 0
    while place < len(data):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[place : place + size])
        place += size
    return chunks


@given(LINES, SIZES, st.integers(8, 64))
def test_chunk_borders_do_not_matter(lines: list[str], sizes: list[int], size: int) -> None:
    """However the stream arrives, the same blocks come out."""
    data = "\n".join(lines).encode()
    whole = [(b.data, b.first_line, b.last) for b in blocks([data], size)]
    parts = [(b.data, b.first_line, b.last) for b in blocks(cut(data, sizes), size)]
    assert parts == whole


@given(st.lists(st.text("ab", max_size=12), max_size=40), st.integers(8, 64))
def test_blocks_join_to_the_input(lines: list[str], size: int) -> None:
    """Nothing is lost or doubled, and each block starts on the line it says."""
    data = "\n".join(lines).encode()
    seen = b""
    for block in blocks([data], size):
        assert block.first_line == seen.count(b"\n") + 1
        seen += block.data
        assert block.newlines == block.data.count(b"\n")
    assert seen == data


@given(st.lists(st.text("ab", max_size=12), max_size=40), st.integers(16, 64))
def test_crlf_reads_like_lf(lines: list[str], size: int) -> None:
    """Windows line ends give the same lines."""
    unix = b"".join(b.data for b in blocks(["\n".join(lines).encode()], size))
    dos = b"".join(b.data for b in blocks(["\r\n".join(lines).encode()], size))
    assert dos.replace(b"\r", b"") == unix


def test_colours_are_removed() -> None:
    """Escape sequences go, the text and its line numbers stay."""
    data = b"\x1b[1;31mRuntimeError\x1b[0m: x\n\x1b]0;title\x07second\x1b[K\n"
    (block,) = blocks([data])
    assert block.data == b"RuntimeError: x\nsecond\n"
    assert block.newlines == 2


@given(st.binary(max_size=200), st.integers(1, 900))
def test_newlines_are_counted_alike(data: bytes, times: int) -> None:
    """Both ways of counting agree, on either side of the size where the way changes."""
    big = data * times
    assert count_newlines(big) == big.count(b"\n")
