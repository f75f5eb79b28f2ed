"""The few log lines worth searching with."""

from __future__ import annotations

from collections.abc import Sequence

from kb.types.incident import Event, Incident

EXCERPT_CHARS = 4000
LINE_CHARS = 300
_ORDER = {"root": 0, "timeout": 1, "context": 2, "cascade": 3, "teardown": 4}
LINES_A_PATTERN = 2


def excerpt(events: Sequence[Event], incident: Incident) -> str:
    """The first error, then roots, timeouts and context: at most two lines a pattern, in order."""
    chosen: dict[tuple[str, int], Event] = {}
    counts: dict[str, int] = {}
    texts: set[str] = set()
    size = 0
    first = incident.first_error
    ranked = sorted(
        (event for event in events if event.kind in _ORDER),
        key=lambda e: (
            not (first and e.line == first.line and e.file == first.file and e.kind == "root"),
            _ORDER[e.kind],
            e.file,
            e.line,
            e.pattern_id,
        ),
    )
    for event in ranked:
        if counts.get(event.pattern_id, 0) >= LINES_A_PATTERN or event.text in texts:
            continue
        text = event.text[:LINE_CHARS]
        if size + len(text) > EXCERPT_CHARS:
            break
        texts.add(event.text)
        counts[event.pattern_id] = counts.get(event.pattern_id, 0) + 1
        chosen[event.file, event.line] = event
        size += len(text) + 1
    return "\n".join(chosen[key].text[:LINE_CHARS] for key in sorted(chosen))
