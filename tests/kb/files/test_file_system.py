"""The state folder lies on a disk of this machine, or the database is not opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.errors import StoreError
from kb.files import file_system
from kb.store import Store

MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:30 / /home rw - nfs4 filer:/home rw
31 22 0:31 / /home/me/local rw - xfs /dev/sdb rw
32 22 0:32 / /mnt/my\\040disk rw - fuse.sshfs me@host:/ rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/kb", "ext4"),
        ("/home/me/.local/share", "nfs4"),
        ("/home/me/local/kb", "xfs"),
        ("/homes/kb", "ext4"),
        ("/mnt/my disk/kb", "fuse.sshfs"),
    ],
)
def test_the_file_system_is_that_of_the_deepest_mount(path: str, kind: str) -> None:
    """By whole names of folders, blanks written as the system writes them."""
    assert file_system.file_system(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "cifs", "gpfs", "fuse.sshfs"])
def test_a_database_on_a_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Before anything is made there, with what to do; a folder reached by a link as well."""
    mounts, shared = tmp_path / "mountinfo", tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "link").symlink_to(shared)
    mounts.write_text(
        f"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / {shared.resolve()} rw - {kind} b rw\n"
    )
    monkeypatch.setattr(file_system, "MOUNTS", mounts)
    for home in (shared / "home", tmp_path / "link" / "home"):
        with pytest.raises(StoreError, match=kind) as refused:
            Store.open(home / "kb.sqlite3")
        assert "TIMEOUT_KB_HOME" in refused.value.todo
        assert refused.value.reason == "store_network"
    assert list(shared.iterdir()) == []
    Store.open(tmp_path / "local" / "kb.sqlite3").close()
