"""What only the failed run printed, as lines of text."""

from __future__ import annotations

from app.render.columns import cut
from app.render.escape import plain
from kb.knowledge.labels import Words
from kb.logs.baseline import BaselineComparison, NewLine

MAX_SHOWN = 20


def baseline_lines(comparison: BaselineComparison, words: Words, *, width: int) -> list[str]:
    """A title and a line each, those that one rank alone printed first."""
    lines = comparison.lines
    if not lines:
        return [words("baseline.none")]
    ordered = sorted(lines, key=lambda line: comparison.of_one_rank(line) is None)
    shown = [_line(comparison, line, words, width) for line in ordered[:MAX_SHOWN]]
    if len(lines) > MAX_SHOWN:
        shown.append(f"  {words('baseline.more', count=len(lines) - MAX_SHOWN)}")
    return [words("baseline.title", count=len(lines)), *shown]


def _line(comparison: BaselineComparison, line: NewLine, words: Words, width: int) -> str:
    rank = comparison.of_one_rank(line)
    place = words.listing(
        [
            plain(f"{line.file}:{line.line}") if line.file else words("word.line", line=line.line),
            words("baseline.rank", rank=rank) if rank is not None else "",
            words("baseline.times", count=line.count) if line.count > 1 else "",
        ]
    )
    return cut(f"  {words('baseline.line', place=place, text=plain(line.text))}", width)
