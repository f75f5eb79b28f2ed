"""Dumps that the flight recorder of a running job wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

CLOCK_S = 5.0  # a file server's clock may be this far behind


def new_dumps(
    folders: Sequence[Path], environ: Mapping[str, str], *, since_s: float
) -> tuple[Path, ...]:
    """Flight-recorder files written after `since_s` (epoch) in `folders` or as `environ` says.

    The variables name a prefix: rank 3 writes ``<prefix>3``. Older files are of another run.
    """
    paths = [path for folder in folders for path in _files(folder)]
    for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        if prefix := environ.get(name, ""):
            place = Path(prefix)
            paths += [path for path in _files(place.parent) if path.name.startswith(place.name)]
    fresh = {path for path in paths if path.stat().st_mtime >= since_s - CLOCK_S}
    return tuple(sorted(fresh))


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    try:
        return [path for path in folder.iterdir() if path.is_file()]
    except OSError:
        return []
