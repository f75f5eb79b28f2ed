"""The log around the lines that matter: windows of it, redacted, with what was found marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from app.render.escape import plain, plain_block
from app.web.components.markup import NOTHING, block, html, join
from kb.text.redact import redact
from kb.types.answer import Diagnosis
from kb.types.incident import LogReading

CONTEXT = 5  # lines shown on each side of a marked one
MARGIN = 120  # lines read beyond for redaction: a private key begins before the line shown
MAX_MARKS = 60  # windows are for reading; more marks than this nobody reads
MAX_LINE = 600  # characters of a shown line

_NUMBERED = re.compile(r"\0([0-9]+)\0([^\0]*)")

Mark = Literal["", "error", "evidence"]
Place = tuple[str, int]  # file ("" for pasted text) and line, counted from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of the log as it may be shown."""

    number: int
    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Neighbouring lines of one file."""

    file: str
    lines: tuple[LogLine, ...]

    def around(self, line: int, context: int) -> Window:
        """The part of this window near a line."""
        near = (item for item in self.lines if abs(item.number - line) <= context)
        return Window(file=self.file, lines=tuple(near))


def marks_of(diagnosis: Diagnosis, reading: LogReading) -> dict[Place, Mark]:
    """Places worth seeing: the first error, then the evidence of the causes in their order."""
    marks: dict[Place, Mark] = {}
    first = diagnosis.incident.first_error
    if first is not None and first.line:
        marks[first.file, first.line] = "error"
    for cause in diagnosis.causes:
        for item in cause.evidence:
            if item.line and len(marks) < MAX_MARKS:
                marks.setdefault(place_of(reading, item.line, item.quote), "evidence")
    return marks


def place_of(reading: LogReading, line: int, quote: str) -> Place:
    """The file and line a quote stands in; of several files, the one that has it at that line."""
    at_line = [event for event in reading.events if event.line == line]
    shown = plain(quote)
    for event in at_line:
        if shown and (shown in plain(event.text) or plain(event.text) in shown):
            return event.file, line
    return (at_line[0].file if at_line else "", line)


def lines_of(text: str) -> Iterator[str]:
    """The lines of a pasted text as the reader numbers them: only a line feed ends one."""
    return iter(text.removesuffix("\n").split("\n"))


def lines_of_chunks(chunks: Iterable[bytes]) -> Iterator[str]:
    """The same of a file that comes in pieces."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def windows(
    logs: Mapping[str, Iterable[str]], marks: Mapping[Place, Mark], *, context: int = CONTEXT
) -> tuple[Window, ...]:
    """The windows of all logs, in the order of the files and lines; their text is redacted.

    Args:
        logs: the lines of each file by its name; they are read once, up to the last one needed.
        marks: what is marked where.
        context: lines on each side of a mark.
    """
    return tuple(
        window
        for file, lines in logs.items()
        for window in _windows_of(
            file,
            lines,
            {line: mark for (name, line), mark in marks.items() if name == file},
            context,
        )
    )


def _windows_of(
    file: str, lines: Iterable[str], marks: Mapping[int, Mark], context: int
) -> Iterator[Window]:
    spans: list[tuple[int, int]] = []  # first and last line; those that touch are one
    for line in sorted(marks):
        low, high = max(1, line - context), line + context
        if spans and low <= spans[-1][1] + 1:
            low, _ = spans.pop()
        spans.append((low, high))
    near = {at for low, high in spans for at in range(low - MARGIN, high + MARGIN + 1)}
    texts = {
        number: line
        for number, line in zip(range(1, max(near, default=0) + 1), lines, strict=False)
        if number in near
    }
    for low, high in spans:
        there = [at for at in range(low - MARGIN, high + MARGIN + 1) if at in texts]
        clean = dict(zip(there, clean_lines([texts[at] for at in there]), strict=True))
        shown = tuple(
            LogLine(number=at, text=_short(clean[at]), mark=marks.get(at, ""))
            for at in range(low, high + 1)
            if at in clean
        )
        if shown:
            yield Window(file=file, lines=shown)


def clean_lines(lines: Sequence[str]) -> list[str]:
    """The lines without secrets, as many as before: one of several lines leaves empty ones."""
    clean = redact("\n".join(lines))[0].split("\n")
    if len(clean) == len(lines):
        return clean
    # A key of several lines became one: tell by the numbers that are left which lines it took.
    numbered = "\n".join(f"\0{number}\0{line}" for number, line in enumerate(lines))
    left = dict(_NUMBERED.findall(redact(numbered)[0]))
    return [left.get(str(number), "").removesuffix("\n") for number in range(len(lines))]


def _short(line: str) -> str:
    text = plain_block(line)
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"


def near(shown: Sequence[Window], place: Place, *, context: int) -> Window | None:
    """The lines around a place, or None where the log is not at hand."""
    file, line = place
    for window in shown:
        if window.file == file and any(item.number == line for item in window.lines):
            return window.around(line, context)
    return None


def window_html(window: Window) -> Markup:
    """A window with line numbers; marked lines stand out by colour and by a sign."""
    rows = join(
        html(
            '<div class="tk-line {kind}"><span class="tk-no">{number}</span>'
            '<span class="tk-text">{text}</span></div>',
            kind=f"tk-mark-{item.mark}" if item.mark else "",
            number=item.number,
            text=block(item.text),
        )
        for item in window.lines
    )
    name = html('<div class="tk-file">{file}</div>', file=window.file) if window.file else NOTHING
    return html('{name}<div class="tk-log" tabindex="0">{rows}</div>', name=name, rows=rows)


def log_html(shown: Sequence[Window]) -> Markup:
    """All windows, with a gap where lines are left out."""
    return join((window_html(window) for window in shown), html('<div class="tk-gap">⋯</div>'))
