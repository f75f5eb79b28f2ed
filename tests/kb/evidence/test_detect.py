"""What a file is: evidence by its content, and a job's log whatever stands in it."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pytest

from kb.evidence.detect import (
    EvidenceKind,
    evidence_among,
    evidence_in_stream,
    evidence_kind,
    named_like_evidence,
)
from tests.kb.evidence.flight_recorder.test_analysis import FIRST, dump
from tests.kb.evidence.test_kernel import SMI
from tests.kb.evidence.test_ras import DEAD, report
from tests.kb.evidence.test_stacks import waiting

KERNEL = (
    "[84512.391845] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    "[84512.391999] Out of memory: Killed process 48213 (python) total-vm:1kB\n"
)
WORK = "step 10 loss 2.5\nstep 11 loss 2.4\nstep 12 loss 2.3\n"
CRASH = (
    "Fatal Python error: Segmentation fault\n\n"
    "Current thread 0x00007f03 (most recent call first):\n"
    '  File "train.py", line 4 in step\n'
)
ERROR_FILE = json.dumps(
    {"message": {"message": "KeyError: 'x'", "extraInfo": {"py_callstack": "", "timestamp": "17"}}}
)
RECORDER = json.dumps(dump(FIRST))
EVIDENCE: dict[str, tuple[bytes, EvidenceKind]] = {
    "recorder-pickle": (pickle.dumps(dump(FIRST), protocol=2), "flight_recorder"),
    "recorder-json": (RECORDER.encode(), "flight_recorder"),
    "stacks": (waiting(1).encode(), "stacks"),
    "ras": (DEAD.encode(), "ras"),
    "ras-json": (report({0: 1}).encode(), "ras"),
    "dmesg": (KERNEL.encode(), "kernel"),
    "dmesg-of-windows": (KERNEL.encode("utf-16"), "kernel"),
    "nvidia-smi": (SMI.encode(), "kernel"),
    "error-file": (ERROR_FILE.encode(), "torchrun"),
}
LOGS = {
    "kernel-lines-within": WORK + KERNEL + WORK,
    "kernel-lines-first": KERNEL * 5 + WORK * 30,
    "nvidia-smi-first": SMI + WORK * 30,
    "stacks-first": waiting(1) + WORK * 30,
    "stacks-at-the-end": WORK + waiting(1),
    "crash": CRASH,
    "version": "node1:77:77 [0] NCCL INFO NCCL version 2.18.3+cuda12.1\n" + WORK,
    "ras-at-the-end": WORK * 5 + DEAD,
    "stacks-first-and-traces-last": waiting(1) + WORK * 3 + CRASH * 20,
    "between-kernel-lines": KERNEL * 50 + WORK * 3 + KERNEL * 50,
    "json-lines": '{"message": "step 1", "level": "INFO"}\n' * 3,
}


@pytest.mark.parametrize("name", EVIDENCE)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_evidence_is_recognised_by_its_content(name: str, packed: bool) -> None:
    """Each kind is recognised, also compressed, among logs and handed over as evidence."""
    data, kind = EVIDENCE[name]
    content = [gzip.compress(data) if packed else data]
    assert evidence_kind(content) == kind
    assert evidence_kind(content, among_logs=False) == kind


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_holds_evidence_stays_a_log(name: str) -> None:
    """What a job printed on the way is read with its log."""
    data = LOGS[name].encode()
    assert evidence_kind([data]) is None
    kind, stream = evidence_in_stream([data[:7], data[7:]])
    assert (kind, b"".join(stream)) == (None, data)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("stacks-at-the-end", "stacks"), ("nvidia-smi-first", "kernel"), ("version", None)],
)
def test_what_is_handed_over_as_evidence_needs_less(name: str, kind: EvidenceKind | None) -> None:
    """Beside the log stacks may have lines around them."""
    assert evidence_kind([LOGS[name].encode()], among_logs=False) == kind


@pytest.mark.parametrize("name", EVIDENCE)
def test_streams_are_recognised_but_for_dumps(name: str) -> None:
    """A dump's rank stands in a name, which a stream has not; every byte is still there."""
    data, kind = EVIDENCE[name]
    recognised, stream = evidence_in_stream([data[:100], data[100:]])
    assert recognised == (None if kind == "flight_recorder" else kind)
    assert b"".join(stream) == data


def test_other_pickles_are_no_evidence_among_logs() -> None:
    """A data set beside the logs is not taken for a dump."""
    other = [pickle.dumps({"images": [1]}, protocol=2)]
    assert evidence_kind(other) is None
    assert evidence_kind(other, among_logs=False) == "flight_recorder"


def test_job_logs_are_not_taken_for_evidence(root: Path) -> None:
    """No log of a job, crashed ones included, is read as something else."""
    logs = [
        *(root / "data" / "examples").iterdir(),
        *(root / "tests" / "lab" / "samples").glob("*/combined.log"),
        *(root / "tests" / "samples" / "negatives").glob("*.log"),
    ]
    assert len(logs) > 20
    assert evidence_among(logs) == {}


def test_files_that_cannot_be_read_are_left_to_the_reader_of_logs(tmp_path: Path) -> None:
    """It names them; detection does not fail on them."""
    empty, binary, log = (tmp_path / name for name in ("empty", "binary", "dmesg"))
    empty.write_bytes(b"")
    binary.write_bytes(b"\x7fELF" + bytes(100))
    log.write_text(KERNEL)
    assert evidence_among([empty, binary, log, tmp_path / "none"]) == {log: "kernel"}


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("nccl_trace_rank_3", True),
        ("comm_lib_trace_rank_12", True),
        ("_dump_3", True),
        ("error.json", True),
        ("stack_rank_0", True),
        ("photo.png", False),
        ("results.json", False),
        ("dump.zip", False),
    ],
)
def test_names_of_evidence(name: str, named: bool) -> None:
    """A name is a hint for who cannot see the content yet."""
    assert named_like_evidence(name) is named
