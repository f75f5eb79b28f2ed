"""Archives: what a capture holds is read as what it is, other tar files as their folder."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evidence import capture
from kb.evidence.capture import (
    CapturedHost,
    CaptureFile,
    CaptureManifest,
    archive_in_stream,
    manifest_in,
    read_capture,
    unpack,
    unpacked_archives,
    write_capture,
)

MANIFEST = CaptureManifest(
    schema=capture.SCHEMA,
    taken_at="2026-01-02T03:04:05+00:00",
    job="7",
    hosts=(CapturedHost(name="n1"),),
    files=(
        CaptureFile(name="n1/job.log", kind="log"),
        CaptureFile(name="n1/processes.txt", kind="context"),
        CaptureFile(name="n1/stacks/rank_0.txt", kind="evidence"),
    ),
)
CONTENTS = (b"step 1\n", b"rank 0 pid 7\n", b"Process 7: rank 0\n")


def tar_of(files: dict[str, bytes], *, link: str = "") -> bytes:
    """A tar archive, with a link to `link` where that is said."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo("link")
            member.type, member.linkname = tarfile.SYMTYPE, link
            tar.addfile(member)
    return packed.getvalue()


def test_a_capture_comes_back_as_it_was() -> None:
    """The manifest and every file, in its order."""
    assert read_capture(write_capture(MANIFEST, CONTENTS)) == (MANIFEST, CONTENTS)


def test_what_only_people_read_is_not_read(tmp_path: Path) -> None:
    """Of a capture logs and evidence take part; other paths stay as they are."""
    (tmp_path / "c.tar.zst").write_bytes(write_capture(MANIFEST, CONTENTS))
    (tmp_path / "other.log").write_text("step 2\n")
    with ExitStack() as stack:
        paths = unpacked_archives([tmp_path / "c.tar.zst", tmp_path / "other.log"], stack)
        assert [path.read_bytes() for path in paths] == [CONTENTS[0], CONTENTS[2], b"step 2\n"]
    assert [path.exists() for path in paths] == [False, False, True]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["tar", "tar.gz"])
def test_another_archive_is_the_folder_it_was_made_of(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """All of its files, under their names."""
    (tmp_path / "logs").write_bytes(pack(tar_of({"run/rank_0.log": b"a", "run/rank_1.log": b"b"})))
    with ExitStack() as stack:
        (folder,) = unpacked_archives([tmp_path / "logs"], stack)
        found = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.log")}
    assert found == {"run/rank_0.log": b"a", "run/rank_1.log": b"b"}


def test_names_stay_below_the_folder(tmp_path: Path) -> None:
    """Whatever an archive calls its files; links are not followed and not made."""
    names = ["../../outside.log", "/etc/passwd", "a/../../b.log", "..", ".hidden"]
    (tmp_path / "in").mkdir()
    data = tar_of(dict.fromkeys(names, b"x"), link="/etc/passwd")
    unpack([data], tmp_path / "in", name="evil.tar")
    written = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert all(path.is_relative_to(tmp_path / "in") for path in written)
    assert {path.name for path in written} >= {"outside.log", "passwd", "b.log", "hidden"}
    assert not (tmp_path / "in" / "link").exists()


@pytest.mark.parametrize(("name", "most"), [("MAX_UNPACKED", 3), ("MAX_FILES", 1)])
def test_an_archive_that_holds_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    """By its bytes and by its files, whatever its compressed size says."""
    monkeypatch.setattr(capture, name, most)
    with pytest.raises(InputError, match="holds more than") as refused:
        unpack([tar_of({"a": b"12", "b": b"34"})], tmp_path, name="big.tar")
    assert refused.value.reason == "too_large"


def test_a_stream_is_told_by_its_beginning() -> None:
    """Archives, compressed or not; the stream stays whole."""
    packed = write_capture(MANIFEST, (b"x" * 500_000, *CONTENTS[1:]))
    for data, is_one in ((packed, True), (tar_of({"a": b"b"}), True), (b"ustar\n" * 99, False)):
        archive, stream = archive_in_stream([data[:10], data[10:]])
        assert archive is is_one
        assert b"".join(stream) == data


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    """An archive without a manifest, or with one of another version."""
    with pytest.raises(InputError):
        read_capture(tar_of({"a.log": b"x"}))
    (tmp_path / "manifest.json").write_text('{"schema": "timeout-kb/capture/9"}')
    assert manifest_in(tmp_path) is None
