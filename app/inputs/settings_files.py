"""Files with settings that people hand in: scripts, configurations, environments."""

from __future__ import annotations

from pathlib import Path

from kb.errors import InputError
from kb.files.paths import legible, not_readable

MAX_BYTES = 16 * 1024 * 1024  # settings and scripts are small; a log goes to `diagnose`


def read_settings_file(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: it cannot be read, or is larger than `MAX_BYTES`.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise not_readable(path, error, todo="check the path and rights") from error
    return settings_text(data, path)


def settings_text(data: bytes, path: Path) -> str:
    """What was read of `path` as text.

    Raises:
        InputError: it is larger than `MAX_BYTES`.
    """
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{path} is larger than {MAX_BYTES >> 20} MiB",
            todo="for a log use: timeout-kb diagnose",
            reason="large_settings",
            values={"name": legible(path.name), "size": str(MAX_BYTES >> 20)},
        )
    return data.decode("utf-8", "replace")
