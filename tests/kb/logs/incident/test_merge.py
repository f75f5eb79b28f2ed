"""Two readings of one incident as one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.knowledge.load import load_knowledge
from kb.logs.event_log import EventVocabulary
from kb.logs.incident.merge import MAX_EVENTS, merge_readings, other_job
from kb.logs.reader import LogReader
from kb.settings import shipped_data
from kb.types.incident import Culprit, Fact, LogReading, RankState
from kb.types.knowledge import Bilingual

WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, "
    "Timeout(ms)=600000) ran for 600068 milliseconds before timing out.\n"
)
FIRST = "Training hangs on two nodes.\n" + WATCHDOG.format(rank=0)
LATER = (
    "[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.\n"
    + WATCHDOG.format(rank=1)
)


@pytest.fixture(scope="module")
def reader() -> LogReader:
    """A reader with the shipped patterns."""
    return LogReader(EventVocabulary.of(load_knowledge(shipped_data())), cache=None)


def merged(reader: LogReader, first: str, later: str) -> LogReading:
    """The two texts, read apart and merged."""
    return merge_readings(reader.read_text(first), reader.read_text(later), reader.vocabulary)


def test_merging_is_pasting_together(reader: LogReader) -> None:
    """Two pastes give the incident of one paste with both in it."""
    both, whole = merged(reader, FIRST, LATER), reader.read_text(FIRST + LATER)
    for name in ("op", "seq", "timeout_ms", "ranks_reporting", "first_error", "backend", "lines"):
        assert getattr(both.incident, name) == getattr(whole.incident, name), name
    assert [(e.pattern_id, e.line) for e in both.events] == [
        (e.pattern_id, e.line) for e in whole.events
    ]
    assert {fact.name for fact in both.incident.facts} == {f.name for f in whole.incident.facts}
    assert both.words == whole.words


def test_lines_go_on_counting(reader: LogReader) -> None:
    """The first error of the later log has its line after those of the first."""
    first = merged(reader, FIRST, LATER).incident.first_error
    assert first is not None
    assert first.line == FIRST.count("\n") + 1


def test_what_dumps_said_stays(reader: LogReader) -> None:
    """Facts, ranks and culprits without a line came from dumps; no event tells them again."""
    reading = reader.read_text(WATCHDOG.format(rank=0))
    culprit = Culprit(rank=7, reason=Bilingual(zh="落后", en="behind"))
    incident = replace(
        reading.incident,
        facts=(*reading.incident.facts, Fact(name="fr_host_alive", detail="rank 7")),
        ranks=(*reading.incident.ranks, RankState(rank=7, state="idle")),
        culprit_ranks=(culprit,),
        fault_type="cpu_stall",
    )
    known = replace(reading, incident=incident)
    later = reader.read_text(WATCHDOG.format(rank=1))
    both = merge_readings(known, later, reader.vocabulary).incident
    assert "fr_host_alive" in [fact.name for fact in both.facts]
    assert 7 in [state.rank for state in both.ranks]
    assert culprit in both.culprit_ranks
    assert both.fault_type == "cpu_stall"


def test_events_stay_bounded(reader: LogReader) -> None:
    """However much is merged, the first and the last events are kept and no more."""
    reading = reader.read_text(LATER)
    many = replace(reading, events=reading.events * (MAX_EVENTS // len(reading.events)))
    both = merge_readings(many, reading, reader.vocabulary)
    assert len(both.events) == MAX_EVENTS
    assert both.events[0] == reading.events[0]
    assert both.events[-1].pattern_id == reading.events[-1].pattern_id


@pytest.mark.parametrize(
    ("first", "later", "named"),
    [
        (FIRST, LATER, ""),
        ("PyTorch version: 2.3.0\n" + FIRST, "PyTorch version: 2.6.0\n" + LATER, "torch"),
        (
            "2025-06-01 12:00:00 " + WATCHDOG.format(rank=0),
            "2025-06-03 12:00:00 " + WATCHDOG.format(rank=0),
            "48 h",
        ),
        (
            "2025-06-01 12:00:00 " + WATCHDOG.format(rank=0),
            "2025-06-01 12:10:00 " + WATCHDOG.format(rank=1),
            "",
        ),
    ],
    ids=["same", "torch", "days apart", "minutes apart"],
)
def test_another_job_is_told_by_what_differs(
    reader: LogReader, first: str, later: str, named: str
) -> None:
    """Another torch, backend, world size or day make another job; nothing known makes none."""
    why = other_job(reader.read_text(first), reader.read_text(later))
    assert (named in why) if named else why == ""
