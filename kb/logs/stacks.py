"""Python stacks of several ranks: which ranks stand alike and which one stands elsewhere.

Read are the texts of ``py-spy dump`` (with ``--native`` too) and of `faulthandler`, one or more
processes a file. Of every process the main thread counts: the one named so, or whose outermost
frame is a module's. Its place is found with data/stack_places.yaml; ranks with the same place and
the same own functions are one group. When most ranks wait in a collective, the few elsewhere are
where the job hangs.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from kb.knowledge import read_yaml
from kb.logs.reading import Reading
from kb.logs.reasons import reason
from kb.settings import shipped_data
from kb.types import Culprit, Fact, RankState

MAX_FRAMES = 400  # deeper stacks are recursion; the innermost frames decide
MAX_PROCESSES = 65_536

_PYSPY_PROCESS = re.compile(r"^Process (\d{1,18}): (.*)$")
_PYSPY_THREAD = re.compile(r'^Thread (\S+) \(([a-z+]+)\)(?:: "([^"]*)")?')
_PYSPY_FRAME = re.compile(r"^ {4}(\S.*?) \((.+?)(?::(\d+))?\)\s*$")
_FAULT_THREAD = re.compile(r"^(?:Current thread|Thread) (0x[0-9a-fA-F]+)(?: \[([^\]]*)\])? \(most")
_FAULT_FRAME = re.compile(r'^  File "([^"]+)", line (\d+) in (.+)$')
_RANK = re.compile(
    r"(?:--)?\b(?:global[_-]?|local[_-])?rank[ =:_#-]{1,3}(\d{1,6})\b", re.IGNORECASE
)
_FILE_RANK = re.compile(r"(?:rank|stack|pyspy|dump)[_.-]?(\d{1,6})(?:\D|$)|(?:^|\D)(\d{1,6})\.\w+$")
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib/python3|^torch/|^<|/torch/|\.so|\.cpp|\.c$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A row of data/stack_places.yaml."""

    id: str
    frame: str
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The main thread of one process, frames innermost first as ``function (file)``."""

    rank: int | None
    pid: int | None
    frames: tuple[str, ...]
    holds_gil: bool
    place: str
    waits: bool
    own: tuple[str, ...]
    line: int


@cache
def _places() -> tuple[tuple[Place, re.Pattern[str]], ...]:
    places = read_yaml(shipped_data() / "stack_places.yaml", tuple[Place, ...])
    return tuple((place, re.compile(place.frame)) for place in places)


def looks_like_stacks(text: str) -> bool:
    """Whether the text holds stacks of py-spy or faulthandler."""
    return any(
        _PYSPY_PROCESS.match(line) or _PYSPY_THREAD.match(line) or _FAULT_THREAD.match(line)
        for line in text.splitlines()[:200]
    )


def parse_stacks(text: str, *, name: str = "") -> tuple[Stack, ...]:
    """All processes of one file; the file's name gives the rank where the text does not."""
    stacks: list[Stack] = []
    hint: int | None = None
    for rank, pid, threads in _processes(text):
        hint = rank if rank is not None else (None if stacks else _file_rank(name))
        main = _main_thread(threads)
        if main is not None:
            stacks.append(_stack(hint, pid, main))
        if len(stacks) >= MAX_PROCESSES:
            break
    return tuple(stacks)


