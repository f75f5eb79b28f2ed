"""The reader on logs people really pasted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb.logs import LogReader

pytestmark = pytest.mark.shared


def logs(shared_dir: Path) -> list[str]:
    """Logs of the threads that pasted one worth the name."""
    text = (shared_dir / "threads" / "threads.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [row["query_log"] for row in rows if len(row["query_log"]) >= 100]


def test_nearly_every_pasted_log_says_something(reader: LogReader, shared_dir: Path) -> None:
    """95 % of the pasted logs hit a pattern that is a root candidate, a timeout or context."""
    pasted = logs(shared_dir)
    kinds = {"root", "timeout", "cascade", "context"}
    hit = [any(e.kind in kinds for e in reader.read_text(log).events) for log in pasted]
    assert sum(hit) / len(hit) >= 0.95


def test_every_printed_report_is_read(reader: LogReader, shared_dir: Path) -> None:
    """Where the log prints operation, number and limit, the incident has them."""
    for log in logs(shared_dir):
        incident = reader.read_text(log).incident
        if "WorkNCCL(" in log and "OpType=" in log:
            assert incident.op
            assert incident.has_timeout
            assert (incident.seq is not None) == ("WorkNCCL(SeqNum=" in log)
            assert (incident.timeout_ms is not None) == ("Timeout(ms)=" in log)
