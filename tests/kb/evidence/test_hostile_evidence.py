"""Evidence made to be slow is read in time linear in its length."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest

from kb.errors import SlowInputError
from kb.evidence.collect import read_evidence
from kb.evidence.kernel import read_kernel
from kb.evidence.limits import EvidenceLimits
from kb.evidence.ras import read_ras
from kb.evidence.stacks import parse_stacks, read_stacks
from kb.settings_check.extract import find_settings

S_A_MEGABYTE = 8.0  # seconds of the processor; what is quadratic takes minutes for these
STACK = 'Process 1: python train.py\nThread 1 (active): "MainThread"\n'
RAS = "Job summary\nCommunicators...\n"
TEXTS = {
    "stack": STACK + "    f" + " (a" * 100_000,
    "stack of many lines": STACK + ("    f" + " (a" * 600 + "\n") * 150,
    "line number": STACK + "    f (a.py:" + "1" * 200_000 + ")\n",
    "ras": RAS + "ranks have different " * 15_000,
    "ras of one": RAS + "ranks have different " + "a " * 150_000,
    "kernel": "[    1.000000] " + "mlx5_" * 60_000,
    "kernel of many lines": ("[    1.000000] " + "mlx5_" * 390 + "\n") * 150,
    "settings": 'name:A_0value:""' * 20_000,
    "settings in lines": ('name:A_0value:""' * 100 + "\n") * 200,
    "default": "A_B=${" * 50_000,
    "timedelta": "timeout=timedelta(" + "a" * 300_000,
    "key": "a." * 150_000 + " = ",
}


@pytest.mark.parametrize("name", list(TEXTS))
def test_time_is_linear(name: str) -> None:
    """300 kB made against an expression are read within seconds by every reader of text."""
    text = TEXTS[name]
    start = time.process_time()
    read_stacks(parse_stacks(text))
    read_ras(text)
    read_kernel(text)
    find_settings(text, {"timeout", "ddp_timeout"})
    assert time.process_time() - start < S_A_MEGABYTE * len(text) / 1e6


def test_a_long_line_is_quoted_in_part() -> None:
    """A frame of 100,000 characters does not come back in the facts."""
    text = f"{STACK}    {'f' * 100_000} (train.py:1)\n    g (train.py:2)\n"
    reading = read_stacks(parse_stacks(text))
    assert max(len(fact.quote) + len(fact.detail) for fact in reading.facts) < 10_000


def test_frames_are_read_as_before() -> None:
    """Function, file and line of frames with brackets and blanks in them."""
    text = STACK + "".join(
        f"    {frame}\n"
        for frame in (
            "train (train.py:43)",
            "operator() (a/b.cpp:7)",
            "c10d::wait (libtorch.so)",
            "foo bar (my file.py:1)",
            "<module> (train.py:9)",
        )
    )
    (stack,) = parse_stacks(text)
    assert [(f.function, f.file, f.source_line) for f in stack.frames] == [
        ("train", "train.py", 43),
        ("operator()", "a/b.cpp", 7),
        ("c10d::wait", "libtorch.so", 0),
        ("foo bar", "my file.py", 1),
        ("<module>", "train.py", 9),
    ]


def test_a_pod_entry_in_a_comment_is_none() -> None:
    """Settings of a pod are found line by line, those in a comment are not."""
    text = 'a\n- name: NCCL_A\n  value: "1"\n# name: NCCL_B value: 2\nx name: NCCL_C value: 3 # y'
    assert [(s.name, s.value, s.line) for s in find_settings(text)] == [
        ("NCCL_A", "1", 2),
        ("NCCL_C", "3", 5),
    ]


def shared_dump(entries: int) -> bytes:
    """A dump of Python's pickle in which one operation stands in many places."""
    sizes = tuple((1, 2, 3) for _ in range(20))
    entry = {"profiling_name": "nccl:all_reduce", "input_sizes": sizes, "state": "completed"}
    return pickle.dumps({"version": "2.4", "pg_status": {}, "entries": [entry] * entries}, 4)


def test_many_small_dumps_have_one_limit(tmp_path: Path) -> None:
    """Twenty dumps of a few kilobytes that stand for millions of values take no gigabytes."""
    for rank in range(20):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(shared_dump(20_000))
    evidence = read_evidence([tmp_path])
    assert evidence.dumps is not None
    assert len(evidence.dumps.present) < 5
    assert {problem.code for problem in evidence.problems} == {"evidence_limit"}
    assert len(evidence.problems) == 20 - len(evidence.dumps.present)


def test_rank_lists_have_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The members of all dumps together are bounded."""
    monkeypatch.setattr("kb.evidence.limits.MAX_TOTAL_MEMBERS", 25)
    config = {"0": {"name": "0", "ranks": list(range(10))}}
    for rank in range(3):
        dump = {"version": "2.4", "pg_status": {}, "pg_config": config}
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, 4))
    evidence = read_evidence([tmp_path])
    assert [problem.code for problem in evidence.problems] == ["evidence_limit"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("nccl_trace_rank_0", shared_dump(10)),
        ("stack_0.txt", STACK.encode() + b"    f (a.py:1)\n" * 2_000),
        ("ras.txt", RAS.encode() + b"NCCL version 2.24.3\n" * 2_000),
        ("dmesg.txt", b"[    1.000000] kernel: a\n" * 2_000),
    ],
    ids=["dump", "stacks", "ras", "kernel"],
)
def test_a_time_limit_ends_the_work(name: str, data: bytes, tmp_path: Path) -> None:
    """When the time of a request is over, no kind of evidence is read on."""
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(SlowInputError):
        read_evidence([path], limits=EvidenceLimits(limit_s=-1))
