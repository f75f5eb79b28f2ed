"""What a line of output always says: its numbers, addresses, paths and bars masked."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Addresses, paths, then any word that begins with a digit or is a long hexadecimal one, numbers.
_VARIABLE = re.compile(
    r"0x[0-9a-fA-F]+|/[^\s'\"]+|\b(?=[0-9a-f]{0,63}[0-9])[0-9a-f]{8,64}\b|[0-9]+(?:[.,:eE+_-]+[0-9]+)*%?"
)
_BAR = re.compile("[\u2500-\u259f]+|[#=>.*-]{3,}")


def line_template(line: str) -> str:
    """`line` with all that differs from run to run as ``#``; empty where nothing is left."""
    text = _VARIABLE.sub("#", _ESCAPES.sub("", line))
    text = " ".join(_BAR.sub("-", text).split())
    return text if any(character.isalpha() for character in text) else ""
