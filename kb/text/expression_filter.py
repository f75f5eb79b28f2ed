"""Which of many expressions may occur in a text: one pass of hyperscan over all of them.

It takes expressions with look-around too, for it may say yes where `re` says no (never the other
way): what it leaves is looked for by each expression alone.
Source: "Prefilter mode", https://intel.github.io/hyperscan/dev-reference/compilation.html
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kb.files.atomic import write_file

CACHE_FORMAT = 1  # raise it when the flags change
NAME = "words"  # of the cache file


class ExpressionFilter:
    """Tells which expressions, written for `re` without regard to case, a text may hold.

    Compiling takes seconds; `cache` is the folder in which the result is kept.
    """

    def __init__(self, expressions: Sequence[str], *, cache: Path) -> None:
        parts = [f"{CACHE_FORMAT} {importlib.metadata.version('hyperscan')}", *expressions]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        path = cache / f"{NAME}-{digest}.hsdb"
        self._database = cached_database(path, lambda: _compiled(expressions))
        self._turn = threading.Lock()  # a database has one scratch space

    def possible(self, *texts: str) -> frozenset[int]:
        """The numbers of the expressions that may occur in one of the texts."""
        numbers: set[int] = set()

        def keep(number: int, _start: int, _end: int, _flags: int, _context: object) -> None:
            numbers.add(number)

        with self._turn:
            for data in (text.encode("utf-8", "replace") for text in texts if text):
                self._database.scan(data, match_event_handler=keep)
        return frozenset(numbers)


def _compiled(expressions: Sequence[str]) -> Any:  # noqa: ANN401 - hyperscan is untyped
    import hyperscan as hs

    flags = (
        *(hs.HS_FLAG_CASELESS, hs.HS_FLAG_UTF8, hs.HS_FLAG_UCP),
        *(hs.HS_FLAG_PREFILTER, hs.HS_FLAG_SINGLEMATCH, hs.HS_FLAG_ALLOWEMPTY),
    )
    database = hs.Database()
    database.compile(
        expressions=[expression.encode() for expression in expressions],
        ids=list(range(len(expressions))),
        elements=len(expressions),
        flags=[sum(flags)] * len(expressions),
    )
    return database


def cached_database(path: Path, compiled: Callable[[], Any]) -> Any:  # noqa: ANN401
    """The database of hyperscan that lies at `path`; compiled and put there where none does.

    The name ends in ``-<digest>.hsdb``: files of earlier expressions are removed.
    """
    database = _read(path)
    if database is None:
        database = compiled()
        _write(path, database)
    return database


def _read(path: Path) -> Any | None:  # noqa: ANN401 - hyperscan is untyped
    """The database in a cache file, or None when it is missing or damaged."""
    import hyperscan

    try:
        content = path.read_bytes()
    except OSError:
        return None
    try:
        database = hyperscan.loadb(content, hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)  # a loaded database comes without one
    except hyperscan.HyperscanError:
        return None  # damaged, or of another processor or library version: compiled anew
    return database


def _write(path: Path, database: Any) -> None:  # noqa: ANN401 - hyperscan is untyped
    import hyperscan

    content = hyperscan.dumpb(database)
    with contextlib.suppress(OSError):  # a full disk costs the cache, not the answer
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
        for other in path.parent.glob(f"{path.name.rpartition('-')[0]}-*.hsdb"):
            if other != path:
                other.unlink(missing_ok=True)
