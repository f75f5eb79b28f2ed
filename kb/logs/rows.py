"""Tables whose facts stand on lines of their own: torchrun's list of failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kb.types import Event

ROW_LINES = 4  # rank, exitcode, error_file and traceback follow each other
_MEMBERS = frozenset({"exit_row", "signal_row", "signal_death"})


def join_rows(events: Sequence[Event]) -> tuple[Event, ...]:
    """Give exit codes and signals the rank that stands above them in the failure table."""
    joined: list[Event] = []
    row: Event | None = None
    for event in events:
        if event.event == "rank_row":
            row = event
        elif (
            row is not None
            and event.event in _MEMBERS
            and event.rank is None
            and event.file == row.file
            and 0 < event.line - row.line <= ROW_LINES
        ):
            event = replace(event, rank=row.rank)  # noqa: PLW2901 - the same event, its rank known
        joined.append(event)
    return tuple(joined)
