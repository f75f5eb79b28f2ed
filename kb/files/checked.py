"""Files of derived content with their checksum in front: damage is seen, whatever it makes."""

from __future__ import annotations

import zlib
from pathlib import Path

from kb.files.atomic import write_file

_DIGITS = 8  # of a CRC-32


def write_checked(path: Path, content: bytes) -> None:
    """Put a file of `content` at `path`, its checksum in a line in front.

    Raises:
        OSError: it cannot be written; what was there is as it was.
    """
    write_file(path, f"{zlib.crc32(content):0{_DIGITS}x}\n".encode() + content)


def read_checked(path: Path) -> bytes | None:
    """What `write_checked` wrote; None where there is nothing, or something damaged."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    content = whole[_DIGITS + 1 :]
    return content if whole[: _DIGITS + 1] == b"%08x\n" % zlib.crc32(content) else None
