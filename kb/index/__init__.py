"""The search index: derived from the store, built aside, published by one rename.

Nothing here imports FAISS or tantivy before an index is opened.
"""

from __future__ import annotations

from kb.index.base import DenseIndex, LexicalIndex, Term
from kb.index.live import SearchIndex

__all__ = ["DenseIndex", "LexicalIndex", "SearchIndex", "Term"]
