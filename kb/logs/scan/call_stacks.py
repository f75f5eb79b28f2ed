"""The frames below a traceback or a thread's head, each printer's by itself.

Ranks print at once: between two frames of one rank stand lines of others. A line belongs to a stack
if the launcher's and the program's tags in its front are those of the stack's head.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kb.evidence.stacks import Frame, Stack, parse_stacks
from kb.logs.scan import prefix
from kb.text.redact import is_clean, redact

MAX_LINES = 600  # below a head in which its frames stand; 16 ranks print their tracebacks at once
MAX_BYTES = 64 * 1024
MAX_FRAMES = 40  # innermost of a traceback
CODE_CHARS = 200  # of a line of source code
BEFORE_BYTES = 2048  # in front of a thread's head stand its process and perhaps a heading
PATH_PARTS = 3  # of a file's path that are taken: enough to tell a library's
PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_FRAME = re.compile(r'^\s{1,60}File "([^"\n]{1,400})", line ([0-9]{1,7}), in ([^\n]{1,120})$')
_FRAME_LINE = re.compile(r"^(.{1,160}) \((.{1,400}):([0-9]{1,7})\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStack:
    """What stands below a head: `fields` of its event, and the rank where the text names one."""

    fields: dict[str, str]
    rank: int | None = None


def read_traceback(data: bytes, start: int, line: int) -> CallStack | None:
    """The frames of the traceback whose head is line `line` and starts at `start` of `data`.

    The fields are `frames`, innermost first; `code`, the quoted source lines of the program's own
    frames; and `until`, the number of the line with its exception, where it was printed.
    """
    lines = _lines(data, start, line)
    _, head = next(lines)
    who, _ = prefix.split_front(head)
    frames: list[Frame] = []
    code: list[str] = []
    until = 0
    for number, text in lines:
        printer, rest = prefix.split_front(text)
        if printer != who or not rest.strip():
            continue
        if not rest[0].isspace():
            until = number
            break
        if match := _FRAME.match(rest):
            frames.append(Frame(match[3].strip(), _short(match[1]), int(match[2])))
        elif frames and not frames[-1].of_library and rest.strip(" ~^"):
            code.append(rest.strip()[:CODE_CHARS])
    if not frames:
        return None
    fields = {"frames": _text(frames[::-1]), "code": _clean("\n".join(code[::-1]))}
    return CallStack(fields=fields | ({"until": str(until)} if until else {}))


def read_thread_stacks(data: bytes, heads: Collection[tuple[int, int]]) -> Mapping[int, CallStack]:
    """The main threads among the stacks of py-spy and faulthandler in `data`, by line.

    Args:
        data: whole lines.
        heads: where the threads' heads start in `data`, and their lines.
    """
    (first, line), last = min(heads), max(heads)[0]
    begin = data.rfind(b"\n", 0, max(0, first - BEFORE_BYTES)) + 1
    texts: dict[str, list[str]] = defaultdict(list)
    numbers: dict[str, list[int]] = defaultdict(list)
    number = line - data.count(b"\n", begin, first)
    for at, text in _lines(data[: last + MAX_BYTES], begin, number, limit=None):
        who, rest = prefix.split_front(text)
        texts[who].append(" ".join(rest.splitlines()))  # one line, whatever breaks it
        numbers[who].append(at)
    found: dict[int, CallStack] = {}
    for who, lines in texts.items():
        for stack in parse_stacks("\n".join(lines)):
            found[numbers[who][stack.line - 1]] = _of_thread(stack)
    return found


def _of_thread(stack: Stack) -> CallStack:
    frames = [replace(frame, file=_short(frame.file)) for frame in stack.frames]
    fields = {"frames": _text(frames)}
    return CallStack(fields=fields | ({"gil": "1"} if stack.holds_gil else {}), rank=stack.rank)


def frames_of(text: str) -> list[Frame]:
    """The frames of an event's `frames`."""
    matches = map(_FRAME_LINE.match, text.split("\n"))
    return [Frame(match[1], match[2], int(match[3])) for match in matches if match]


def _lines(
    data: bytes, start: int, line: int, *, limit: int | None = MAX_LINES
) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the lines from `start`, which is line `line`."""
    stop = len(data) if limit is None else min(len(data), start + MAX_BYTES)
    while start < stop and (limit is None or limit > 0):
        end = data.find(b"\n", start, stop)
        end = stop if end < 0 else end
        yield line, data[start:end].decode("utf-8", "replace")
        line += 1
        start = end + 1
        limit = None if limit is None else limit - 1


def _short(path: str) -> str:
    """The end of a whole path, with its package where it is one's; `/` stands for the rest."""
    if not path.startswith("/"):
        return path
    packages = max(path.rfind(f"/{folder}/") for folder in PACKAGE_FOLDERS)
    return path[packages:] if packages >= 0 else "/" + "/".join(path.split("/")[1:][-PATH_PARTS:])


def _text(frames: Sequence[Frame]) -> str:
    shown = [f"{f.function} ({f.file}:{f.source_line})" for f in frames[:MAX_FRAMES]]
    return _clean("\n".join(shown))


def _clean(text: str) -> str:
    return text if is_clean(text) else redact(text)[0]
