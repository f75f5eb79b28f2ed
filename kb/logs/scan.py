"""Finding the lines that matter: one hyperscan pass over all patterns at once.

Two databases are compiled from the same patterns. The *full* one reports every hit and reads the
parts that matter whole: the head of each log, the neighbourhood of a failure, the end. The *main*
one reports `context` and `fact` patterns once a block, since progress lines would otherwise cost
a callback each, and reads the rest. `noise` is not searched for: it vetoes lines already found.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kb.errors import DataError
from kb.types import Pattern

CACHE_FORMAT = 1  # raise it when flags or the choice of patterns change
ONCE_A_BLOCK = ("context", "fact")
# Progress stands on every line of a healthy log, so looking for it everywhere costs a third of the
# speed; it matters at the start, before failures and at the end, where the full database reads.
PROGRESS_EVENTS = frozenset({"train_step", "bar", "download_bar", "inference", "preprocessing"})
Hit = tuple[int, int]  # number of the pattern, offset behind its end


def regex_flags(pattern: Pattern) -> int:
    """The flags under which `re` reads a pattern as hyperscan does."""
    return re.MULTILINE | (re.IGNORECASE if pattern.ignore_case else 0)


def compile_re(pattern: Pattern) -> re.Pattern[bytes]:
    """The pattern for `re` on bytes: the reference the scan is tested against."""
    return re.compile(pattern.regex.encode(), regex_flags(pattern))


class Scanner:
    """All patterns as one hyperscan database; numbers are places in `patterns`.

    Threads take turns block by block: a database has one scratch space. `name` is that of its
    cache file; files of the same name from earlier patterns are removed when it is written.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        *,
        once_a_block: bool,
        cache: Path | None = None,
        name: str = "scan",
    ) -> None:
        self.patterns = tuple(patterns)
        self._once = once_a_block
        self._name = name
        self._turn = threading.Lock()
        self._numbers = [
            number
            for number, pattern in enumerate(self.patterns)
            if not (once_a_block and pattern.event in PROGRESS_EVENTS)
        ]
        self._database = self._load(cache) if self._numbers else None

    def scan(self, data: bytes | memoryview) -> list[Hit]:
        """All hits in `data`, in the order of their ends."""
        hits: list[Hit] = []
        if self._database is None or not len(data):
            return hits
        append = hits.append

        def keep(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append((number, end))

        # `keep` stays in a local name: hyperscan does not own its callback.
        with self._turn:
            self._database.scan(data, match_event_handler=keep)
        return hits

    def _digest(self) -> str:
        version = importlib.metadata.version("hyperscan")
        parts = [f"{CACHE_FORMAT} {version} {self._once}"]
        parts += [f"{p.regex}\0{p.kind}\0{p.event}\0{p.ignore_case}" for p in self.patterns]
        return hashlib.sha256("\0\0".join(parts).encode()).hexdigest()

    def _load(self, cache: Path | None) -> Any:  # noqa: ANN401 - hyperscan is untyped
        if cache is None:
            return self._compile()
        digest = self._digest()
        kept = cache / f"{self._name}-{digest[:16]}.hsdb"
        database = _read(kept)
        if database is None:
            database = self._compile()
            _write(kept, database)
        return database

    def _compile(self) -> Any:  # noqa: ANN401 - hyperscan is untyped
        import hyperscan

        database = hyperscan.Database()
        try:
            database.compile(
                expressions=[self.patterns[n].regex.encode() for n in self._numbers],
                ids=self._numbers,
                elements=len(self._numbers),
                flags=[self._flags(self.patterns[n]) for n in self._numbers],
            )
        except hyperscan.HyperscanError as error:
            raise DataError(
                f"patterns.yaml: {self._culprit()} is no expression hyperscan takes: {error}",
                todo="write it without look-around and back-references",
            ) from error
        return database

    def _flags(self, pattern: Pattern) -> int:
        import hyperscan

        flags: int = hyperscan.HS_FLAG_MULTILINE
        if pattern.ignore_case:
            flags |= hyperscan.HS_FLAG_CASELESS
        if self._once and pattern.kind in ONCE_A_BLOCK:
            flags |= hyperscan.HS_FLAG_SINGLEMATCH
        return flags

    def _culprit(self) -> str:
        """The id of the first pattern that does not compile alone."""
        import hyperscan

        for pattern in self.patterns:
            try:
                hyperscan.Database().compile(
                    expressions=[pattern.regex.encode()], flags=self._flags(pattern)
                )
            except hyperscan.HyperscanError:
                return pattern.id
        return "their combination"


def _read(kept: Path) -> Any | None:  # noqa: ANN401 - hyperscan is untyped
    """The database in a cache file, or None when it is missing or damaged."""
    import hyperscan

    try:
        content = kept.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        return None
    try:
        database = hyperscan.loadb(content[32:], hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)  # a loaded database comes without one
    except hyperscan.HyperscanError:
        return None  # another processor or library version: compiled anew
    return database


def _write(kept: Path, database: Any) -> None:  # noqa: ANN401 - hyperscan is untyped
    import hyperscan

    content = hyperscan.dumpb(database)
    aside = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(hashlib.sha256(content).digest() + content)
        aside.replace(kept)
        for other in kept.parent.glob(f"{kept.name.rpartition('-')[0]}-*.hsdb"):
            if other != kept:
                other.unlink(missing_ok=True)
    except OSError:
        with contextlib.suppress(OSError):  # a full disk costs the cache, not the answer
            aside.unlink(missing_ok=True)
