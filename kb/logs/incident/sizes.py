"""Who sends or expects another size, where Gloo refuses what a peer sent.

Gloo's rings receive from the next rank: the one that refuses and its next one run different
collectives. The message names neither, the refusing process aborts without a traceback, and which
of the two is unlike the rest only their places can tell.
Source: https://github.com/pytorch/gloo/blob/main/gloo/allreduce.cc
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kb.evidence.stacks import Stack
from kb.logs.incident.endings import job_ranks
from kb.logs.incident.observations import Observations
from kb.logs.incident.ranks import WATCHDOG_ABORT, exit_code
from kb.types.incident import Event
from kb.types.vocabulary import EventRole

ALONE_STAGES = frozenset({"eval", "save"})  # which rank 0 often enters alone


def odd_sizes(observations: Observations) -> Iterator[tuple[int, Event, str]]:
    """The rank with another size, the refusal, and its part: ``sends`` or ``expects``."""
    refusals = [e for e in observations.log.of(EventRole.MISMATCH) if e.fields.get("received")]
    refusing = {_refusing(observations, event) for event in refusals}
    job = job_ranks(observations)
    if len(refusing) != 1 or None in refusing or len(job) < 3:
        return
    event = refusals[0]
    rank = refusing.pop() or 0
    sender = (rank + 1) % len(job)
    places: dict[tuple[str, ...], list[Stack]] = defaultdict(list)
    for stack in observations.places.stacks:
        places[(stack.place, *stack.path, *stack.own)].append(stack)
    of_sender = [there for there in places.values() if sender in {s.rank for s in there}]
    if len(places) > 1 and of_sender and len(of_sender[0]) * 2 <= len(observations.places.stacks):
        yield sender, event, "sends"
    elif len(places) == 1 and rank not in {stack.rank for stack in observations.places.stacks}:
        (together,) = places.values()
        if len(together) > 1 and (_by_data(together[0]) or _alone(observations, event, rank)):
            yield rank, event, "expects"


def _refusing(observations: Observations, refusal: Event) -> int | None:
    """The rank that refuses; where its line does not tell, the only one that aborted."""
    rows = observations.log.of(EventRole.EXIT_ROW)
    aborted = {row.rank for row in rows if exit_code(row) == WATCHDOG_ABORT}
    if refusal.rank is None and len(aborted) == 1:
        return aborted.pop()
    return refusal.rank


def _by_data(stack: Stack) -> bool:
    """Whether the size of what is exchanged there follows the rank's own data."""
    return "gather" in stack.call


def _alone(observations: Observations, refusal: Event, rank: int) -> bool:
    """Whether the refusing rank was the last to announce a stage that rank 0 enters alone."""
    log = observations.log
    near = [e for e in log.events if e.file == refusal.file and e.line < refusal.line]
    stages = [(e, log.stage(e)) for e in near if log.stage(e) and e.kind != "root"]
    announced = [item for item in stages if item[0].rank is not None]
    if not announced:
        return False
    last, stage = announced[-1]
    return last.rank == rank and stage in ALONE_STAGES
