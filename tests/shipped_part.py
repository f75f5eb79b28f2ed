"""The shipped knowledge with a part of its cases: what is true of a few is seen faster."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path


def shipped_part(
    folder: Path, shipped: Path, cases: Iterable[Path], *, without: Collection[str] = ()
) -> Path:
    """Make `folder` the `shipped` data with `cases` alone; the caller adds parts in `without`."""
    folder.mkdir(exist_ok=True)
    for part in shipped.iterdir():
        if part.name not in {"cases", *without}:
            (folder / part.name).symlink_to(part)
    (folder / "cases").mkdir()
    for case in cases:
        (folder / "cases" / case.name).symlink_to(case)
    return folder


def shipped_cases(shipped: Path) -> list[Path]:
    """The files of all shipped cases, by name."""
    return sorted((shipped / "cases").glob("*.md"))
