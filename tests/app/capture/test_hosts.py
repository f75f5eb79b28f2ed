"""Several hosts by the command line a person names."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.capture.archive import archive_of, groups_of
from app.capture.budget import Budget
from app.capture.hosts import remote_command, take_from_hosts
from app.capture.take import HostCapture
from kb.evidence.capture import CapturedHost, CaptureFile

WORDS = ["timeout-kb", "collect", "--output", "-"]
STACK = """Process {pid}: rank {rank}: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread {pid} (idle): "MainThread"
    {call} (torch/distributed/distributed_c10d.py:2806)
    train (train.py:{line})
"""


@pytest.mark.parametrize(
    ("via", "head"),
    [
        ("ssh", ["ssh", "-o", "BatchMode=yes", "n1"]),
        ("kubectl exec", ["kubectl", "exec", "n1", "--"]),
        ("ssh -p 2222", ["ssh", "-p", "2222", "n1"]),
        (
            "kubectl -n ml exec {host} -c main --",
            ["kubectl", "-n", "ml", "exec", "n1", "-c", "main", "--"],
        ),
    ],
    ids=["ssh", "kubectl", "options", "a place for the host"],
)
def test_the_command_line_is_the_persons(via: str, head: list[str]) -> None:
    """Short names stand for usual lines; the host goes where the line says, else to its end."""
    assert remote_command(via, "n1", WORDS) == [*head, *WORDS]


def test_hosts_are_merged_and_a_failure_is_named(tmp_path: Path) -> None:
    """Stacks of all hosts are compared together; a host that cannot be reached says why."""
    for name, ranks in (("n1", (0, 1)), ("n2", (2, 3))):
        files = []
        for rank in ranks:
            call, line = ("barrier", 43) if rank == 2 else ("all_reduce", 40)
            text = STACK.format(pid=rank + 10, rank=rank, call=call, line=line)
            file = CaptureFile(name=f"same/stacks/rank_{rank}.txt", kind="evidence")
            files.append((file, text.encode()))
        host = CapturedHost(name="same", ranks=ranks, processes=2)
        capture = HostCapture(host=host, files=tuple(files))
        (tmp_path / name).write_bytes(archive_of([capture], ""))
    remote = tmp_path / "remote"
    remote.write_text(
        f'#!/bin/sh\n[ "$2 $3 $4 $5" = "{" ".join(WORDS)}" ] || exit 9\n'
        f'[ "$1" = n3 ] && echo "Host key verification failed." >&2 && exit 255\n'
        f'[ "$1" = n4 ] && echo "command not found" && exit 0\n'
        f'cat "{tmp_path}/$1"\n'
    )
    remote.chmod(0o755)
    captures = take_from_hosts(["n1", "n2", "n3", "n4"], str(remote), WORDS, Budget())
    assert [capture.host.name for capture in captures] == ["n1", "n2", "n3", "n4"]
    groups = groups_of(captures)
    assert [(group.ranks, group.call, group.odd) for group in groups] == [
        ((0, 1, 3), "all_reduce", False),
        ((2,), "barrier", True),
    ]
    (gap,) = captures[2].host.gaps
    assert gap.values == {"host": "n3", "why": "Host key verification failed."}
    assert captures[3].host.gaps[0].label == "capture.host_failed"
