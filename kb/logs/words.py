"""The lines of a paste that may hold a person's words, mixed as they are with commands and names.

`kb.logs.prose` keeps only sentences that are surely a person's, for showing and for searching.
People also write "zero3 hangs", quote an error inside a sentence or paste a launch command that
says how many nodes there are. Cues are read from all of that, so only lines that are plainly
machine output are left out here: those a program stamps with a time, a rank, a frame or a place.
Where a program explains its error ("Possible Cause: ...") it names causes too; nobody saw those.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

WORDS_CHARS = 8000  # a report is shorter; a log file's head says little after that
LINE_CHARS = 600  # longer lines are dumps of settings or data
_MACHINE = re.compile(
    r"""^\s{0,200}(?:
      \[?\s?(?:19|20)\d\d[-/]\d\d[-/T\d]           # a date, bracketed or not
    | \[?\d{1,2}:\d\d:\d\d                          # a clock
    | \[(?:rank\s?\d|[EWIF]\s?\d{3,4}\s|[EWIDF]\ \w+\.(?:cpp|h|cc|py):\d|default\d|\d+\]:)
    | \([\w ]{1,80}pid=                             # (Worker pid=
    | (?:frame\ \#\d|\#\d+\ |File\ ".{1,300}",\ line|Traceback\ \(most)
    | [\w.-]{1,100}:\d+:\d+\ \[\d+\]\ NCCL            # host:pid:tid [0] NCCL
    | \[[\w.-]{1,60}\.(?:py|cpp|cc|h):\d+\]          # [core.py:710]
    | (?:INFO|DEBUG|WARNING|ERROR|CRITICAL)(?:[\s:]\s?\d|:[\w.]{1,120}:)
    | [-=*+~_|^\s]{3,}$                              # a rule, the marks below a traceback's code
    | [IWEF]\d{4}\s\d\d:\d\d:\d\d                     # glog: W1120 11:50:16
    | (?:time|host|rank|exitcode|error_file|traceback)\s{1,8}:\s  # torchrun's table of failures
    | [\w.]{1,80}\.ChildFailedError:\s*$
    | (?=[^%]{0,83}%).{0,80}\d{1,3}%\s?\|           # a progress bar
    )""",
    re.VERBOSE,
)


def words(text: str) -> str:
    """The lines of `text` that are not plainly machine output, joined, of bounded length."""
    return numbered(text)[0]


def numbered(
    text: str, explanations: Sequence[re.Pattern[str]] = ()
) -> tuple[str, tuple[int, ...]]:
    """The words of `text` and the number of each of their lines, counted from 1 by line feeds.

    What stands behind one of `explanations` on its line is left out.
    """
    kept: list[str] = []
    numbers: list[int] = []
    size = 0
    for number, whole in enumerate(text.split("\n"), start=1):
        for line in whole.splitlines():
            if not line.strip() or _MACHINE.match(line[:400]):
                continue
            own = _own(line[:LINE_CHARS], explanations).strip()
            if not own:
                continue
            kept.append(own)
            numbers.append(number)
            size += len(kept[-1]) + 1
        if size >= WORDS_CHARS:
            break
    cut = "\n".join(kept)[:WORDS_CHARS]
    return cut, tuple(numbers[: cut.count("\n") + 1])


def _own(line: str, explanations: Sequence[re.Pattern[str]]) -> str:
    """What stands on the line before a program explains its error."""
    found = [match.start() for each in explanations if (match := each.search(line))]
    return line[: min(found)] if found else line
