"""A store with something in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.store import Store
from tests.kb.index.following import entries


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with twenty entries."""
    store = Store.open(tmp_path / "kb.sqlite3")
    store.upsert(entries(0, 20))  # type: ignore[arg-type]
    return store
