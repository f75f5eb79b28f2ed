"""What a failed run printed that a good one did not: lines compared with their numbers masked.

For failures no pattern knows. Deterministic: the order is that of the failed run's output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kb.files.log_source import from_path
from kb.files.paths import files_under, short_names
from kb.logs.scan.prefix import file_ranks, origin, split_front
from kb.text.redact import redact
from kb.text.template import line_template

MAX_TEMPLATES = 500_000  # of a run; a log with more lines that differ is no log of a training
MAX_LINE = 4_096  # characters of a line that are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLine:
    """A line the good runs did not print: where it first stands and how often it was printed.

    `ranks` are those that printed it, where lines name them; `file` is empty for a single file.
    """

    text: str
    line: int
    count: int = 1
    ranks: tuple[int, ...] = ()
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineComparison:
    """What only the failed run printed, in its order, and how many ranks it had by its lines."""

    lines: tuple[NewLine, ...]
    ranks: tuple[int, ...]

    def of_one_rank(self, line: NewLine) -> int | None:
        """The rank that alone of several printed `line`."""
        return line.ranks[0] if len(line.ranks) == 1 and len(self.ranks) > 1 else None


def compare(paths: Sequence[Path], baseline: Sequence[Path]) -> BaselineComparison:
    """The lines of `paths` whose like stands in none of `baseline`.

    Raises:
        InputError: a file cannot be read.
    """
    known: set[int] = set()
    for path in files_under(baseline):
        for _, text in _lines(from_path(path).chunks()):
            if len(known) < MAX_TEMPLATES:
                known.add(hash(_template(text)[1]))
    files = files_under(paths)
    new: dict[str, NewLine] = {}
    ranks: set[int] = set()
    named = file_ranks(files)
    for path, name in zip(files, short_names([str(path) for path in files]), strict=True):
        for number, text in _lines(from_path(path).chunks()):
            rank, template = _template(text)
            rank = named.get(path) if rank is None else rank
            if rank is not None:
                ranks.add(rank)
            if not template or hash(template) in known:
                continue
            seen = new.get(template)
            if seen is not None:
                more = {*seen.ranks, *(() if rank is None else (rank,))}
                new[template] = replace(seen, count=seen.count + 1, ranks=tuple(sorted(more)))
            elif len(new) < MAX_TEMPLATES:
                own = () if rank is None else (rank,)
                new[template] = NewLine(text=text.strip(), line=number, ranks=own, file=name)
    lines = tuple(replace(line, text=redact(line.text)[0]) for line in new.values())
    return BaselineComparison(lines=lines, ranks=tuple(sorted(ranks)))


def _template(text: str) -> tuple[int | None, str]:
    front, own = split_front(text)
    return origin(front).rank if front else None, line_template(own)


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers by line feeds; of a bar that is drawn again, the last one."""
    number, rest = 0, b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            number += 1
            yield number, _text(line)
        if len(rest) > 4 * MAX_LINE:
            rest = rest[-MAX_LINE:]
    if rest:
        yield number + 1, _text(rest)


def _text(line: bytes) -> str:
    drawn = [part for part in line.split(b"\r") if part.strip()]
    return drawn[-1][: 4 * MAX_LINE].decode("utf-8", "replace")[:MAX_LINE] if drawn else ""
