"""The part of a run in which it failed."""

from __future__ import annotations

import pytest

from kb.logs.incident.observations import WorkReport
from kb.logs.incident.stage import find_stage
from kb.types.incident import Event
from tests.kb.logs.builders import event, log, observed, report

FAILURE = event("collective_timeout", 1000, rank=0, file="a")


def main(seq: int | None) -> WorkReport | None:
    """The main report with this number."""
    return observed(report(1, 0, seq=seq)).main


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("preprocessing", "data"),
        ("frame_dataloader", "data"),
        ("main_process_first", "data"),
        ("saving", "save"),
        ("loading", "load"),
        ("load_barrier", "load"),
        ("evaluating", "eval"),
        ("train_step", "train"),
        ("train_start", "train"),
        ("frame_backward", "train"),
        ("frame_optimizer", "train"),
        ("inference", "inference"),
        ("frame_generate", "inference"),
        ("frame_init", "init"),
        ("cuda_graph", "init"),
        ("init_start", "init"),
        ("rendezvous_failed", "init"),
        ("store_connect", "init"),
        ("port_in_use", "init"),
        ("gloo_full_mesh", "init"),
        ("duplicate_gpu", "init"),
        ("store_timeout", "init"),
        ("no_interface", "init"),
        ("epoch_end", "unknown"),
    ],
)
def test_what_shows_a_stage(name: str, stage: str) -> None:
    """Each kind of event shows the part of a run it belongs to."""
    assert find_stage(log(event(name, 999, file="a"), FAILURE), FAILURE, None) == stage
    assert find_stage(log(event(name, 999, file="a")), None, None) == stage


@pytest.mark.parametrize(
    ("line", "stage"), [(600, "save"), (599, "train"), (1002, "save"), (1003, "train")]
)
def test_the_neighbourhood(line: int, stage: str) -> None:
    """400 lines before the failure and two after it count, in its file."""
    there = log(event("saving", line, file="a"), FAILURE)
    assert find_stage(there, FAILURE, main(50)) == stage
    elsewhere = log(event("saving", 999, file="b"), FAILURE)
    assert find_stage(elsewhere, FAILURE, main(50)) == "train"


def test_the_last_event_shows_it() -> None:
    """Of several the one that stands last; on one line ties go by pattern."""
    events = [event("saving", 998, file="a"), event("evaluating", 999, file="a")]
    assert find_stage(log(*events), FAILURE, None) == "eval"
    same = [
        event("saving", 999, file="a", pattern="b"),
        event("evaluating", 999, file="a", pattern="a"),
    ]
    assert find_stage(log(*same), FAILURE, None) == "save"


@pytest.mark.parametrize(
    ("others", "seq", "stage"),
    [
        # a number up to five is of the first moments
        ([], 5, "init"),
        ([], 6, "train"),
        ([], 0, "init"),
        # a bar of steps is training, but not in the first moments
        ([event("bar", 999, file="a")], None, "train"),
        ([event("bar", 999, file="a")], 5, "init"),
        ([event("bar", 999, file="b")], None, "unknown"),
        # communicators came up just before
        ([event("init_complete", 999, file="a")], None, "init"),
        ([event("init_complete", 999, file="a")], 5, "init"),
        # a group that has worked is past it, but not where setting up failed again
        ([event("init_complete", 999, file="a")], 6, "train"),
        ([event("init_start", 999, file="a")], 6, "train"),
        ([event("init_start", 999, file="a")], None, "init"),
        ([event("rendezvous_failed", 999, file="a")], 6, "init"),
        ([event("init_complete", 999, file="b")], 50, "train"),
        # nothing near: the last stage anywhere
        ([event("saving", 1, file="a"), event("evaluating", 2, file="a")], None, "eval"),
        ([], None, "unknown"),
    ],
)
def test_without_a_stage_nearby(others: list[Event], seq: int | None, stage: str) -> None:
    """Numbers, bars and initialisation decide where no event near the failure shows a stage."""
    named = None if seq is None else main(seq)
    assert find_stage(log(*others, FAILURE), FAILURE, named) == stage


@pytest.mark.parametrize(
    ("name", "stage"),
    [("shm_full", "init"), ("bootstrap_failed", "init"), ("cuda_oom", "unknown")],
)
def test_failures_of_setting_up(name: str, stage: str) -> None:
    """Some errors belong to the set-up of communicators unless something else is shown."""
    failure = event(name, 1000, file="a")
    assert find_stage(log(failure), failure, None) == stage
    assert find_stage(log(event("saving", 1, file="a"), failure), failure, None) == "save"
