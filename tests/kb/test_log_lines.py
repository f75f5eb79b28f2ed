"""What a command logs: one line, no secrets, no values of variables."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import structlog

from kb.log_lines import logger


@pytest.fixture
def unconfigured() -> Iterator[None]:
    """Structlog as it is when a process starts; as it was before, afterwards."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    if before is not None:
        structlog.configure(**before)


@pytest.mark.usefixtures("unconfigured")
def test_a_failure_is_one_line_without_local_variables(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback names code; a secret beside it in memory, or in the message, is not shown."""

    def fail() -> None:
        pasted = "api_key=sk-" + "a1b2c3d4" * 4
        raise ValueError(f"cannot read {pasted}")

    try:
        fail()
    except ValueError:
        logger().exception("ingest_failed", path="page.md")
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "a1b2c3d4" not in line
    entry = json.loads(line)
    assert entry["event"] == "ingest_failed"
    assert "in fail" in entry["exception"]


@pytest.mark.usefixtures("unconfigured")
def test_a_log_that_is_there_stays() -> None:
    """A server that sends its log elsewhere goes on doing so."""
    structlog.configure(processors=[])
    logger()
    assert structlog.get_config()["processors"] == []
