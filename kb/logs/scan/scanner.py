"""Finding the lines that matter: one hyperscan pass over all patterns at once.

Two databases are compiled from the same patterns. The *full* one reports every hit and reads the
parts that matter whole: the head of each log, the neighbourhood of a failure, the end. The *main*
one reports `context` and `fact` patterns once a block, since progress lines would otherwise cost
a callback each, and reads the rest. `noise` is not searched for: it vetoes hits of the others.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kb.errors import DataError
from kb.text.expression_filter import cached_database
from kb.text.linear_expression import linear_expression
from kb.types.knowledge import Pattern

CACHE_FORMAT = 3  # raise it when flags or the choice of patterns change
ONCE_A_BLOCK = ("context", "fact")
SHOWN_CHARS = 80  # of a line in a message
Hit = tuple[int, int]  # number of the pattern, offset behind its end


# As plain numbers: flags of `re` joined at every hit cost more than the search.
_SEARCH_FLAGS = (int(re.ASCII | re.MULTILINE), int(re.ASCII | re.MULTILINE | re.IGNORECASE))
# Numbers of other scripts are none: what is taken is compared, counted and parsed.
_CAPTURE_FLAGS = (int(re.ASCII), int(re.ASCII | re.IGNORECASE))


def regex_flags(pattern: Pattern) -> int:
    """The flags under which `re` reads a pattern as hyperscan does."""
    return _SEARCH_FLAGS[pattern.ignore_case]


@cache
def _compiled(text: str, flags: int) -> re.Pattern[str]:
    """A compiled expression; all are made when first needed: that takes a tenth of a second."""
    return re.compile(text, flags)


def expression(pattern: Pattern) -> re.Pattern[str]:
    """What finds the pattern in a line's text."""
    if pattern.origin:
        return linear_expression(pattern.regex, ignore_case=pattern.ignore_case)
    return _compiled(pattern.regex, regex_flags(pattern))


def capture_expression(pattern: Pattern) -> re.Pattern[str] | None:
    """What takes the fields out of a line, or None."""
    if not pattern.capture:
        return None
    if pattern.origin:
        return linear_expression(pattern.capture, ignore_case=pattern.ignore_case)
    return _compiled(pattern.capture, _CAPTURE_FLAGS[pattern.ignore_case])


def wrong_patterns(patterns: Iterable[Pattern]) -> Iterator[DataError]:
    """What is wrong with patterns of a site folder: expressions, and the lines that test them."""
    for pattern in patterns:
        where = f"patterns.yaml: [{pattern.id}]"
        if not pattern.examples:
            yield DataError(f"{where}: no examples", todo="add a line that it finds")
        try:
            expression(pattern)
            capture_expression(pattern)
            scanner = Scanner([pattern], once_a_block=False)
        except DataError as error:
            yield DataError(f"{where}: {error.what}", todo=error.todo)
            continue
        for line in (*pattern.examples, *pattern.negatives):
            wanted = line not in pattern.negatives
            if bool(scanner.scan(line.encode())) != wanted:
                fails = "does not find its example" if wanted else "finds its negative"
                what = f"{where}: it {fails} {line[:SHOWN_CHARS]!r}"
                yield DataError(what, todo="change the expression or the line")


class Scanner:
    """All patterns as one hyperscan database; numbers are places in `patterns`.

    Threads take turns block by block: a database has one scratch space.

    Args:
        patterns: what to look for.
        once_a_block: whether `context` and `fact` patterns are reported once a block only.
        left_out: events whose patterns keep their numbers and are not looked for.
        each: events reported at every hit, whatever their kind.
        cache: folder of the compiled database; None compiles anew.
        name: of its cache file; files of that name from earlier patterns are then removed.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        *,
        once_a_block: bool,
        left_out: Collection[str] = (),
        each: Collection[str] = (),
        cache: Path | None = None,
        name: str = "scan",
    ) -> None:
        self.patterns = tuple(patterns)
        self._once = once_a_block
        self._each = frozenset(each)
        self._name = name
        self._turn = threading.Lock()
        self._numbers = [
            number for number, pattern in enumerate(self.patterns) if pattern.event not in left_out
        ]
        self._database = self._load(cache) if self._numbers else None

    def scan(self, data: bytes) -> list[Hit]:
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
        parts = [f"{CACHE_FORMAT} {version} {self._once} {sorted(self._each)} {self._numbers}"]
        parts += [f"{p.regex}\0{p.kind}\0{p.event}\0{p.ignore_case}" for p in self.patterns]
        return hashlib.sha256("\0\0".join(parts).encode()).hexdigest()

    def _load(self, folder: Path | None) -> Any:  # noqa: ANN401 - hyperscan is untyped
        if folder is None:
            return self._compile()
        path = folder / f"{self._name}-{self._digest()[:16]}.hsdb"
        return cached_database(path, self._compile)

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
        if self._once and pattern.kind in ONCE_A_BLOCK and pattern.event not in self._each:
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
