"""Reading logs: what happened, on which rank, what broke first, and what the numbers say."""

from __future__ import annotations

from kb.logs.reader import LogReader

__all__ = ["LogReader"]
