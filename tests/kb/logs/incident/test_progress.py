"""Progress of ranks compared: lines as programs print them, who is unlike, and in which words."""

from __future__ import annotations

import itertools
import random

import pytest

from kb.logs import LogReader
from kb.logs.incident.progress import MUCH_SLOWER, SLOWER
from kb.types.incident import Incident

TIMED_OUT = "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 4000ms for "
TIMED_OUT += "recv operation to complete"
EPOCH, EARLY, STEPS = "uneven_epoch_steps", "finished_early", "behind_in_steps"


def read(reader: LogReader, *lines: str) -> Incident:
    """The incident of these lines."""
    return reader.read_text("\n".join(lines)).incident


def waits(*ranks: int) -> list[str]:
    """Ranks that time out."""
    return [f"[rank{rank}]: {TIMED_OUT}" for rank in ranks]


def shown(incident: Incident, name: str) -> tuple[list[int], str | None]:
    """Ranks named, and the detail of one fact."""
    details = {fact.name: fact.detail for fact in incident.facts}
    return [culprit.rank for culprit in incident.culprit_ranks], details.get(name)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [f"[rank{rank}] epoch done after {14 if rank == 2 else 16} steps" for rank in range(4)],
            ([2], "rank 2: 14; rank 0,1,3: 16"),
            id="one-of-four",
        ),
        pytest.param(
            [f"rank {rank}: epoch 3 finished, {99 - (rank == 7)} batches" for rank in range(8)],
            ([7], "rank 7: 98; rank 0,1,2,3,4,5,6: 99"),
            id="one-of-eight",
        ),
        pytest.param(
            [
                f"[default{rank}]:finished epoch 0 ({20 + (rank == 1)} iterations)"
                for rank in range(3)
            ],
            ([1], "rank 1: 21; rank 0,2: 20"),
            id="one-has-more",
        ),
        pytest.param(
            ["[rank0]: epoch 0 done after 16 steps", "[rank1]: epoch 0 done after 14 steps"],
            ([1], "rank 1: 14; rank 0: 16"),
            id="two-ranks",
        ),
        pytest.param(
            [f"[rank{rank}] epoch done after {14 + rank % 2} steps" for rank in range(4)],
            ([], "rank 0,2: 14; rank 1,3: 15"),
            id="no-usual-number",
        ),
        pytest.param(
            [f"[rank{rank}] epoch done after 16 steps" for rank in range(4)], ([], None), id="even"
        ),
        # numbers of two epochs are not compared
        pytest.param(
            ["[rank0] epoch 1 done after 16 steps", "[rank1] epoch 2 done after 14 steps"],
            ([], None),
            id="two-epochs",
        ),
        pytest.param(
            ["epoch 0 done after 16 steps", "epoch 0 done after 9 steps"], ([], None), id="who"
        ),
    ],
)
def test_epochs_of_unequal_length(
    reader: LogReader, lines: list[str], expected: tuple[list[int], str | None]
) -> None:
    """The rank whose epoch has another number of steps than that of most."""
    everyone = range(len(lines))
    assert shown(read(reader, *lines, *waits(*everyone)), EPOCH) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["[default3]:rank 3 finished training epoch 0", *waits(0, 1, 2)], ([3], "rank 3")),
        (
            ["[rank5]: epoch 2 done", "[rank6]: epoch 2 done", *waits(0, 1, 2, 3, 4, 7)],
            ([5, 6], "rank 5,6"),
        ),
        # rank 0 prints for all
        (["[rank0]: Epoch 0 finished, loss 0.2", *waits(1, 2, 3)], ([0], None)),
        # most have ended it
        (["[rank1]: epoch 2 done", "[rank2]: epoch 2 done", *waits(0)], ([], None)),
        # training went on after it
        (
            [
                "[rank3]: epoch 0 done",
                *(f"[rank0]: epoch 1 step {n} loss 0.5" for n in range(40)),
                *waits(0, 1, 2, 3),
            ],
            ([], None),
        ),
        # printed after the failure
        ([*waits(0, 1, 2), *["x"] * 30, "[rank3]: epoch 0 done"], ([], None)),
    ],
)
def test_who_had_ended_the_epoch(
    reader: LogReader, lines: list[str], expected: tuple[list[int], str | None]
) -> None:
    """A rank that is through with its data while more others wait inside the epoch."""
    assert shown(read(reader, *lines), EARLY) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [f"rank {rank} step {118 if rank == 3 else 120}/500" for rank in range(4)],
            ([3], "rank 3: 118; rank 0,1,2: 120"),
            id="one-behind",
        ),
        pytest.param(
            [f"[default{rank}]:INFO batch {7 - (rank > 6)}/40 done" for rank in range(8)],
            ([7], "rank 7: 6; rank 0,1,2,3,4,5,6: 7"),
            id="under-torchrun",
        ),
        pytest.param(
            ["[rank0] iteration 8 loss 0.2 lr 1e-4", "[rank1] iteration 6 loss 0.3 lr 1e-4"],
            ([1], "rank 1: 6; rank 0: 8"),
            id="two-ranks",
        ),
        pytest.param([f"[rank{r}] iteration {8 - r}" for r in (0, 1)], ([], None), id="one"),
        pytest.param([f"rank {r} step {50 + r}" for r in range(4)], ([], None), id="spread"),
        pytest.param(
            [f"rank {rank} step {(51, 50, 50, 49, 50)[rank]}" for rank in range(5)],
            ([3], "rank 3: 49; rank 0: 51; rank 1,2,4: 50"),
            id="around-the-usual",
        ),
        pytest.param([f"[rank{rank}] step 120/500" for rank in range(4)], ([], None), id="level"),
        pytest.param(
            [f"[rank{rank}] step {120 if rank else 121}/500" for rank in range(4)],
            ([], None),
            id="most-are-lowest",
        ),
        # lines of two forms are two counters
        pytest.param(
            ["[rank0] step 120/500", "[rank1] skipped step 7 for a bad gradient"],
            ([], None),
            id="two-forms",
        ),
        pytest.param(["step 120/500", "step 118/500"], ([], None), id="nobody's"),
    ],
)
def test_the_lowest_step(
    reader: LogReader, lines: list[str], expected: tuple[list[int], str | None]
) -> None:
    """The last step each rank printed in one form; the fewer at the lowest are behind."""
    everyone = range(len(lines))
    assert shown(read(reader, *lines, *waits(*everyone)), STEPS) == expected


