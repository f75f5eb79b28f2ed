"""Ranks that report no timeout and whose last words tell of long work of their own.

The others wait for them: who was still evaluating, saving or reading when the wait began is where
to look, and not the ranks that report.
"""

from __future__ import annotations

from kb.logs.incident.observations import Observations
from kb.types.incident import Event
from kb.types.vocabulary import Stage

# Parts of a run in which one rank may work alone. Every rank trains and starts up.
LONG_WORK: frozenset[Stage] = frozenset({"data", "eval", "save", "load", "inference"})


def at_work(observations: Observations) -> dict[int, tuple[Event, Stage]]:
    """The silent ranks that are at work, each with its last line before the timeouts and its part.

    Nothing where no rank reports a timeout: then nobody is known to wait.
    """
    main = observations.main
    if main is None:
        return {}
    silent = set(observations.incident.ranks_silent)
    last: dict[int, Event] = {}
    for event in observations.log.events:
        is_before = event.file != main.event.file or event.line < main.line
        if event.rank in silent and event.rank is not None and is_before:
            last[event.rank] = event
    stages = ((rank, last[rank], observations.log.stage(last[rank])) for rank in sorted(last))
    return {rank: (event, stage) for rank, event, stage in stages if stage in LONG_WORK and stage}
