"""What ingest's tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ingest import Ingestor
from ingest.wordlists import WordLists, load_word_lists
from kb.settings import shipped_data
from tests.ingest.fakes import MemorySink, WatchdogReader


@pytest.fixture(scope="session")
def words() -> WordLists:
    """The shipped word lists."""
    return load_word_lists(shipped_data())


@pytest.fixture
def sink() -> MemorySink:
    """An empty knowledge base."""
    return MemorySink()


@pytest.fixture
def ingestor(sink: MemorySink, data_dir: Path) -> Ingestor:
    """An ingestor into `sink`."""
    return Ingestor(sink, WatchdogReader(), data=data_dir, stored=sink.iter_entries)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file into the test's folder."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        return path

    return write
