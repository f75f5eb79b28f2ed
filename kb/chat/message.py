"""A message taken apart: the person's own words, and the program output pasted with them.

Intents are read from the own words alone. A log cannot speak for the person: in a message with
program output only what stands clearly apart from it, before or after, is taken for their words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kb.logs.prose import is_personal, is_prose
from kb.logs.words import words
from kb.types import LogReading

OWN_LINES = 4  # lines before or after a log that are still a remark on it
OWN_CHARS = 600  # of such a remark; more is a report, read as a whole by the diagnosis
REPORT_LINES = 15  # a message of more lines is a paste, whatever its lines look like
REPORT_CHARS = 1500
LEAD_CHARS = 2000  # before the output that are looked at for the language
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_LEADS_ON = (":", "：", "?", "？")  # ends of a remark that a log follows without an empty line
_QUESTION = ("?", "？")
_OUTPUT_KINDS = frozenset({"timeout", "root", "cascade", "teardown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The own words, and whether there is program output beside them.

    `lead` is all that stands before the output, whoever wrote it; it may tell the language.
    """

    own: str
    pasted: bool
    lead: str = ""


def take_apart(
    message: str, reading: LogReading, *, asks: Callable[[str], bool] | None = None
) -> Parts:
    """Split `message`, which `reading` was read from.

    `asks` tells whether a single line is a request, even where it names an error.
    """
    lines = message.splitlines()
    outside = _outside_fences(lines)
    if outside is not None:
        return Parts(own=_remark(outside), pasted=True, lead=_lead(outside))
    output = _output_lines(lines, reading)
    if not output:
        if len(lines) > REPORT_LINES or len(message) > REPORT_CHARS:
            return Parts(own=_first_paragraph(lines), pasted=True, lead=_lead(lines))
        return Parts(own=message.strip(), pasted=False)
    if len(lines) == 1:
        asked = bool(words(message)) and asks is not None and asks(message)
        return Parts(own=message.strip() if asked else "", pasted=not asked)
    head, tail = lines[: output[0]], lines[output[-1] + 1 :]
    own = "\n".join(filter(None, (_before(head), _after(tail))))
    return Parts(own=own, pasted=True, lead=_lead(head))


def without_orders(reading: LogReading, own: str, is_order: Callable[[str], bool]) -> LogReading:
    """The reading without lines that order the assistant about and are not the person's own."""
    said = set(own.splitlines())

    def kept(text: str) -> str:
        lines = text.split("\n")
        return "\n".join(line for line in lines if line in said or not is_order(line))

    mine = kept(reading.words)
    lines = reading.word_lines if mine == reading.words else ()
    return replace(reading, words=mine, description=kept(reading.description), word_lines=lines)


def without_sentences(reading: LogReading, sentences: Sequence[str]) -> LogReading:
    """The reading with those sentences of the person's words taken out."""

    def kept(text: str) -> str:
        for sentence in sentences:
            text = text.replace(sentence, "")
        return text

    mine = kept(reading.words)
    lines = reading.word_lines if mine == reading.words else ()
    return replace(reading, words=mine, description=kept(reading.description), word_lines=lines)


def _lead(lines: list[str]) -> str:
    return "\n".join(line for line in lines if line.strip())[:LEAD_CHARS]


def _outside_fences(lines: list[str]) -> list[str] | None:
    """The lines outside of code fences; None where there is no closed fence."""
    marks = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    if len(marks) < 2:
        return None
    kept = lines[: marks[0]]
    for closing, opening in zip(marks[1::2], [*marks[2::2], len(lines)], strict=False):
        kept += lines[closing + 1 : opening]
    return kept


def _output_lines(lines: list[str], reading: LogReading) -> list[int]:
    """Numbers (from 0) of the lines a program printed."""
    events = {event.line - 1 for event in reading.events if event.kind in _OUTPUT_KINDS}
    return [
        number
        for number, line in enumerate(lines)
        if line.strip() and (not words(line) or (number in events and not _spoken(line)))
    ]


def _spoken(line: str) -> bool:
    asks = line.rstrip().endswith(_QUESTION)
    return is_prose(line[:1000]) and (asks or is_personal(line[:1000]))


def _before(head: list[str]) -> str:
    """The remark before a log: apart by an empty line, or leading on to it."""
    text = [line for line in head if line.strip()]
    apart = bool(head) and (not head[-1].strip() or head[-1].rstrip().endswith(_LEADS_ON))
    return _remark(text) if apart else ""


def _after(tail: list[str]) -> str:
    """The remark after a log, apart by an empty line."""
    gap = next((number for number, line in enumerate(tail) if not line.strip()), None)
    return "" if gap is None else _remark(tail[gap:])


def _first_paragraph(lines: list[str]) -> str:
    kept: list[str] = []
    for line in lines:
        if not line.strip():
            if kept:
                break
            continue
        kept.append(line)
    return _remark(kept)


def _remark(lines: list[str]) -> str:
    """The lines as one remark; empty where they are too many to be one."""
    text = "\n".join(line.strip() for line in lines if line.strip())
    short = len(text) <= OWN_CHARS and text.count("\n") < OWN_LINES
    return text if short else ""
