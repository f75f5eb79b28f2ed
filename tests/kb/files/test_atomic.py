"""Written aside and renamed: all of it or nothing, with the rights asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kb.files.atomic import publish_folder, write_file


@pytest.mark.parametrize("durable", [False, True], ids=["as it comes", "durable"])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, durable: bool) -> None:
    """A reader that has the old file open goes on reading it; nothing is left beside the new."""
    path = tmp_path / "file"
    write_file(path, b"old", durable=durable)
    with path.open("rb") as reader:
        write_file(path, b"new", durable=durable)
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mode", "rights"), [(0o600, 0o600), (0o666, 0o640)])
def test_a_file_has_the_rights_asked_for(tmp_path: Path, mode: int, rights: int) -> None:
    """Less the umask; never more for a moment."""
    umask = os.umask(0o027)
    try:
        write_file(tmp_path / "file", b"", mode=mode)
    finally:
        os.umask(umask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == rights


def test_what_cannot_be_put_in_place_leaves_nothing(tmp_path: Path) -> None:
    """A folder stands in the way: it stays, and what was written aside is gone."""
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "taken", b"x")
    assert list(tmp_path.iterdir()) == [tmp_path / "taken"]


def test_a_folder_is_published_with_all_in_it(tmp_path: Path) -> None:
    """Under its final name it has the files it was built with."""
    (tmp_path / "built" / "in").mkdir(parents=True)
    (tmp_path / "built" / "in" / "file").write_bytes(b"x")
    publish_folder(tmp_path / "built", tmp_path / "final")
    assert (tmp_path / "final" / "in" / "file").read_bytes() == b"x"
    assert not (tmp_path / "built").exists()
