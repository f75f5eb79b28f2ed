"""Events of a person's lines that the person denies, asks or tells of another time.

"No `NVRM: Xid`" is no Xid: what is not said to be the trouble is no first error, no rank's death
and the source of no fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kb.logs.event_log import EventVocabulary
from kb.logs.scan.scanner import expression
from kb.text.sentence import Mention
from kb.types.incident import Event
from kb.types.vocabulary import Polarity, Standing

ASSERTED = (None, Polarity.TROUBLE, Polarity.HELPED)
ERRORS = frozenset({"root", "cascade", "teardown"})  # kinds of patterns that tell of an error


def without_denied(
    events: Sequence[Event], words: Mapping[tuple[str, int], str], vocabulary: EventVocabulary
) -> tuple[Event, ...]:
    """The events without errors that a person's line names and does not assert.

    `words` are the lines a person wrote, by file and number.
    """
    on_line: dict[tuple[str, int], list[Event]] = defaultdict(list)
    for event in events:
        if event.kind in ERRORS and (event.file, event.line) in words:
            on_line[event.file, event.line].append(event)
    denied = {
        id(event)
        for place, named in on_line.items()
        for event in _denied(named, words[place], vocabulary)
    }
    return tuple(event for event in events if id(event) not in denied)


def _denied(events: Sequence[Event], line: str, vocabulary: EventVocabulary) -> list[Event]:
    patterns = {pattern.id: pattern for pattern in vocabulary.patterns}
    mentions: list[Mention] = []
    found: list[Event] = []
    for event in events:
        match = expression(patterns[event.pattern_id]).search(line)
        if match is not None:
            found.append(event)
            mentions.append(
                Mention(start=match.start(), end=match.end(), standing=Standing.TROUBLE)
            )
    judged = vocabulary.polarity.read(line).judge(mentions)
    return [
        event for event, polarity in zip(found, judged, strict=True) if polarity not in ASSERTED
    ]
