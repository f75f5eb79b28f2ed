"""A reader over the shipped patterns, shared by the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.knowledge import read_yaml
from kb.logs import LogReader
from kb.settings import shipped_data
from kb.types import Pattern


@pytest.fixture(scope="session")
def patterns() -> tuple[Pattern, ...]:
    """The shipped patterns."""
    return read_yaml(shipped_data() / "patterns.yaml", tuple[Pattern, ...])


@pytest.fixture(scope="session")
def reader(patterns: tuple[Pattern, ...], tmp_path_factory: pytest.TempPathFactory) -> LogReader:
    """A reader with a cache of its own."""
    cache: Path = tmp_path_factory.mktemp("scan")
    return LogReader(patterns, cache=cache)
