"""What a database file holds, past the product's own code."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path


def stored_rows(path: Path, query: str) -> list[tuple[object, ...]]:
    """The rows of a query."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()
