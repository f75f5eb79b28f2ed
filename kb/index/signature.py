"""What identifies a log line across runs: names, file and line, sizes; no ranks and times."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
    (?P<file>\w[\w.-]*\.(?:cpp|cc|cu|cuh|py|hpp|h|go|rs))(?P<line>:\d+)?
    | (?P<size>Numel(?:In|Out)=\d+)              # separates a barrier from a gradient
    | (?P<name>[A-Za-z_][A-Za-z0-9_]{2,})        # words, operations, settings, exceptions
    """,
    re.VERBOSE | re.ASCII,
)


def signature_tokens(text: str) -> list[str]:
    """Distinct identifying tokens in order of the text, lower case."""
    found: dict[str, None] = {}
    for match in _TOKEN.finditer(text):
        if match["file"]:
            found[match["file"].lower()] = None
            if match["line"]:
                found[match[0].lower()] = None
        else:
            found[match[0].lower()] = None
    return list(found)
