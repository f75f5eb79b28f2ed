"""In which part of a run it happened, from the neighbourhood of the failure."""

from __future__ import annotations

from kb.logs.event_log import EventLog
from kb.logs.incident.observations import WorkReport
from kb.types.incident import Event
from kb.types.vocabulary import EventRole, Stage

NEAR_LINES = 400  # lines before the failure that show its stage
LINES_AFTER = 2  # a line printed with the failure may stand below it
HEALTHY_KINDS = ("context", "fact")  # of lines that a run without faults prints, too
EARLY_SEQ = 5  # collectives of a group's first moments: id exchange, first barrier


def find_stage(log: EventLog, failure: Event | None, main: WorkReport | None) -> Stage:
    """The stage of the failure, or `unknown`."""
    if failure is None:  # a hang that printed nothing: the last stage shown is where it hangs
        return _last_stage(log)
    near = [
        event
        for event in log.events
        if event.file == failure.file
        and failure.line - NEAR_LINES <= event.line <= failure.line + LINES_AFTER
    ]
    early = main is not None and main.seq is not None and main.seq <= EARLY_SEQ
    past = main is not None and main.seq is not None and not early
    shown = [
        (event.line, event.pattern_id, stage)
        for event in near
        if (stage := log.stage(event))
        and not (past and stage == "init" and event.kind in HEALTHY_KINDS)
    ]
    if shown:
        return max(shown)[2]
    if any(log.plays(event, EventRole.TRAINING_BAR) for event in near) and not early:
        return "train"
    if past:  # of a group that has worked: when it came up says nothing any more
        return "train"
    if early or any(log.plays(event, EventRole.INIT_COMPLETE) for event in near):
        return "init"
    stage = _last_stage(log)
    setting_up = log.plays(failure, EventRole.INIT_FAILURE)
    return "init" if stage == "unknown" and setting_up else stage


def _last_stage(log: EventLog) -> Stage:
    """The last stage shown anywhere, for logs whose failure has no neighbourhood."""
    stages = (log.stage(event) for event in reversed(log.events))
    return next((stage for stage in stages if stage is not None), "unknown")
