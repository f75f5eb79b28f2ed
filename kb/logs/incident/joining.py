"""Who has not joined the job: what ranks wait for in the store, and how many have come."""

from __future__ import annotations

from kb.logs.event_log import EventLog
from kb.logs.incident.observations import number
from kb.types.incident import Event
from kb.types.vocabulary import EventRole

STORE_HOST = 0  # the rank that holds the store and counts who comes


def not_joined(log: EventLog) -> dict[int, Event]:
    """Ranks missing where the store counts who joined and each of those reports as itself."""
    waits = _waits(log)
    ranks = {event.rank for event in waits}
    for event in waits:
        present = number(event.fields.get("present"))
        world = number(event.fields.get("world_size"))
        if present is None or world is None or None in ranks or len(ranks) != present:
            continue
        missing = sorted(set(range(world)).difference(ranks))
        return {rank: event for rank in missing if 2 * len(missing) <= world}
    return {}


def awaited(log: EventLog) -> dict[int, Event]:
    """Ranks that others wait for in the store and that do not wait there themselves.

    The store's host counts clients before it publishes anything: while it does, it is not late.
    """
    waits = _waits(log)
    here = {event.rank for event in waits}
    if any(event.fields.get("present") for event in waits):
        here.add(STORE_HOST)
    peers = {number(event.fields.get("peer")): event for event in reversed(waits)}
    return {
        rank: peers[rank]
        for rank in sorted(peer for peer in peers if peer is not None)
        if rank not in here
    }


def _waits(log: EventLog) -> list[Event]:
    """Waits of ranks that have reached the store; who cannot connect has not."""
    return [
        event
        for event in log.of(EventRole.STORE_WAIT)
        if event.fields.keys() & {"present", "peer", "key"}
    ]
