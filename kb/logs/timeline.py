"""A few moments a person should see, in order."""

from __future__ import annotations

from collections.abc import Sequence

from kb.types import Bilingual, Event, FirstError, Pattern, TimelineItem, Wave

MAX_ITEMS = 40
A_KIND = 3  # items a pattern: the first ones tell the story
_SHOWN = ("root", "timeout", "cascade", "context")


def build_timeline(
    events: Sequence[Event],
    means: dict[str, Bilingual],
    waves: Sequence[Wave],
    error: FirstError | None,
) -> tuple[TimelineItem, ...]:
    """The first lines of each kind of event, starts of waves and the first error, by place."""
    counts: dict[str, int] = {}
    starts = {(wave.file, wave.first_line) for wave in waves}
    starts |= {(error.file, error.line)} if error is not None else set()
    chosen: list[Event] = []
    for event in events:
        if event.kind not in _SHOWN:
            continue
        must = (event.file, event.line) in starts
        counts[event.pattern_id] = counts.get(event.pattern_id, 0) + 1
        if must or counts[event.pattern_id] <= A_KIND:
            chosen.append(event)
    chosen = chosen[:MAX_ITEMS]
    return tuple(
        TimelineItem(
            time=event.fields.get("clock", ""),
            rank=event.rank,
            what=means.get(event.pattern_id, Bilingual(zh=event.event, en=event.event)),
            line=event.line,
            kind=event.kind,
            file=event.file,
        )
        for event in chosen
    )


def meanings(patterns: Sequence[Pattern]) -> dict[str, Bilingual]:
    """What each pattern means, by id."""
    return {pattern.id: pattern.means for pattern in patterns}