def read_stacks(stacks: Sequence[Stack]) -> Reading:
    """Compare the stacks of a job's ranks."""
    groups: dict[tuple[str, ...], list[Stack]] = defaultdict(list)
    for stack in stacks:
        groups[(stack.place, *stack.own)].append(stack)
    facts = [
        Fact(
            name="stack_group",
            line=group[0].line,
            quote=group[0].frames[0] if group[0].frames else "",
            detail=f"{len(group)} of {len(stacks)} in {_where(group[0])}: {_who(group)}",
        )
        for _, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    odd, usual = _odd_ones(stacks, list(groups.values()))
    culprits: list[Culprit] = []
    for stack in odd:
        facts += _odd_facts(stack)
        if stack.rank is not None:
            values = {
                "own": _where(stack),
                "usual": usual,
                "others": len(stacks) - len(odd),
            }
            culprits.append(
                Culprit(rank=stack.rank, reason=reason("stack_odd", values), line=stack.line)
            )
    if len(stacks) > 1 and all(stack.waits for stack in stacks):
        facts.append(Fact(name="stack_all_wait", detail=f"all {len(stacks)} wait for each other"))
    return Reading(
        kind="stacks",
        culprits=tuple(sorted(culprits, key=lambda culprit: culprit.rank)),
        facts=tuple(facts),
        ranks=tuple(
            RankState(rank=stack.rank, state=stack.place, line=stack.line)
            for stack in sorted(stacks, key=lambda stack: (stack.rank or 0, stack.line))
            if stack.rank is not None
        ),
    )


def _odd_ones(stacks: Sequence[Stack], groups: list[list[Stack]]) -> tuple[list[Stack], str]:
    """The few that stand elsewhere, and where the others stand.

    Waiting ranks in two different collectives are odd as well when one side is clearly smaller.
    """
    waiting = [stack for stack in stacks if stack.waits]
    odd = [stack for stack in stacks if not stack.waits]
    if odd and len(odd) < len(waiting):
        return odd, _where(waiting[0])
    if not odd and len(groups) > 1:
        groups = sorted(groups, key=lambda group: (-len(group), group[0].line))
        rest = [stack for group in groups[1:] for stack in group]
        if len(rest) * 2 < len(stacks):
            return rest, _where(groups[0][0])
    return [], ""


def _odd_facts(stack: Stack) -> Iterator[Fact]:
    who = f"rank {stack.rank}" if stack.rank is not None else f"process {stack.pid}"
    quote = stack.frames[0] if stack.frames else ""
    yield Fact(name="stack_odd", line=stack.line, quote=quote, detail=f"{who} in {_where(stack)}")
    if stack.place:
        yield Fact(name=f"stack_in_{stack.place}", line=stack.line, quote=quote, detail=who)
    if stack.holds_gil:
        yield Fact(name="stack_holds_gil", line=stack.line, quote=quote, detail=who)


def _where(stack: Stack) -> str:
    own = stack.own[0] if stack.own else (stack.frames[0] if stack.frames else "-")
    return f"{own} [{stack.place}]" if stack.place else own


def _who(group: Sequence[Stack]) -> str:
    named = sorted(stack.rank for stack in group if stack.rank is not None)
    if named:
        return "rank " + ", ".join(str(rank) for rank in named[:32])
    return "process " + ", ".join(str(stack.pid) for stack in group[:32])


@dataclass(slots=True)
class _Thread:
    name: str
    state: str
    line: int
    frames: list[str]


def _processes(text: str) -> Iterator[tuple[int | None, int | None, list[_Thread]]]:
    """Rank, process id and threads of each process; faulthandler's text is one process."""
    rank: int | None = None
    pid: int | None = None
    threads: list[_Thread] = []
    named_next: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        process = _PYSPY_PROCESS.match(line)
        if process:
            if threads:
                yield rank, pid, threads
            threads, pid = [], int(process[1])
            named = _RANK.search(process[2])
            rank = int(named[1]) if named else named_next
            named_next = None
            continue
        if not _add_line(threads, line, number):
            named = _RANK.search(line[:200])
            named_next = int(named[1]) if named else named_next
    if threads:
        yield (rank if rank is not None else named_next), pid, threads


def _add_line(threads: list[_Thread], line: str, number: int) -> bool:
    """Take a thread's head or frame; False when the line is neither."""
    thread = _PYSPY_THREAD.match(line)
    if thread:
        threads.append(_Thread(thread[3] or "", thread[2], number, []))
        return True
    thread = _FAULT_THREAD.match(line)
    if thread:
        threads.append(_Thread(thread[2] or "", "", number, []))
        return True
    frame = _PYSPY_FRAME.match(line)
    fault = _FAULT_FRAME.match(line)
    if not threads or not (frame or fault):
        return False
    if len(threads[-1].frames) < MAX_FRAMES:
        if frame:
            threads[-1].frames.append(f"{frame[1]} ({frame[2]})")
        elif fault:
            threads[-1].frames.append(f"{fault[3]} ({fault[1]})")
    return True


def _main_thread(threads: Sequence[_Thread]) -> _Thread | None:
    named = [thread for thread in threads if thread.name == "MainThread"]
    module = [thread for thread in threads if thread.frames and "<module>" in thread.frames[-1]]
    return next(iter([*named, *module, *threads]), None)


def _stack(rank: int | None, pid: int | None, thread: _Thread) -> Stack:
    place = _place_of(thread.frames)
    own = tuple(frame.split(" (", 1)[0] for frame in thread.frames if not _in_library(frame))
    return Stack(
        rank=rank,
        pid=pid,
        frames=tuple(thread.frames),
        holds_gil="gil" in thread.state,
        place=place.id if place else "",
        waits=place.waits if place else False,
        own=own,
        line=thread.line,
    )


def _in_library(frame: str) -> bool:
    """Whether a frame is torch's, another package's or Python's; py-spy shortens file names."""
    file = frame.rsplit(" (", 1)[-1].rstrip(")")
    module = file.split("/", 1)[0].removesuffix(".py")
    return bool(_LIBRARY.search(file)) or module in sys.stdlib_module_names


def _place_of(frames: Sequence[str]) -> Place | None:
    """The place of the innermost frame that has one."""
    for frame in frames:
        for place, expression in _places():
            if expression.search(frame):
                return place
    return None


def _file_rank(name: str) -> int | None:
    match = _FILE_RANK.search(name)
    return int(match[1] or match[2]) if match else None
