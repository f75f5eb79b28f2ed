"""Steps that ranks print: who is overdue against its own rhythm is told once, and taken back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.capture.steps import (
    OverdueSteps,
    PrintedStep,
    StepProgress,
    StepReader,
    StepWatch,
)
from kb.knowledge.load import load_knowledge
from kb.logs.event_log import EventVocabulary
from kb.settings import shipped_data

AFTER_S = 60.0
EVERY_S = 10.0


def told(*looks: str, form: str = "train", after_s: float = AFTER_S) -> list[str]:
    """What is said at looks 10 s apart; `0:7 1:6` is rank 0 at step 7 and rank 1 at step 6.

    `7!` is the end of a bar, `-` a printer that names no rank.
    """
    progress = StepProgress(after_s)
    said = []
    for number, look in enumerate(looks):
        now_s = number * EVERY_S
        words = [word.split(":") for word in look.split()]
        progress.take(
            [
                PrintedStep(
                    rank=None if rank == "-" else int(rank),
                    form=(form, ""),
                    step=step.rstrip("!"),
                    last=step.endswith("!"),
                )
                for rank, step in words
            ],
            now_s,
        )
        seconds, overdue = progress.went_on(), progress.overdue(now_s)
        if seconds is not None:
            said.append(f"{number}: on after {seconds:g}")
        if overdue is not None:
            who = ",".join(map(str, overdue.ranks))
            place = f"{overdue.step}/{overdue.usual}" if who else overdue.step
            said.append(f"{number}: [{who}] {place} {overdue.seconds:g}")
    return said


def steps(last: int, *ranks: int) -> list[str]:
    """A step at each look, by each rank."""
    return [" ".join(f"{rank}:{step}" for rank in ranks) for step in range(last + 1)]


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param(
            [*steps(6, 0, 1, 2), "0:7 2:7", *[""] * 8], ["13: [1] 6/7 70"], id="one is behind"
        ),
        pytest.param([*steps(6, 0, 1, 2), *[""] * 7], ["12: [] 6 60"], id="all at one step"),
        pytest.param([*steps(6, 0), *[""] * 7], ["12: [] 6 60"], id="rank 0 prints for all"),
        pytest.param(
            [f"0:{n} 1:{min(n, 6)} 2:{n}" for n in range(15)],
            ["12: [1] 6/12 60"],
            id="the others go on",
        ),
        pytest.param([*steps(3, 0, 1), *[""] * 20], [], id="too few steps for a rhythm"),
        pytest.param([" ".join(steps(9, 0)), *[""] * 20], [], id="all steps seen at once"),
        pytest.param([*steps(6, 0)[:-1], "0:6!", *[""] * 20], [], id="the bar is full"),
        pytest.param([*steps(6, 0, 1), "-:1"], [], id="a printer that has just begun"),
        pytest.param(
            [*steps(5, 0), *[""] * 4, "0:6", *[""] * 10], ["20: [] 6 100"], id="twice its longest"
        ),
        pytest.param(
            [*steps(6, 0, 1), *["0:6 1:6"] * 6], ["12: [] 6 60"], id="lines that show no more"
        ),
        pytest.param(
            [*steps(6, 0, 1), *[""] * 7, "0:7", "1:7", "0:8 1:8"],
            ["12: [] 6 60", "15: on after 90"],
            id="taken back",
        ),
    ],
)
def test_who_is_overdue_is_told_once(looks: list[str], expected: list[str]) -> None:
    """After a minute without a step, or twice the longest pause; who moves again is slow."""
    assert told(*looks) == expected


def test_what_was_not_seen_is_no_pause() -> None:
    """Of output of which a part was left out nobody who is missing in it is late."""
    progress = StepProgress(AFTER_S)
    for number in range(20):
        shown = [PrintedStep(rank=0, form=("train", ""), step=str(min(number, 6)))]
        progress.take(shown if number < 7 else [], number * EVERY_S, whole=number < 7)
        assert progress.overdue(number * EVERY_S) is None


def test_what_was_not_seen_is_no_move() -> None:
    """A rank that was reported is not taken back because output was left out."""
    progress = StepProgress(AFTER_S)
    for number in range(13):
        shown = [PrintedStep(rank=0, form=("train", ""), step=str(number))] if number < 7 else []
        progress.take(shown, number * EVERY_S)
    assert progress.overdue(12 * EVERY_S) is not None
    progress.take([], 13 * EVERY_S, whole=False)
    assert progress.went_on() is None


class Lines(StepReader):
    """Reads `1:7` as rank 1 at step 7."""

    def __init__(self) -> None:
        pass

    def read(self, text: str) -> Iterator[PrintedStep]:
        """Each word of the text."""
        for rank, _, step in (word.partition(":") for word in text.split()):
            yield PrintedStep(rank=int(rank), form=("train", ""), step=step)


def test_output_is_followed_until_a_rank_is_behind() -> None:
    """What is printed from look to look is read; who is behind is told by the thread that looks."""
    looks = iter([*steps(8, 0, 1, 2), "0:9 2:9"])
    reported: list[OverdueSteps] = []
    behind = threading.Event()

    def act(overdue: OverdueSteps) -> None:
        reported.append(overdue)
        behind.set()

    watch = StepWatch(
        lambda: ([next(looks, "").encode()], True), Lines, 0.4, act, lambda seconds: None
    )
    assert behind.wait(60)
    watch.stop()
    assert [(item.ranks, item.step, item.usual) for item in reported] == [((1,), "8", "9")]


def test_lines_of_training_show_steps(built_home: Callable[[], Path]) -> None:
    """Whose step it is stands in front of the line; bars are drawn over themselves."""
    knowledge = load_knowledge(shipped_data(), cache=built_home() / "cache")
    reader = StepReader(EventVocabulary.of(knowledge))
    text = (
        "[rank3]: iteration       10/     500 | learning rate: 1.5E-04 | lm loss: 1.09E+01\n"
        "1: step 7 loss 0.31\nloading the tokenizer\n"
        "  3%|▎         | 270/9847 [05:50<3:17:42,  1.24s/it]\r"
        "  3%|▎         | 9847/9847 [05:51<3:17:41,  1.24s/it]"
    )
    found = [(item.rank, item.step, item.last) for item in reader.read(text)]
    assert found == [(3, "10", False), (1, "7", False), (None, "270", False), (None, "9847", True)]
