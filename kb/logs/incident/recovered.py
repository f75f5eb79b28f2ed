"""Events of a start-up that the log itself takes back: connected after all, link up, training.

A client that is refused tries again, a link that boots is down before it is up. What is withdrawn
so is no error, and explains nothing. Which kinds of events are, and by which, stands in
data/events.yaml (`withdrawn_by`).
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.logs.event_log import EventVocabulary
from kb.types.incident import Event
from kb.types.vocabulary import EventRole

Place = tuple[str, frozenset[tuple[str, object]]]  # a kind of event and where it happened
TIMES = frozenset({"clock", "boot"})  # captured fields that tell when, not where
FAILURES = frozenset({"timeout", "root", "cascade", "teardown"})  # kinds of patterns


def without_recovered(events: Sequence[Event], vocabulary: EventVocabulary) -> tuple[Event, ...]:
    """The events without those that a later line of their file withdraws.

    A failure between the two shows another attempt, which withdraws nothing. `events` are in the
    order of the input.
    """
    withdrawn: set[int] = set()
    later: dict[Place, Event] = {}  # recoveries below, as far as the next failure
    file = ""
    for event in reversed(events):
        if event.file != file:
            later, file = {}, event.file
        kind = vocabulary.type_of(event)
        if kind is not None and kind.withdrawn_by:
            if any(_withdraws(other, event, vocabulary) for other in later.values()):
                withdrawn.add(id(event))
        elif event.kind in FAILURES:
            later = {}
        elif vocabulary.plays(event, EventRole.PROGRESS):
            later[event.event, frozenset()] = event
        elif event.event in vocabulary.recoveries:
            later[event.event, frozenset(_place(event).items())] = event
    return tuple(event for event in events if id(event) not in withdrawn)


def _withdraws(later: Event, event: Event, vocabulary: EventVocabulary) -> bool:
    """Whether a later event takes this one back; progress of the job does so for all its ranks.

    Any other event has to be of the same rank, host and place, where both name one.
    """
    kind = vocabulary.type_of(event)
    if kind is None or later.event not in kind.withdrawn_by:
        return False
    if kind.withdrawn_if and kind.withdrawn_if not in event.fields:
        return False
    if vocabulary.plays(later, EventRole.PROGRESS):
        return True
    there, here = _place(later), _place(event)
    return all(there[name] == here[name] for name in there.keys() & here)


def _place(event: Event) -> dict[str, object]:
    """Where an event happened, as far as its line says so."""
    known: dict[str, object] = {
        name: value for name, value in event.fields.items() if name not in TIMES
    }
    known |= {"rank": event.rank, "host": event.host}
    return {name: value for name, value in known.items() if value not in (None, "")}
