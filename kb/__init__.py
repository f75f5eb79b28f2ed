"""timeout-kb: from a pasted timeout log to ranked root causes with evidence.

The Python API: `open_service(load_settings())` gives a `Service`; its `diagnose_text` returns a
`Diagnosis`. Names load when they are first used, so that importing `kb` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.bootstrap import open_service
    from kb.errors import KBError
    from kb.service import Service
    from kb.settings import Settings, load_settings
    from kb.types.answer import Diagnosis
    from kb.types.entries import Entry, Filters, SearchResult

__all__ = [
    "Diagnosis",
    "Entry",
    "Filters",
    "KBError",
    "SearchResult",
    "Service",
    "Settings",
    "load_settings",
    "open_service",
]

_MODULES = {
    "Diagnosis": "kb.types.answer",
    "Entry": "kb.types.entries",
    "Filters": "kb.types.entries",
    "KBError": "kb.errors",
    "SearchResult": "kb.types.entries",
    "Service": "kb.service",
    "Settings": "kb.settings",
    "load_settings": "kb.settings",
    "open_service": "kb.bootstrap",
}


def __getattr__(name: str) -> object:
    """Load an API name from its module on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'kb' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
