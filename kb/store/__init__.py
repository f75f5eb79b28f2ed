"""The truth: every entry with its chunks and vectors, in a SQLite file or on a server."""

from __future__ import annotations

from kb.store.deleted import RESTORABLE_DAYS
from kb.store.rows import ChunkChanges, ChunkRow, EntryHead, FeedbackRow, StoredJson
from kb.store.statements import EDITED
from kb.store.store import Store

__all__ = [
    "EDITED",
    "RESTORABLE_DAYS",
    "ChunkChanges",
    "ChunkRow",
    "EntryHead",
    "FeedbackRow",
    "Store",
    "StoredJson",
]
