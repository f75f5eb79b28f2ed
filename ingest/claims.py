"""Which causes a text names, by cue words. What is found is the text's claim, nobody's finding."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.wordlists import WordLists

MAX_CAUSES = 5  # a page that names more has listed everything there is
MAX_LOOSE_CAUSES = 2  # without a section on causes only what is named most often is taken


def causes_in(units: Sequence[str], words: WordLists) -> tuple[str, ...]:
    """Cause ids the points of a section on causes name, in the order in which they do.

    A unit's strong cues are taken; its weak ones only when it has no strong one.
    """
    found: dict[str, None] = {}
    for unit in units:
        strong = _strong(unit, words)
        for cause in strong or _weak(unit, words):
            found.setdefault(cause)
    return tuple(found)[:MAX_CAUSES]


def causes_anywhere(text: str, words: WordLists) -> tuple[str, ...]:
    """Cause ids that strong cues name in a text without such a section, most mentions first."""
    counts = {cue.cause: len(cue.strong.findall(text)) for cue in words.cues}
    named = [cause for cause, count in counts.items() if count]
    return tuple(sorted(named, key=lambda cause: (-counts[cause], cause))[:MAX_LOOSE_CAUSES])


def _strong(unit: str, words: WordLists) -> tuple[str, ...]:
    places = [(m.start(), cue.cause) for cue in words.cues if (m := cue.strong.search(unit))]
    return tuple(cause for _, cause in sorted(places))


def _weak(unit: str, words: WordLists) -> tuple[str, ...]:
    """The cause of the first weak cue: one word is thin ground, so one cause."""
    places = [
        (m.start(), cue.cause) for cue in words.cues if cue.weak and (m := cue.weak.search(unit))
    ]
    return tuple(cause for _, cause in sorted(places)[:1])
