"""A message taken apart: the person's own words, and the program output pasted with them.

Intents are read from the own words alone. A log cannot speak for the person: in a message with
program output only what stands clearly apart from it, before or after, is taken for their words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kb.text.line_kind import PRINTED, is_personal, read_lines
from kb.types.incident import LogReading
from kb.types.vocabulary import LineKind

OWN_LINES = 4  # lines before or after a log that are still a remark on it
OWN_CHARS = 600  # of such a remark; more is a report, read as a whole by the diagnosis
REPORT_LINES = 15  # a message of more lines is a paste, whatever its lines look like
REPORT_CHARS = 1500
PROSE_CHARS = 1000  # of a line that are looked at
LEAD_CHARS = 2000  # before the output that are looked at for the language
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_LEADS_ON = (":", "：", "?", "？")  # ends of a remark that a log follows without an empty line
_QUESTION = ("?", "？")
_OUTPUT_KINDS = frozenset({"timeout", "root", "cascade", "teardown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Paste:
    """The person's own words, and whether there is program output beside them.

    `lead` is all that stands before the output, whoever wrote it; it may tell the language.
    """

    text: str
    has_output: bool
    lead: str = ""


def split(
    message: str, reading: LogReading, *, is_request: Callable[[str], bool] | None = None
) -> Paste:
    """Split `message`, which `reading` was read from.

    `is_request` tells whether a single line asks for something, even where it names an error.
    """
    lines = message.split("\n")
    outside = _outside_fences(lines)
    if outside is not None:
        return Paste(text=_remark(outside), has_output=True, lead=_lead(outside))
    output = _output_lines(message, reading)
    if not output:
        if len(lines) > REPORT_LINES or len(message) > REPORT_CHARS:
            return Paste(text=_first_paragraph(lines), has_output=True, lead=_lead(lines))
        return Paste(text=message.strip(), has_output=False)
    if len(lines) == 1:
        if is_request is not None and is_request(message):
            return Paste(text=message.strip(), has_output=False)
        return Paste(text="", has_output=True)
    head, tail = lines[: output[0]], lines[output[-1] + 1 :]
    text = "\n".join(filter(None, (_before(head), _after(tail))))
    return Paste(text=text, has_output=True, lead=_lead(head))


def without_orders(reading: LogReading, text: str, is_order: Callable[[str], bool]) -> LogReading:
    """The reading without lines that order the assistant about and are not the person's `text`."""
    own = set(text.splitlines())

    def cut(words: str) -> str:
        return "\n".join(line for line in words.split("\n") if line in own or not is_order(line))

    return _with_words(reading, cut)


def without_sentences(reading: LogReading, sentences: Sequence[str]) -> LogReading:
    """The reading with those sentences of the person's words taken out."""

    def cut(words: str) -> str:
        for sentence in sentences:
            words = words.replace(sentence, "")
        return words

    return _with_words(reading, cut)


def _with_words(reading: LogReading, cut: Callable[[str], str]) -> LogReading:
    """The reading with its words cut; cut words stand on no known line."""
    words = cut(reading.words)
    places = reading.word_places if words == reading.words else ()
    return replace(reading, words=words, word_places=places)


def _lead(lines: list[str]) -> str:
    return "\n".join(line for line in lines if line.strip())[:LEAD_CHARS]


def _outside_fences(lines: list[str]) -> list[str] | None:
    """The lines outside of code fences; None where there is no closed fence."""
    marks = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    if len(marks) < 2:
        return None
    outside = lines[: marks[0]]
    for closing, opening in zip(marks[1::2], [*marks[2::2], len(lines)], strict=False):
        outside += lines[closing + 1 : opening]
    return outside


def _output_lines(message: str, reading: LogReading) -> list[int]:
    """Numbers (from 0) of the lines a program printed; a line alone only where it is an event."""
    events = {event.line for event in reading.events if event.kind in _OUTPUT_KINDS}
    lines = read_lines(message)
    pasted = PRINTED | {LineKind.TABLE} if len(lines) > 1 else frozenset()
    return [
        line.number - 1
        for line in lines
        if line.kind in pasted
        or (
            line.number in events
            and not (line.kind is LineKind.PROSE and is_personal(line.text[:PROSE_CHARS]))
        )
    ]


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
    text = "\n".join(line.strip() for line in lines).strip("\n")
    return _remark(text.split("\n\n", 1)[0].split("\n"))


def _remark(lines: list[str]) -> str:
    """The lines as one remark; empty where they are too many to be one."""
    text = "\n".join(line.strip() for line in lines if line.strip())
    short = len(text) <= OWN_CHARS and text.count("\n") < OWN_LINES
    return text if short else ""
