"""What kind of file system a path lies on; a database shared over a network is refused."""

from __future__ import annotations

from pathlib import Path

from kb.errors import StoreError

MOUNTS = Path("/proc/self/mountinfo")
# Shared by machines: the write-ahead log needs memory that all who open the file share, and locks
# that hold: https://www.sqlite.org/wal.html#overview, https://www.sqlite.org/faq.html#q5
SHARED_FILE_SYSTEMS = frozenset(
    {
        *("afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "ocfs2"),
        *("smb3", "smbfs", "wekafs"),
        *("fuse.ceph", "fuse.glusterfs", "fuse.juicefs", "fuse.s3fs", "fuse.sshfs"),
    }
)
# Sandboxes and virtual machines have their own disk as one of these: slow, mostly sound.
NETWORK_FILE_SYSTEMS = SHARED_FILE_SYSTEMS | {"9p"}


def check_local(folder: Path) -> None:
    """Refuse a folder for the database that other machines reach too.

    Raises:
        StoreError: it lies on a network file system.
    """
    kind = file_system_of(folder)
    if kind in SHARED_FILE_SYSTEMS:
        raise StoreError(
            f"{folder} lies on {kind}, a network file system, where the database can be damaged",
            todo="set TIMEOUT_KB_HOME to a local disk; to share it let one machine run "
            "`timeout-kb serve`",
            reason="store_network",
            values={"path": str(folder), "kind": kind},
        )


def file_system_of(path: Path) -> str:
    """The type of the file system of `path`, or where it would be made; empty where unknown."""
    try:
        mounts = MOUNTS.read_text("utf-8", "replace")
    except OSError:  # not Linux
        return ""
    return file_system(existing(path).resolve(), mounts)


def file_system(path: Path, mounts: str) -> str:
    """The type of the file system `path` lies on, empty where the table does not tell.

    Format of the table: https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
    """
    best = (0, "")
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        columns, kinds = fields.split(" "), rest.split(" ")
        if len(columns) > 4 and kinds[0]:
            point = columns[4].replace("\\040", " ")
            if path.is_relative_to(point) and len(point) >= best[0]:
                best = (len(point), kinds[0])
    return best[1]


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    return next((one for one in (path, *path.parents) if one.exists()), Path("/"))
