"""An attempt of a job as its output was read: what is kept of it."""

from __future__ import annotations

import datetime as dt

from app.render.capture import shows_cause
from kb.incidents.attempts import Attempt
from kb.text.template import line_template
from kb.types.answer import Diagnosis
from kb.types.incident import LogReading

MAX_ROOT = 120  # characters


def attempt_of(
    reading: LogReading, answer: Diagnosis, *, exit_code: int | None, start: int | None
) -> Attempt:
    """What tells this attempt from others: its root, and how far it came."""
    cause = answer.causes[0].id if shows_cause(answer) else ""
    first = reading.incident.first_error
    masked = line_template(first.text)[:MAX_ROOT] if first is not None else ""
    return Attempt(
        ended_at=_now(),
        start=start,
        exit_code=exit_code,
        root=cause or masked,
        cause=cause,
        last_step=last_step(reading),
    )


def attempt_that_ended_well(start: int | None) -> Attempt:
    """An attempt of which nothing needs to be known."""
    return Attempt(ended_at=_now(), start=start, exit_code=0)


def last_step(reading: LogReading) -> int | None:
    """The highest step the output shows."""
    steps = [text for event in reading.events if (text := event.fields.get("step", "")).isdigit()]
    return max(map(int, steps), default=None)


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
