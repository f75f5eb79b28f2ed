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
    from kb.types import Diagnosis, Entry, Filters, SearchResult

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

_HOMES = {
    "Diagnosis": "kb.types",
    "Entry": "kb.types",
    "Filters": "kb.types",
    "KBError": "kb.errors",
    "SearchResult": "kb.types",
    "Service": "kb.service",
    "Settings": "kb.settings",
    "load_settings": "kb.settings",
    "open_service": "kb.bootstrap",
}


def __getattr__(name: str) -> object:
    """Load an API name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kb' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
