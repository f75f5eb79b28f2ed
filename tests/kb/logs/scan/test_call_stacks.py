"""Frames below tracebacks and threads' heads: tables of text and exact frames."""

from __future__ import annotations

import string

import pytest

from kb.evidence.stacks import Frame
from kb.logs.scan.call_stacks import (
    MAX_FRAMES,
    MAX_LINES,
    CallStack,
    frames_of,
    read_thread_stacks,
    read_traceback,
)

HEAD = "Traceback (most recent call last):"
TRACEBACK = f"""{HEAD}
  File "/home/u/job/run/train.py", line 40, in <module>
    main()
  File "/home/u/job/run/train.py", line 12, in main
    dist.barrier(group=tp)
    ~~~~~~~~~~~~^^^^^^^^^^
  File "/opt/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 9, in barrier
    work.wait()
RuntimeError: timed out"""
FRAMES = (
    "barrier (/site-packages/torch/distributed/distributed_c10d.py:9)\n"
    "main (/job/run/train.py:12)\n"
    "<module> (/job/run/train.py:40)"
)
CODE = "dist.barrier(group=tp)\nmain()"


def traceback(text: str, line: int = 7) -> CallStack | None:
    """The stack whose head is the first line of the text."""
    return read_traceback(text.encode(), 0, line)


PREFIXES = ["", "[rank3]: ", "[default3]:", "[default3]:[rank3]: ", "[3]:", " 3: ", "[pod/w-3/m] "]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_traceback_under_any_prefix(prefix: str) -> None:
    """Frames innermost first, own code lines, and the line with the exception."""
    text = "\n".join(prefix + line for line in TRACEBACK.split("\n"))
    assert traceback(text) == CallStack(fields={"frames": FRAMES, "code": CODE, "until": "15"})


def test_lines_of_other_ranks_between() -> None:
    """Every other line is of another rank; the stack is the same and ends at its own exception."""
    lines = []
    for line in TRACEBACK.split("\n"):
        lines += [f"[rank3]: {line}", f"[rank4]: {line.replace('train.py', 'eval.py')}"]
    found = traceback("\n".join(lines))
    assert found == CallStack(fields={"frames": FRAMES, "code": CODE, "until": "23"})


def test_times_in_front_differ() -> None:
    """A log collector stamps each line: the stamp tells no two printers apart."""
    lines = TRACEBACK.split("\n")
    text = "\n".join(
        f"2026-11-22 10:31:{n:02d},343 [rank3]: {line}" for n, line in enumerate(lines)
    )
    found = traceback(text)
    assert found is not None
    assert found.fields["frames"] == FRAMES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Traceback (most recent call last):", None),
        ("Traceback (most recent call last):\nValueError: x", None),
        (
            'Traceback (most recent call last):\n  File "a/b.py", line 3, in f\n',
            {"frames": "f (a/b.py:3)", "code": ""},
        ),
        # a secret in quoted code is taken out
        (
            f'{HEAD}\n  File "b.py", line 3, in f\n    login("hf_{string.ascii_letters}")\nE',
            {"frames": "f (b.py:3)", "code": 'login("<redacted:token>")', "until": "10"},
        ),
    ],
)
def test_cut_off_and_odd_tracebacks(text: str, expected: dict[str, str] | None) -> None:
    """Without frames there is no stack; without an exception no end."""
    found = traceback(text)
    assert (found.fields if found else None) == expected


def test_a_deep_stack_keeps_its_innermost_frames() -> None:
    """Recursion leaves the frames that decide; what stands far below the head is not read."""
    frame = '  File "r.py", line {n}, in f\n'
    deep = traceback("Traceback:\n" + "".join(frame.format(n=n) for n in range(100)))
    assert deep is not None
    numbers = [f.source_line for f in frames_of(deep.fields["frames"])]
    assert numbers == list(range(99, 99 - MAX_FRAMES, -1))
    other = "[rank1]: x\n"
    assert traceback("Traceback:\n" + other * (MAX_LINES - 2) + frame.format(n=1)) is not None
    assert traceback("Traceback:\n" + other * (MAX_LINES - 1) + frame.format(n=1)) is None


def test_frames_round_trip() -> None:
    """What an event holds gives the frames back."""
    assert frames_of(FRAMES)[1] == Frame("main", "/job/run/train.py", 12)
    assert frames_of("") == []


PYSPY = """Process 71: python train.py --local_rank {rank}
Python v3.10.12 (/usr/bin/python3.10)

Thread 71 (idle): "MainThread"
    barrier (torch/distributed/distributed_c10d.py:3700)
    train (train.py:43)
Thread 72 (idle): "Thread-1"
    wait (threading.py:324)
"""
FAULT = """Thread 0x00007f01 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait

Current thread 0x00007f02 (most recent call first):
  File "/job/train.py", line 43 in train
  File "/job/train.py", line 99 in <module>
"""


def heads(text: str) -> list[tuple[int, int]]:
    """Starts and numbers of the lines that hold a thread's head."""
    starts, at = [], 0
    for number, line in enumerate(text.split("\n"), start=1):
        if "Thread 7" in line or "hread 0x" in line:
            starts.append((at, number))
        at += len(line.encode()) + 1
    return starts


def test_py_spy_in_a_log() -> None:
    """The main thread of each process, with the rank of its command line."""
    text = "some output\n" + PYSPY.format(rank=0) + PYSPY.format(rank=5) + "more output\n"
    frames = "barrier (torch/distributed/distributed_c10d.py:3700)\ntrain (train.py:43)"
    assert read_thread_stacks(text.encode(), heads(text)) == {
        5: CallStack(fields={"frames": frames}, rank=0),
        13: CallStack(fields={"frames": frames}, rank=5),
    }


def test_faulthandler_of_two_ranks_at_once() -> None:
    """Each printer's threads are one process; the main thread ends in a module."""
    one, other = ([f"[default{rank}]:{line}" for line in FAULT.split("\n")] for rank in (1, 2))
    text = "\n".join(line for pair in zip(one, other, strict=True) for line in pair)
    frames = "train (/job/train.py:43)\n<module> (/job/train.py:99)"
    assert read_thread_stacks(text.encode(), heads(text)) == {
        7: CallStack(fields={"frames": frames}),
        8: CallStack(fields={"frames": frames}),
    }


@pytest.mark.parametrize("breaks", ["\r", "\x0c", "\u2028"])
def test_what_breaks_a_line_elsewhere_breaks_none_here(breaks: str) -> None:
    """Only the newline ends a line of a log: a stack below keeps its number."""
    plain = FAULT.replace("Thread 0", "some\rthing\nThread 0", 1)
    text = plain.replace("\r", breaks)
    assert list(read_thread_stacks(text.encode(), heads(text))) == [5]
