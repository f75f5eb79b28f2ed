"""One process at a time, or a word about why not."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from kb.errors import StoreError
from kb.files.state_folder import locked


def test_nobody_else_comes_in(tmp_path: Path) -> None:
    """While the block runs nobody gets the lock; afterwards anybody does."""
    path = tmp_path / "new" / "lock"
    with locked(path), path.open("a") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with path.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files cannot be locked the error names the file and the next step."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(StoreError, match="lock: No locks available") as caught,
        locked(tmp_path / "lock"),
    ):
        pytest.fail("came in without the lock")
    assert "file system" in caught.value.todo


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file in the folder's place is a StoreError, too."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="lock"), locked(tmp_path / "file" / "lock"):
        pytest.fail("came in without the lock")


def test_an_error_inside_stays_what_it_is(tmp_path: Path) -> None:
    """What the block itself raises is no fault of the lock."""
    with pytest.raises(OSError, match="of the block"), locked(tmp_path / "lock"):
        raise OSError("of the block")


def test_a_shared_lock_keeps_out_who_wants_it_alone(tmp_path: Path) -> None:
    """Who does not wait is told in the block that there is no lock."""
    path = tmp_path / "lock"
    with (
        locked(path, shared=True) as first,
        locked(path, shared=True, wait=False) as second,
        locked(path, wait=False) as alone,
    ):
        assert (first, second, alone) == (True, True, False)
    with locked(path, wait=False) as alone, locked(path, shared=True, wait=False) as first:
        assert (alone, first) == (True, False)
