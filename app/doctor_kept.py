"""What `timeout-kb doctor` says of what is kept and of its backups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.doctor import Doctor, HealthFinding
    from kb.store.quota import KeptSize

MIB = 1024 * 1024
NEARLY_FULL = 0.9  # of what may be kept


def check_kept(doctor: Doctor) -> Iterator[HealthFinding]:
    """How much is kept of answers, conversations and captures, and how much may be."""
    from app.capture.archive import KEPT, SUFFIX
    from kb.store import Store
    from kb.store.database import DATABASE
    from kb.store.quota import ALL_BYTES

    path = doctor.settings.home / DATABASE
    sizes: tuple[KeptSize, ...] = ()
    if doctor.settings.shared_store or path.exists():
        store = Store.of(doctor.settings, keep_copy=False)
        try:
            sizes = store.records.kept_sizes()
        finally:
            store.close()
    captures = [item.stat().st_size for item in (path.parent / "captures").glob(f"*{SUFFIX}")]
    counts = {size.kind: size.count for size in sizes}
    used = sum(size.bytes for size in sizes)
    full = used > NEARLY_FULL * ALL_BYTES
    yield doctor.finding(
        "kept",
        "warn" if full else "ok",
        "kept_nearly_full" if full else "kept",
        diagnoses=counts.get("diagnoses", 0),
        conversations=counts.get("conversations", 0),
        used=mib(used),
        limit=mib(ALL_BYTES),
        captures=len(captures),
        most=KEPT,
        size=mib(sum(captures)),
    )


def check_backups(doctor: Doctor) -> Iterator[HealthFinding]:
    """When the state folder was last backed up."""
    from kb.store.backup import BACKUPS, backups
    from kb.store.database import DATABASE

    if doctor.settings.shared_store:
        from kb.store.postgres import printed_address

        label = "backup_server"
        yield doctor.finding("backups", "skip", label, path=printed_address(doctor.settings.store))
    elif not (doctor.settings.home / DATABASE).exists():
        yield doctor.finding("backups", "ok", "not_built")
    elif latest := next(backups(doctor.settings.home / BACKUPS), None):
        manifest, size = latest.manifest, mib(latest.size)
        values = {"day": manifest.made_at, "path": latest.folder, "size": size}
        yield doctor.finding("backups", "ok", "backup", entries=manifest.entries, **values)
    else:
        yield doctor.finding("backups", "skip", "no_backup")


def mib(size: int) -> str:
    """Bytes as people read them."""
    return f"{size / MIB:.1f} MiB"
