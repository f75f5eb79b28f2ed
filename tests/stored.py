"""What a database holds, read past the store."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from kb.store import Store


def stored_rows(place: Path | Store, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query to a file, or to an open store wherever it is."""
    if isinstance(place, Store):
        with place.database.read() as reading:
            return reading.execute(query).fetchall()
    with contextlib.closing(sqlite3.connect(place)) as connection:
        return connection.execute(query).fetchall()
