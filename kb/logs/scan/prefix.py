"""Who printed a line: rank and host from the line's front or from the file's name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MAX_RANK = 1_000_000  # a larger number is a job or process id
FRONT_CHARS = 300  # launchers, time stamps and loggers together stay below this

# Most certain first: the program's own word, then the launcher's, then the loggers'. Each with
# pieces of which one stands in any match: looking for those is ten times as fast.
_RANK = (
    (("ank",), re.compile(r"\[(?:PG [^\]]{0,120}?)?[Rr]ank ?([0-9]{1,6})\]")),
    (
        ("[default", "[trainer", "[worker", "[actor"),
        re.compile(r"\[(?:default|trainer|worker|actor)_?([0-9]{1,6})(?:\|[0-9]+)?\] ?:"),
    ),
    (("]:",), re.compile(r"^\s{0,8}\[([0-9]{1,5})\]:")),  # torchrun of a role without a name
    ((": ",), re.compile(r"^\s{0,8}([0-9]{1,5}): ")),  # srun --label
    (
        ("]<std",),
        re.compile(r"\[[0-9]+,([0-9]{1,6})\]<std(?:out|err|diag)>"),
    ),  # mpirun --tag-output
    (
        ("ank", "RANK"),
        re.compile(
            r"\b(?:GLOBAL_RANK|global[_ ]rank|RANK|[Rr]ank)[\"']?[ =:]{0,3}"
            r"([0-9]{1,6})(?![0-9A-Za-z_])"
        ),
    ),
    ((" r", "[r"), re.compile(r"(?:^|[\[ ])r([0-9]{1,5})(?:\]| \|)")),  # a program's own short form
    (("TP",), re.compile(r"\[(?:[^\]]{0,60} )?TP([0-9]{1,4})(?: [A-Z]{2}[0-9]+)*\]")),  # SGLang
    (("Worker_TP",), re.compile(r"\((?:Vllm)?Worker_TP([0-9]{1,4})[_ ]")),
    (
        ("[pod/",),
        re.compile(r"\[pod/[\w.-]*?-([0-9]{1,5})(?:/[\w.-]+)?\]"),
    ),  # kubectl logs --prefix
)
# The program's own word: torch puts it in front of an uncaught exception and of its C++ part.
_PROGRAM_RANK = re.compile(r"\[rank ?([0-9]{1,6})\]:")
# What names nobody: marks of a quotation, a container's name, times, a stream's name, line numbers.
_DRESS = r"""
        (?:>\ ?){1,3}
      | [A-Z][a-z]{2}\ {1,2}[0-9]{1,2}\ [0-9][0-9]:[0-9][0-9]:[0-9][0-9](?=\s)
        (?:\ [\w.-]{1,64}\ [\w./-]{1,40}\[[0-9]{1,8}\]:(?=\s))?
      | \w[\w.-]{1,60}\ {1,20}\|(?=\s)
      | 20[0-9][0-9][-/][0-9][0-9][-/][0-9][0-9][T\ _-][0-9:.,]{8,18}Z?(?=\s)
      | \[20[0-9][0-9][-/][0-9][0-9][-/][0-9][0-9][T\ _-][0-9:.,]{8,18}Z?\](?=\s)
      | \[?[0-9]{1,2}:[0-9][0-9]:[0-9][0-9](?:[.,][0-9]{1,9})?\]?(?=\s)
      | std(?:err|out):(?=\s)
      | [A-Za-z][\w.-]{0,62}:(?=\ \[(?:default|trainer|worker|actor|rank)?[_\ ]?[0-9])
      | [0-9]{1,7}(?:\t|(?=\ {2}))
"""
_DRESSED = re.compile(rf"(?:\s{{0,8}}(?:{_DRESS})\ ?){{1,4}}", re.VERBOSE)
# What launchers, torch and log collectors put in front of each line of a process, and times.
_FRONT = re.compile(
    rf"""(?:\s{{0,8}}(?:
        \[(?:default|trainer|worker|actor)_?[0-9]{{1,6}}(?:\|[0-9]{{1,6}})?\]\ ?:
      | \[[Rr]ank\ ?[0-9]{{1,6}}\]:
      | \[[0-9]{{1,6}}\]:
      | [0-9]{{1,5}}:(?=\ )
      | \[[0-9]+,[0-9]{{1,6}}\]<std(?:out|err|diag)>:
      | \(\w[\w\ ]{{0,60}}\ pid=[^)\n]{{1,80}}\)
      | \[pod/[^\]\s]{{1,160}}\]
      | {_DRESS}
    )\ ?){{1,6}}""",
    re.VERBOSE,
)
_CLOCK = re.compile(
    r"20[0-9][0-9][-/][0-9][0-9][-/][0-9][0-9][T _-][0-9:.,]{8,18}Z?"
    r"|[A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
    r"|[0-9]{1,2}:[0-9][0-9]:[0-9][0-9](?:[.,][0-9]{1,9})?|(?<!\S)[0-9]{1,7}(?=\s|$)"
)
_RANK_BYTES = re.compile(rb"\[(?:PG [^\]]{0,120}?)?[Rr]ank ?([0-9]{1,6})\]|\[default([0-9]{1,6})\]")
_NCCL_FRONT = re.compile(
    r"^(?:\[[^\]]{0,60}\]:?\s?|[A-Za-z][\w.-]{1,62}: )?"
    r"([A-Za-z][\w.-]{2,80}):[0-9]+:[0-9]+ \[(?P<device>[0-9]+)\]"
)
_KERNEL_FRONT = re.compile(
    r"^(?:(?:[A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9:]{8}"
    r"|20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.,+Z-]{8,24}) )?"
    r"([A-Za-z][\w.-]{0,63}) kernel: "
)
_HOST = (
    ("ip=", re.compile(r"\bip=([0-9a-fA-F.:]{7,45})\)")),  # Ray
    (" [", _NCCL_FRONT),
    (" >> ", re.compile(r"^[0-9-]{10}[T ][0-9:.]+Z? ([\w.-]{2,80}) >> ")),
    ("[pod/", re.compile(r"\[pod/([\w.-]{2,80})")),
    (
        "]:[",
        re.compile(
            r"\[rank ?[0-9]{1,6}\]:\[(?!step|iter|epoch)([a-z][a-z-]{0,40}[0-9][\w.-]{0,60})\]"
        ),
    ),
    (" kernel: ", _KERNEL_FRONT),
)
_TABLE_HOST = re.compile(rb"[^\n]{0,160}?\bhost {2,8}: (\S{1,100})")
_TABLE_ROWS = 2  # above the rank's row in which torchrun's table has its host

_FILE_RANK = re.compile(
    r"(?:^|[^a-z])(?:global_?)?rank[_=.-]?([0-9]{1,6})(?=[^0-9]|$)", re.IGNORECASE
)
_ELASTIC = re.compile(r"attempt_[0-9]+/([0-9]{1,6})/(?:stderr|stdout)", re.IGNORECASE)
_POD_NUMBER = re.compile(r".{0,80}\[pod/[\w.-]{0,80}-([0-9]{1,5})(?:/[\w.-]{1,80})?\]")
_NUMBER = re.compile(r"[0-9]{1,6}")


class Origin(NamedTuple):
    """Rank and host a line names; None and empty where it names none."""

    rank: int | None
    host: str


def origin(front: str) -> Origin:
    """Read rank and host off the front of a line."""
    dress = _DRESSED.match(front)
    if dress is None:
        return Origin(_first_rank(front[-FRONT_CHARS:]), host(front))
    own = front[dress.end() :]
    return Origin(_first_rank(own[-FRONT_CHARS:]), host(front) or host(own))


def pod_number(line: str) -> int | None:
    """The number at the end of the pod's name in a line's front: its rank, if it has but one."""
    match = _POD_NUMBER.match(line) if "[pod/" in line else None
    return int(match[1]) if match else None


def program_rank(front: str) -> int | None:
    """The rank in the job that torch itself puts in front of a line, as ``[rank3]:``.

    A rank in a line's words may be the rank in one process group.
    """
    match = _last(_PROGRAM_RANK, front[-FRONT_CHARS:]) if "[rank" in front else None
    return int(match[1]) if match else None


def split_front(line: str) -> tuple[str, str]:
    """Who printed a line, as its tags in front, times left out, and the rest of the line."""
    match = _FRONT.match(line)
    if match is None:
        return "", line
    return _CLOCK.sub("", match[0]).strip(), line[match.end() :]


def _first_rank(front: str) -> int | None:
    for pieces, expression in _RANK:  # their six digits stay below MAX_RANK
        for piece in pieces:
            if piece in front:
                if match := expression.search(front):
                    return int(match[1])
                break
    return None


def host(front: str) -> str:
    """The host a line's front names, or nothing."""
    front = front[:FRONT_CHARS]
    for piece, expression in _HOST:
        if piece in front and (match := expression.search(front)):
            return match[1]
    return ""


