"""Zstandard: the standard library's since Python 3.14, before that the same code as a package."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, ZstdFile, compress
else:
    from backports.zstd import ZstdError, ZstdFile, compress

__all__ = ["ZstdError", "ZstdFile", "compress"]
