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

from kb.evidence.limits import EvidenceLimits
from kb.evidence.reading import EvidenceReading, expression, reason
from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.types.incident import Culprit, Fact, RankState

HEADING_CHARS = 40  # of a line above stacks, such as "=== rank 3 (node-1) ==="
MAX_FRAMES = 400  # deeper stacks are recursion; the innermost frames decide
MAX_PROCESSES = 65_536
MAX_LINE = 2_000  # characters of a line that are looked at
MAX_FRAME = 300  # characters of a frame in which its place is looked for

_PYSPY_PROCESS = re.compile(r"^Process ([0-9]{1,18}): (.*)$")
_PYSPY_THREAD = re.compile(r'^Thread \S+ \((?P<state>[a-z+]+)\)(?:: "(?P<name>[^"]*)")?')
_PYSPY_FRAME = re.compile(  # the function ends at the first " (": no other is tried
    r"^ {3,6}(?P<function>\S[^ ]*+(?: (?!\()[^ ]*+)*+)"
    r" \((?P<file>.+?)(?::(?P<source_line>[0-9]{1,9}))?\)\s*$"
)
_FAULT_THREAD = re.compile(  # its state is empty: faulthandler does not print one
    r"^(?:Current thread|Thread) 0x[0-9a-fA-F]+(?: \[(?P<name>[^\]]*)\])?(?P<state>) \(most"
)
_FAULT_FRAME = re.compile(
    r'^ {1,4}File "(?P<file>[^"]+)", line (?P<source_line>[0-9]{1,9}) in (?P<function>.+)$'
)
_RANK = re.compile(
    r"(?:--)?\b(?:global[_-]?|local[_-])?rank[ =:_#-]{1,3}([0-9]{1,6})\b", re.IGNORECASE
)
_FILE_RANK = re.compile(
    r"(?:rank|stack|pyspy|dump)[_.-]?([0-9]{1,6})(?:[^0-9]|$)|(?:^|[^0-9])([0-9]{1,6})\.\w+$"
)
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib/python3|^torch/|^<|/torch/|\.so|\.cpp|\.c$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlace:
    """A row of data/stack_places.yaml."""

    id: str
    frame: re.Pattern[str]
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a Python stack; `source_line` is 0 where it was not printed."""

    function: str
    file: str
    source_line: int = 0

    def __str__(self) -> str:
        """As frames are quoted and searched: ``function (file)``."""
        return f"{self.function} ({self.file})"

    @property
    def of_library(self) -> bool:
        """Whether it is torch's, another package's or Python's; py-spy shortens file names."""
        module = self.file.split("/", 1)[0].removesuffix(".py")
        return bool(_LIBRARY.search(self.file)) or module in sys.stdlib_module_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The main thread of one process, frames innermost first.

    `place` is an id of data/stack_places.yaml or empty, `call` the function of the frame that has
    it, `own` are the program's own functions, `path` their source lines, as ``train.py:43``, and
    `spot` is the innermost of these.
    """

    rank: int | None
    pid: int | None
    frames: tuple[Frame, ...]
    holds_gil: bool
    place: str
    waits: bool
    own: tuple[str, ...]
    line: int
    call: str = ""
    spot: str = ""
    path: tuple[str, ...] = ()


@cache
def _places() -> tuple[StackPlace, ...]:
    path = shipped_data() / "stack_places.yaml"
    return read_yaml(path, tuple[StackPlace, ...], decode=expression)


def looks_like_stacks(text: str) -> bool:
    """Whether the text holds stacks of py-spy or faulthandler."""
    return any(
        _PYSPY_PROCESS.match(line) or _PYSPY_THREAD.match(line) or _FAULT_THREAD.match(line)
        for line in (whole[:MAX_LINE] for whole in text.splitlines()[:200])
    )


def parse_stacks(
    text: str, *, name: str = "", limits: EvidenceLimits | None = None
) -> tuple[Stack, ...]:
    """All processes of one file; the file's name gives the rank where the text does not.

    Raises:
        SlowInputError: it takes longer than the limits allow.
    """
    stacks: list[Stack] = []
    hint: int | None = None
    for rank, pid, threads in _processes(text, limits or EvidenceLimits()):
        hint = rank if rank is not None else (None if stacks else _file_rank(name))
        main = _main_thread(threads)
        if main is not None:
            stacks.append(_stack(hint, pid, main))
        if len(stacks) >= MAX_PROCESSES:
            break
    return tuple(stacks)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackGroup:
    """Processes that stand alike: where, whether they only wait there, and whether others do not.

    `call` is the function they are in, `spot` its source line (``train.py:43``), or empty.
    """

    ranks: tuple[int, ...]
    pids: tuple[int, ...]
    call: str
    spot: str
    place: str
    waits: bool
    odd: bool


def stack_groups(stacks: Sequence[Stack]) -> tuple[StackGroup, ...]:
    """Who stands where: the largest group first, those that stand elsewhere last."""
    groups = _grouped(stacks)
    odd, _ = _odd_ones(stacks, list(groups.values()))
    named = [_group_of(members, odd=members[0] in odd) for members in groups.values()]
    return tuple(
        sorted(named, key=lambda g: (g.odd, -len(g.ranks) - len(g.pids), g.ranks, g.pids, g.spot))
    )


def _group_of(members: Sequence[Stack], *, odd: bool) -> StackGroup:
    first = members[0]
    inner = first.frames[0] if first.frames else None
    return StackGroup(
        ranks=tuple(sorted(stack.rank for stack in members if stack.rank is not None)),
        pids=tuple(sorted(s.pid for s in members if s.rank is None and s.pid is not None)),
        call=first.call or next(iter(first.own), inner.function if inner else ""),
        spot=first.spot,
        place=first.place,
        waits=first.waits,
        odd=odd,
    )


def _grouped(stacks: Sequence[Stack]) -> dict[tuple[str, ...], list[Stack]]:
    groups: dict[tuple[str, ...], list[Stack]] = defaultdict(list)
    for stack in stacks:
        # Where a rank waits is one line of the program, reached over the same lines; where it works
        # is another at each look.
        path = stack.path if stack.waits else ()
        groups[(stack.place, *path, *stack.own)].append(stack)
    return groups


def read_stacks(stacks: Sequence[Stack]) -> EvidenceReading:
    """Compare the stacks of a job's ranks."""
    groups = _grouped(stacks)
    facts = [
        Fact(
            name="stack_group",
            line=group[0].line,
            quote=_innermost(group[0]),
            detail=f"{len(group)} of {len(stacks)} in {_where(group[0])}: {_who(group)}",
        )
        for _, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    odd, usual = _odd_ones(stacks, list(groups.values()))
    culprits: list[Culprit] = []
    for stack in odd:
        facts += _odd_facts(stack, usual)
        if stack.rank is not None:
            values = {
                "own": _apart(stack, usual),
                "usual": _apart(usual or stack, stack),
                "others": len(stacks) - len(odd),
            }
            culprits.append(
                Culprit(
                    rank=stack.rank,
                    reason=reason("stack_odd", values),
                    line=stack.line,
                    kind="stack_odd",
                )
            )
    if len(stacks) > 1 and all(stack.waits for stack in stacks):
        facts.append(Fact(name="stack_all_wait", detail=f"all {len(stacks)} wait for each other"))
    return EvidenceReading(
        kind="stacks",
        culprits=tuple(sorted(culprits, key=lambda culprit: culprit.rank)),
        facts=tuple(facts),
        ranks=tuple(
            RankState(rank=stack.rank, state=stack.place, line=stack.line)
            for stack in sorted(stacks, key=lambda stack: (stack.rank or 0, stack.line))
            if stack.rank is not None
        ),
    )


def _odd_ones(
    stacks: Sequence[Stack], groups: list[list[Stack]]
) -> tuple[list[Stack], Stack | None]:
    """The few that stand elsewhere, and one of the others.

    Waiting ranks in two different collectives are odd as well when one side is clearly smaller.
    """
    waiting = [stack for stack in stacks if stack.waits]
    odd = [stack for stack in stacks if not stack.waits]
    if odd and len(odd) <= len(waiting):  # of two ranks it is the one that does not wait
        return odd, waiting[0]
    if not odd and len(groups) > 1:
        groups = sorted(groups, key=lambda group: (-len(group), group[0].line))
        rest = [stack for group in groups[1:] for stack in group]
        if len(rest) * 2 < len(stacks):
            return rest, groups[0][0]
    return [], None


def _odd_facts(stack: Stack, usual: Stack | None) -> Iterator[Fact]:
    who = f"rank {stack.rank}" if stack.rank is not None else f"process {stack.pid}"
    quote, where = _innermost(stack), _apart(stack, usual)
    yield Fact(name="stack_odd", line=stack.line, quote=quote, detail=f"{who} in {where}")
    if stack.place:
        yield Fact(name=f"stack_in_{stack.place}", line=stack.line, quote=quote, detail=who)
    if stack.holds_gil:
        yield Fact(name="stack_holds_gil", line=stack.line, quote=quote, detail=who)


def _where(stack: Stack) -> str:
    """Where a rank stands: ``train → barrier() (train.py:43) [collective]``."""
    own = stack.own[0] if stack.own else ""
    where = own or _innermost(stack) or "-"
    if own and stack.call not in ("", own):
        where += f" → {stack.call}()"
    if stack.spot:
        where += f" ({stack.spot})"
    return f"{where} [{stack.place}]" if stack.place else where


def _apart(stack: Stack, other: Stack | None) -> str:
    """Where a rank stands; of two in one line, the line of the program that led there, too."""
    where = _where(stack)
    if other is None or stack.spot != other.spot:
        return where
    pairs = zip(reversed(stack.path), reversed(other.path), strict=False)
    led = next((mine for mine, theirs in pairs if mine != theirs), "")
    return f"{where} from {led}" if led else where


def _innermost(stack: Stack) -> str:
    return str(stack.frames[0]) if stack.frames else ""


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
    frames: list[Frame]


def _processes(
    text: str, limits: EvidenceLimits
) -> Iterator[tuple[int | None, int | None, list[_Thread]]]:
    """Rank, process id and threads of each process.

    faulthandler's text is one process, up to a heading that names a rank.
    """
    rank: int | None = None
    pid: int | None = None
    threads: list[_Thread] = []
    named_next: int | None = None
    for number, whole in limits.lines(text):
        line = whole[:MAX_LINE]
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
            if named and threads and len(line.strip()) <= HEADING_CHARS:
                yield (rank if rank is not None else named_next), pid, threads
                rank, pid, threads = int(named[1]), None, []
            named_next = int(named[1]) if named else named_next
    if threads:
        yield (rank if rank is not None else named_next), pid, threads


def _add_line(threads: list[_Thread], line: str, at: int) -> bool:
    """Take a thread's head or frame; False when the line is neither."""
    thread = _PYSPY_THREAD.match(line) or _FAULT_THREAD.match(line)
    if thread:
        threads.append(_Thread(thread["name"] or "", thread["state"], at, []))
        return True
    frame = _PYSPY_FRAME.match(line) or _FAULT_FRAME.match(line)
    if not threads or not frame:
        return False
    if len(threads[-1].frames) < MAX_FRAMES:
        number = int(frame["source_line"] or 0)
        threads[-1].frames.append(Frame(frame["function"], frame["file"], number))
    return True


def _main_thread(threads: Sequence[_Thread]) -> _Thread | None:
    named = [thread for thread in threads if thread.name == "MainThread"]
    module = [t for t in threads if t.frames and t.frames[-1].function == "<module>"]
    return next(iter([*named, *module, *threads]), None)


def _stack(rank: int | None, pid: int | None, thread: _Thread) -> Stack:
    return stack_of(rank, thread.frames, thread.line, pid=pid, holds_gil="gil" in thread.state)


def stack_of(
    rank: int | None,
    frames: Sequence[Frame],
    line: int,
    *,
    pid: int | None = None,
    holds_gil: bool = False,
) -> Stack:
    """The stack of a process's main thread, its place found; `frames` are innermost first."""
    found = _place_of(frames)
    place, call = found or (None, "")
    own = [frame for frame in frames if not frame.of_library]
    at = own[0] if own and own[0].source_line else None
    return Stack(
        rank=rank,
        pid=pid,
        frames=tuple(frames),
        holds_gil=holds_gil,
        place=place.id if place else "",
        waits=place.waits if place else False,
        own=tuple(frame.function for frame in own),
        line=line,
        call=call,
        spot=_source(at) if at else "",
        path=tuple(_source(frame) for frame in own if frame.source_line),
    )


def _source(frame: Frame) -> str:
    return f"{frame.file.rpartition('/')[2]}:{frame.source_line}"


def _place_of(frames: Sequence[Frame]) -> tuple[StackPlace, str] | None:
    """The place of the innermost frame that has one, and that frame's function."""
    for frame in frames:
        shown = str(frame)[:MAX_FRAME]
        for place in _places():
            if place.frame.search(shown):
                return place, frame.function
    return None


def _file_rank(name: str) -> int | None:
    match = _FILE_RANK.search(name)
    return int(match[1] or match[2]) if match else None