def device(front: str) -> str:
    """The number of the device that NCCL names in front of a line, or nothing."""
    if " NCCL " not in front:
        return ""
    dress = _DRESSED.match(front)
    own = front[dress.end() :] if dress else front
    match = _NCCL_FRONT.match(front[:FRONT_CHARS]) or _NCCL_FRONT.match(own[:FRONT_CHARS])
    return match["device"] if match else ""


def table_host(data: bytes, start: int) -> str:
    """The host in torchrun's table of failures, above the rank's row, which begins at `start`."""
    for _ in range(_TABLE_ROWS):
        end, start = start - 1, data.rfind(b"\n", 0, max(0, start - 1)) + 1
        if end > start and (
            match := _TABLE_HOST.match(data[start : min(end, start + FRONT_CHARS)])
        ):
            return match[1].decode("utf-8", "replace")
    return ""


def quick_rank(line: bytes) -> bytes:
    """The rank as printed, for telling flood lines apart without reading them whole."""
    match = _RANK_BYTES.search(line)
    return (match[1] or match[2]) if match else b""


def file_ranks(paths: Sequence[Path]) -> dict[Path, int]:
    """Ranks in the names of files: ``rank_3.log``, ``attempt_0/3/stderr.log``, ``job_3.out``.

    A bare number counts only where the files of one folder differ in nothing but that number and
    the numbers run from 0 or 1 without large gaps.
    """
    ranks: dict[Path, int] = {}
    unsure: dict[tuple[str, ...], list[tuple[int, Path]]] = defaultdict(list)
    for path in paths:
        match = _ELASTIC.search(path.as_posix()) or _last(_FILE_RANK, path.name)
        if match is None:
            match = _last(_FILE_RANK, path.parent.name)
        if match is not None:
            ranks[path] = int(match[1])
            continue
        for match in _NUMBER.finditer(path.name):
            shape = (str(path.parent), path.name[: match.start()], path.name[match.end() :])
            unsure[shape].append((int(match[0]), path))
    for members in unsure.values():
        numbers = sorted({number for number, _ in members})
        if len(members) > 1 and numbers[0] <= 1 and numbers[-1] < 2 * len(numbers) + 1:
            for number, path in members:
                ranks.setdefault(path, number)
    return ranks


def _last(expression: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for match in expression.finditer(text):  # noqa: B007 - the last one counts
        pass
    return match
