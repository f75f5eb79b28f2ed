"""A log that was pasted into a field of one line: browsers drop the line breaks there."""

from __future__ import annotations

import re

from kb.text.line_kind import PRINTED, read_lines

# how lines of logs begin; behind a blank or a colon it is the middle of one
_START = re.compile(
    r"(?<=[^\s:])(?=\[rank ?[0-9]{1,6}\]:|\[[EWIF] ?[0-9]{3,4}[ :]|\[[EWIF] [A-Za-z]"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}|Traceback \(most recent call last\))"
    r'|(?<=\S)(?=  File "/)'
)


def log_in(text: str) -> str:
    """The log that a question is, its lines apart; empty where a person asks in words."""
    lines = "\n".join(part.rstrip() for part in _START.split(text))
    printed = any(line.kind in PRINTED for line in read_lines(lines))
    return lines if printed else ""
