"""Silent ranks that say what work they are in: tables of events and ranks."""

from __future__ import annotations

import pytest

from kb.logs.incident.at_work import at_work
from kb.types.incident import Event
from tests.kb.logs.builders import event, observed, report

WAITING = (report(8, 1), report(9, 2))  # ranks 1 and 2 report a timeout, rank 0 does not


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ((), {}),
        ((event("evaluating", 1, rank=0),), {0: (1, "eval")}),
        ((event("saving", 1, rank=0),), {0: (1, "save")}),
        ((event("preparing", 1, rank=0),), {0: (1, "data")}),
        ((event("generating", 1, rank=0),), {0: (1, "inference")}),
        # the last line counts: who went on to train is not known to work alone
        ((event("evaluating", 1, rank=0), event("saving", 2, rank=0)), {0: (2, "save")}),
        ((event("evaluating", 1, rank=0), event("train_step", 2, rank=0)), {}),
        # who reports a timeout waits; a line of nobody accuses nobody
        ((event("evaluating", 1, rank=1),), {}),
        ((event("evaluating", 1),), {}),
        # what is printed once the others have given up began too late
        ((event("evaluating", 10, rank=0),), {}),
    ],
)
def test_last_words_tell_who_is_at_work(
    before: tuple[Event, ...], expected: dict[int, tuple[int, str]]
) -> None:
    """Of the silent ranks those whose last line before the timeouts names long work."""
    found = at_work(observed(*before, *WAITING))
    assert {rank: (line.line, stage) for rank, (line, stage) in found.items()} == expected


def test_without_a_timeout_nobody_waits() -> None:
    """A rank that evaluates is no culprit of a run in which no rank reports a timeout."""
    assert at_work(observed(event("evaluating", 1, rank=0))) == {}
