"""How ranks ended, compared: who was ended from outside, lost by all others, late, or alive."""

from __future__ import annotations

from kb.logs.event_log import EventLog
from kb.logs.incident.observations import Observations
from kb.logs.incident.ranks import exit_code
from kb.types.incident import Event
from kb.types.vocabulary import EventRole

TERMINATED = -15  # SIGTERM
MIN_WITNESSES = 2  # ranks that say the same of another


def alive_at_the_end(observations: Observations) -> dict[int, Event]:
    """Silent ranks that still ran when the launcher ended them: they waited for nobody."""
    log = observations.log
    closed = _ended_by_launcher(log)
    return {
        event.rank: event
        for event in log.of(EventRole.EXIT_ROW)
        if event.rank is not None
        and event.rank in observations.incident.ranks_silent
        and exit_code(event) == TERMINATED
        and event.fields.get("pid") in closed
    }


def ended_from_outside(observations: Observations) -> dict[int, Event]:
    """The one rank that SIGTERM ended, which the launcher had not sent it; its peers lost it.

    Where ranks timed out, or several ended so, the launcher's own lines may be missing.
    """
    log = observations.log
    rows = {e.rank: e for e in log.of(EventRole.EXIT_ROW) if exit_code(e) == TERMINATED}
    lost = {event.rank for event in _lost_peers(log)}
    if len(rows) != 1 or log.of_kind("timeout") or len(lost - {None}) < MIN_WITNESSES:
        return {}
    ((rank, row),) = rows.items()
    outside = rank is not None and row.fields.get("pid") not in _ended_by_launcher(log)
    return {rank: row} if outside and rank is not None and rank not in lost else {}


def lost_by_all(observations: Observations) -> dict[int, Event]:
    """The one rank of the job that reports nothing while all others lost a peer, none timed out.

    Where collectives differ, a rank leaves because of another one.
    """
    log = observations.log
    lost = {event.rank: event for event in reversed(_lost_peers(log)) if event.rank is not None}
    missing = job_ranks(observations) - lost.keys()
    broke = {event.rank for event in log.of_kind("root")}
    if log.of_kind("timeout") or log.of(EventRole.MISMATCH):
        return {}
    if len(lost) < MIN_WITNESSES or len(missing) != 1 or missing & broke:
        return {}
    return {missing.pop(): min(lost.values(), key=lambda event: (event.file, event.line))}


def came_late(observations: Observations) -> dict[int, Event]:
    """The one rank that lost its peers after all others had timed out in the same call.

    Its own limit had not run out: it came last. Of two such ranks neither can be told.
    """
    stacks = observations.places.stacks
    spots = {(stack.place, stack.spot, stack.own) for stack in stacks}
    here = {stack.rank for stack in stacks if stack.waits}
    if len(spots) != 1 or not here >= job_ranks(observations):
        return {}
    timed_out = set(observations.incident.ranks_reporting)
    lost = [event for event in _lost_peers(observations.log) if event.rank not in timed_out]
    late = {event.rank: event for event in reversed(lost) if event.rank is not None}
    if len(late) != 1 or here - late.keys() != timed_out or len(timed_out) < MIN_WITNESSES:
        return {}
    waited = [e.line for e in observations.log.of(EventRole.RANK_WAITED) if e.rank in timed_out]
    ((rank, event),) = late.items()
    return {rank: event} if event.line > max(waited) else {}


def job_ranks(observations: Observations) -> set[int]:
    """The ranks of the job: its world size where it is known, else all up to the highest shown."""
    shown = {stack.rank for stack in observations.places.stacks}
    shown |= set(observations.incident.ranks_reporting)
    shown |= {event.rank for event in observations.log.of(EventRole.FAILED_RANK_ROW)}
    shown |= {event.rank for event in observations.log.of(EventRole.PEER_CLOSED)}
    highest = max((rank for rank in shown if rank is not None), default=-1)
    return set(range(max(observations.incident.world_size or 0, highest + 1)))


def _lost_peers(log: EventLog) -> list[Event]:
    return log.of(EventRole.PEER_CLOSED)


def _ended_by_launcher(log: EventLog) -> set[str]:
    """Processes the launcher says it sends SIGTERM."""
    return {event.fields.get("process", "") for event in log.of(EventRole.CLOSING_SIGNAL)} - {""}
