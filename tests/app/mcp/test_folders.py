"""Which files tools may read: nothing outside the allowed folders, however it is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.mcp.folders import AllowedFolders, roots_of
from kb.errors import InputError


@pytest.fixture
def allowed(tmp_path: Path) -> AllowedFolders:
    """A folder `logs` is allowed; `secret.txt` lies beside it, `logs-old` has a like name."""
    for name in ("logs/run", "logs-old"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "logs-old" / "a.log").write_text("old")
    (tmp_path / "logs" / "run" / "rank0.log").write_text("log")
    return AllowedFolders([tmp_path / "logs"])


def test_files_and_folders_below_it_are_read_by_either_name(
    allowed: AllowedFolders, tmp_path: Path
) -> None:
    """A relative name is looked for in the allowed folder, not where the server was started."""
    run = tmp_path / "logs" / "run"
    assert allowed.paths(["run/rank0.log", "run", str(run)]) == [run / "rank0.log", run, run]


@pytest.mark.parametrize(
    "name",
    ["../secret.txt", "/etc/passwd", "run/../../secret.txt", "~/x", "../logs-old/a.log", "a\0b"],
)
def test_a_name_that_leads_outside_is_refused(allowed: AllowedFolders, name: str) -> None:
    """Whether it is there or not is not told."""
    with pytest.raises(InputError, match="not below a folder"):
        allowed.paths([name])


def test_links_lead_nowhere_else(allowed: AllowedFolders, tmp_path: Path) -> None:
    """Neither one that is named nor one in a folder that is named."""
    run = tmp_path / "logs" / "run"
    (run / "link.log").symlink_to(tmp_path / "secret.txt")
    for name in ("run/link.log", "run"):
        with pytest.raises(InputError, match="not below a folder"):
            allowed.paths([name])
    (run / "link.log").unlink()
    (run / "other").symlink_to(tmp_path / "logs-old")
    with pytest.raises(InputError, match="not below a folder"):
        allowed.paths(["run/other"])


def test_what_is_no_file_or_is_missing_is_told(allowed: AllowedFolders, tmp_path: Path) -> None:
    """A pipe would be waited for without end."""
    os.mkfifo(tmp_path / "logs" / "pipe")
    with pytest.raises(InputError, match="is no file"):
        allowed.paths(["pipe"])
    with pytest.raises(InputError, match="does not exist"):
        allowed.paths(["run/rank9.log"])


def test_without_a_folder_nothing_is_read(tmp_path: Path) -> None:
    """The message says how to allow one; text needs none."""
    assert AllowedFolders().paths([]) == []
    with pytest.raises(InputError, match="--root FOLDER"):
        AllowedFolders().paths(["/tmp/a.log"])
    with pytest.raises(InputError, match="is no folder"):
        AllowedFolders([tmp_path / "nothing"])


def test_the_setting_names_several() -> None:
    """Separated as in PATH; a home folder is meant by its sign."""
    assert roots_of("") == ()
    assert roots_of("/a:~/b") == (Path("/a"), Path("~/b").expanduser())
