"""A few moments, in order."""

from __future__ import annotations

from kb.logs.incident.timeline import A_PATTERN, MAX_ITEMS, build_timeline
from kb.types.incident import Event, FirstError, Incident, TimelineItem, Wave
from kb.types.knowledge import Bilingual
from tests.kb.logs.builders import event, knowledge, log


def lines(*events: Event, waves: tuple[Wave, ...] = (), error: FirstError | None = None) -> list:
    """The lines of the timeline."""
    return [
        item.line for item in build_timeline(log(*events), Incident(waves=waves, first_error=error))
    ]


def test_the_first_lines_of_each_pattern() -> None:
    """Three a pattern; facts, teardown and noise are no moments."""
    events = [event("store_timeout", line) for line in range(1, A_PATTERN + 3)]
    others = [event("cuda_oom", 10), event("peer_closed", 11), event("train_step", 12)]
    hidden = [event("setting", 13), event("teardown", 14), event("advice", 15)]
    assert lines(*events, *others, *hidden) == [1, 2, 3, 10, 11, 12]
    same_kind = [event("store_timeout", line, pattern="p") for line in (20, 21)]
    assert lines(*events, *same_kind) == [1, 2, 3, 20, 21]


def test_starts_of_waves_and_the_first_error_are_always_there() -> None:
    """However many lines of their patterns stand before them, in the right file."""
    events = [event("store_timeout", line) for line in range(1, 8)]
    wave = Wave(first_line=5, last_line=7)
    error = FirstError(rank=None, line=7, kind="x", text="")
    assert lines(*events, waves=(wave,), error=error) == [1, 2, 3, 5, 7]
    elsewhere = Wave(first_line=5, last_line=7, file="b")
    assert lines(*events, waves=(elsewhere,)) == [1, 2, 3]


def test_it_is_bounded() -> None:
    """Forty moments at most, the first ones."""
    events = [event("store_timeout", line, pattern=f"p{line}") for line in range(1, 100)]
    assert lines(*events) == list(range(1, MAX_ITEMS + 1))


def test_a_moment_holds_what_was_printed() -> None:
    """Clock, rank, meaning, place and kind; an unknown pattern's meaning is its event's."""
    known = event("cuda_oom", 3, rank=2, file="a", clock="12:00:01")
    other = event("cuda_oom", 4, pattern="gone")
    lost = Event(pattern_id="gone", kind="root", event="gone", line=5, text="")
    pattern = next(p for p in knowledge().patterns if p.id == known.pattern_id)
    kind = next(t for t in knowledge().events if t.id == "cuda_oom")
    first, second, third = build_timeline(log(known, other, lost), Incident())
    assert first == TimelineItem(
        time="12:00:01", rank=2, what=pattern.means, line=3, kind="root", file="a"
    )
    assert (second.what, second.time, second.rank) == (kind.means, "", None)
    assert third.what == Bilingual(zh="gone", en="gone")