def test_one_step_without_a_failure_is_nothing(reader: LogReader) -> None:
    """The next line of that rank may be cut off; two steps are more than one line."""
    rows = [f"rank {rank} step {120 if rank else 119}/500" for rank in range(4)]
    assert shown(read(reader, "it hangs here:", *rows), STEPS) == ([], None)
    rows = [f"rank {rank} step {120 if rank else 118}/500" for rank in range(4)]
    assert shown(read(reader, "it hangs here:", *rows), STEPS)[0] == [0]


def test_the_last_step_of_a_rank_counts(reader: LogReader) -> None:
    """Ranks print in any order; what counts is where each one was last."""
    names = random.Random(7).sample(range(4), 4)
    prints = [(step, names[place]) for step in range(12) for place in range(4)]
    rows = [f"rank {rank} step {step}/40" for step, rank in prints if step < 9 or rank != names[1]]
    assert shown(read(reader, *rows, *waits(0, 1, 2, 3)), STEPS)[0] == [names[1]]


@pytest.mark.parametrize("dress", ["[rank{}] step {} loss 0.{}", "[rank{}]: step {} loss 0.{}"])
def test_prints_that_share_a_line_count_for_their_ranks(reader: LogReader, dress: str) -> None:
    """One rank wrote before the other's newline: nobody is behind, or who really is."""
    said = [dress.format(rank, step, 9 - step) for step in (1, 2) for rank in range(4)]
    rows = [said[0], said[1] + said[2], said[3], said[5] + said[4], said[7], said[6]]
    assert shown(read(reader, *rows, *waits(0, 1, 2, 3)), STEPS) == ([], None)
    rows = [said[0], said[1] + said[2], said[3], said[5] + said[4], said[7]]
    behind = shown(read(reader, *rows, *waits(0, 1, 2, 3)), STEPS)
    assert behind == ([2], "rank 2: 1; rank 0,1,3: 2")


def steps(*seconds: float) -> list[str]:
    """One line a step, printed after so many seconds each."""
    clock = itertools.accumulate(seconds, initial=0.0)
    return [
        f"[default0]:2026-01-02 10:{at // 60:02.0f}:{at % 60:06.3f} - epoch 0 step {step} loss 0.5"
        for step, at in enumerate(clock)
    ]


@pytest.mark.parametrize(
    ("seconds", "detail"),
    [
        # the last three count
        ((0.3, 0.6, 1.2, 2.4), "0.6 s, 1.2 s, 2.4 s"),
        ((9.0, 0.6, 1.2, 2.4), "0.6 s, 1.2 s, 2.4 s"),
        ((0.3, 0.6, 1.2, 2.4, 2.5), None),
        ((1.0, 1.0 * SLOWER, 1.0 * SLOWER * SLOWER), None),
        ((1.0, 1.8, MUCH_SLOWER), "1 s, 1.8 s, 3 s"),
        ((1.0, 1.8, 2.9), None),
        # one long step is a pause, not a trend
        ((1.0, 1.0, 1.0, 30.0), None),
        ((1.0, 4.0), None),
        ((4.0, 2.0, 1.0), None),
    ],
)
def test_steps_that_take_ever_longer(
    reader: LogReader, seconds: tuple[float, ...], detail: str | None
) -> None:
    """Each step longer than the one before, the last several times the first."""
    _, found = shown(read(reader, *steps(*seconds), *waits(0, 1, 2, 3)), "steps_slow_down")
    assert found == detail
