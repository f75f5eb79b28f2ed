"""What a reading knows of its input, as text again: words, scripts, settings and lines of events.

Reading that text again leads to the same diagnosis, however long the log was.
"""

from __future__ import annotations

import hashlib

from kb.types.incident import LogReading

TRANSCRIPT_CHARS = 128 * 1024  # twice the scripts and settings that are read
_ORDER = ("root", "timeout", "context", "cascade", "teardown")  # what goes first where room is


def transcript(reading: LogReading) -> str:
    """The known lines of the input in their order, redacted and of bounded length.

    Where lines are left out between two others there is nothing in their place; files are parted
    by a blank line.
    """
    words = reading.words.splitlines()
    places = reading.word_places or [("", number - len(words)) for number in range(len(words))]
    lines = dict(zip(places, words, strict=False))
    lines |= {(line.file, line.number): line.text for line in reading.lines}
    size = sum(map(len, lines.values()))
    events = sorted(
        reading.events,
        key=lambda each: (
            _ORDER.index(each.kind) if each.kind in _ORDER else len(_ORDER),
            each.file,
            each.line,
            -len(each.text),
            each.text,
        ),
    )
    for event in events:
        known = lines.get((event.file, event.line), "")
        if len(known) >= len(event.text) or size + len(event.text) > TRANSCRIPT_CHARS:
            continue
        lines[event.file, event.line] = event.text
        size += len(event.text) - len(known) + 1
    files: dict[str, list[str]] = {}
    for (file, _), text in sorted(lines.items()):
        files.setdefault(file, []).append(text)
    return "\n\n".join("\n".join(texts) for texts in files.values())


def transcript_digest(reading: LogReading) -> str:
    """What tells this input from others: the same log pasted, uploaded or linked has the same."""
    text = f"{reading.incident.lines}\n{transcript(reading)}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
