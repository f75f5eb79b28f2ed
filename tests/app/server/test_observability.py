"""Log lines of the server: they tell where code failed, never what was in its variables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import logging
import structlog
from app.server.observability import configure_logging

configure_logging("info")

def fail(token):
    password = token + "-local"
    raise ValueError("cannot read Bearer " + token)

for log in (structlog.get_logger("app.api"), logging.getLogger("uvicorn.error")):
    try:
        fail("".join(["hf_", "Zk9" * 12]))
    except ValueError as error:
        log.error("unexpected failure", exc_info=error)
"""


def test_tracebacks_hold_no_values_and_no_secrets(root: Path) -> None:
    """A token in a local variable and in the error's message is in no line; the place is."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["unexpected failure"] * 2
    for line in lines:
        assert "in fail" in line["exception"]
        assert "ValueError: cannot read Bearer <redacted:" in line["exception"]
    assert "Zk9" not in done.stderr
    assert "-local" not in done.stderr
