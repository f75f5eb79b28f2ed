"""The truth: every entry with its chunks and vectors, in one SQLite file."""

from __future__ import annotations

from kb.store.facets import FACETS, NO_FILTERS
from kb.store.rows import Changes, ChunkChanges, ChunkRow, Feedback, Head, Record
from kb.store.store import Store

__all__ = [
    "FACETS",
    "NO_FILTERS",
    "Changes",
    "ChunkChanges",
    "ChunkRow",
    "Feedback",
    "Head",
    "Record",
    "Store",
]
