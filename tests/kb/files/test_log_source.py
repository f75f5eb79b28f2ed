"""Inputs of every encoding and packing read alike; what is no log is refused with advice."""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kb.errors import InputError
from kb.files.log_source import from_bytes
from kb.files.zstd import compress
from kb.logs import LogReader
from kb.types.incident import LogReading, Unread

LOG = (
    "第 3 轮训练时卡住了，请问是什么原因\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=19, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for"
    " 600093 milliseconds before timing out.\n"
)
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030")
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": compress,
    "two gz members": lambda data: gzip.compress(data[:90]) + gzip.compress(data[90:]),
    "two zst frames": lambda data: compress(data[:90]) + compress(data[90:]),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_read_alike(reader: LogReader, encoding: str) -> None:
    """The same log in another encoding gives the same incident and the same words."""
    expected = reader.read_text(LOG)
    found = reader.read_stream([LOG.encode(encoding)])
    assert found.incident.seq == 19
    assert found.incident.facts == expected.incident.facts
    assert found.words == expected.words == LOG.split("\n", maxsplit=1)[0]


@pytest.mark.parametrize("packing", PACKINGS)
def test_packings_read_alike(reader: LogReader, packing: str, tmp_path: Path) -> None:
    """A compressed log, as bytes and as a file, reads like the plain one."""
    data = PACKINGS[packing](LOG.encode())
    path = tmp_path / "run.log.x"
    path.write_bytes(data)
    expected = reader.read_text(LOG).incident
    assert reader.read_stream([data]).incident == expected
    assert reader.read_paths([path]).incident == expected


@pytest.mark.parametrize("packing", ["gz", "xz", "zst"])
def test_cut_archive_gives_what_it_holds(reader: LogReader, packing: str) -> None:
    """An archive cut off by a crash still yields its beginning."""
    plain = LOG.encode() + os.urandom(2_000_000).hex().encode()
    data = PACKINGS[packing](plain)
    assert reader.read_stream([data[: len(data) // 2]]).incident.seq == 19


def test_lone_surrogates_pass(reader: LogReader) -> None:
    """Text with half a character is read, not refused."""
    assert reader.read_text("\ud800 " + LOG).incident.seq == 19


BINARIES = {
    "empty": b"",
    "blank": b" \n\t\n",
    "elf": b"\x7fELF\x02\x01" + bytes(500),
    "png": b"\x89PNG\r\n" + bytes(500),
    "zip": b"PK\x03\x04" + bytes(500),
    "pickle": b"\x80\x04\x95" + bytes(500),
    "random": bytes(range(256)) * 20,
    "damaged gz": b"\x1f\x8b\x08\x00" + b"nonsense" * 20,
    "damaged xz": b"\xfd7zXZ\x00" + b"nonsense" * 20,
    "damaged zst": b"\x28\xb5\x2f\xfd" + b"nonsense" * 20,
}


@pytest.mark.parametrize("data", BINARIES.values(), ids=BINARIES)
def test_what_is_no_log_is_refused(reader: LogReader, data: bytes, tmp_path: Path) -> None:
    """The refusal names the input and says what to pass instead."""
    path = tmp_path / "run.bin"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        reader.read_paths([path])
    assert "run.bin" in caught.value.what
    assert caught.value.todo


def test_paths_that_cannot_be_read(reader: LogReader, tmp_path: Path) -> None:
    """A missing path and an empty folder are named."""
    with pytest.raises(InputError, match="does not exist"):
        reader.read_paths([tmp_path / "none.log"])
    with pytest.raises(InputError, match="holds no files"):
        reader.read_paths([tmp_path])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_folder_without_rights(reader: LogReader, tmp_path: Path) -> None:
    """A folder one may not list is refused, not taken for an empty one."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with pytest.raises(InputError, match="closed"):
        reader.read_paths([closed])


def test_a_folder_passes_over_what_is_no_log(reader: LogReader, tmp_path: Path) -> None:
    """Binaries beside the logs do no harm, nor do they need to be told."""
    (tmp_path / "rank_1.log").write_text(LOG, encoding="utf-8")
    (tmp_path / "model.bin").write_bytes(BINARIES["elf"])
    incident = reader.read_paths([tmp_path]).incident
    assert (incident.ranks_reporting, incident.unread) == ((1,), ())


def test_a_named_file_that_is_no_log_is_told_and_the_rest_is_read(
    reader: LogReader, tmp_path: Path
) -> None:
    """Of several files the answer names those it does without; only when all are so it fails."""
    log, program, empty = (tmp_path / name for name in ("rank_1.log", "model.bin", "rank_2.log"))
    log.write_text(LOG, encoding="utf-8")
    program.write_bytes(BINARIES["elf"])
    empty.write_bytes(b"")
    incident = reader.read_paths([empty, log, program]).incident
    assert incident.ranks_reporting == (1,)
    assert incident.unread == (
        Unread(file="rank_2.log", reason="is empty", code="empty"),
        Unread(file="model.bin", reason="is a program, not a log", code="binary"),
    )
    with pytest.raises(InputError, match=r"rank_2\.log is empty"):
        reader.read_paths([empty, program])
    assert len(reader.read_paths([empty, program], alone=False).incident.unread) == 2


def test_names_that_are_no_text_can_be_written(reader: LogReader, tmp_path: Path) -> None:
    """File names are bytes; what is read off them goes into JSON and a database all the same."""
    named = [tmp_path / os.fsdecode(name) for name in (b"rank_1\xff.log", b"empty\xfe.log")]
    named[0].write_text(LOG, encoding="utf-8")
    named[1].write_bytes(b"")
    reading = reader.read_paths(named)
    assert {event.file for event in reading.events} == {"rank_1\ufffd.log"}
    assert [unread.file for unread in reading.incident.unread] == ["empty\ufffd.log"]
    assert msgspec.json.decode(msgspec.json.encode(reading), type=LogReading) == reading


def test_a_long_line_is_cut_not_refused(reader: LogReader) -> None:
    """A line of many megabytes without an end is read; quotes stay short."""
    work = LOG.split("\n")[1]
    data = b" ".join([b"x" * 5_000_000, work.encode(), b"y" * 5_000_000])
    reading = reader.read_stream([data])
    assert reading.incident.seq == 19
    assert max(len(event.text) for event in reading.events) <= 400
    assert reading.incident.lines == 1


def test_chunks_of_a_source_join_to_the_input() -> None:
    """Plain UTF-8 passes unchanged."""
    data = LOG.encode() * 9000
    assert b"".join(from_bytes(data).chunks()) == data
