"""Small predictions, and a whole evaluation made of them."""

from __future__ import annotations

from dataclasses import replace

from kb.evaluation.figures import Prediction, quality
from kb.evaluation.intervals import share
from kb.evaluation.measure import HealthyLog, KnownThread, Measured, Twin, known_figures
from kb.evaluation.published import Interval, LearningPoint
from kb.evaluation.stages import STAGES, TOTAL, Stages
from tests.kb.train.examples import CAUSES, thread


def prediction(
    ranking: str, right: str, *, confidence: float = 0.5, name: str = "one", also: str = ""
) -> Prediction:
    """A prediction; causes are written by their first letters, best first: ``bca``."""
    names = {cause[0]: cause for cause in CAUSES}
    rest = (1 - confidence) / 2
    return Prediction(
        thread=thread(name, cause=names[right], also=tuple(names[letter] for letter in also)),
        causes=tuple(names[letter] for letter in ranking),
        probabilities=(confidence, rest, rest),
    )


# Four of alpha (first, first, second, third), one of beta (first), one of chi (third).
SIX = [
    prediction("abc", "a", confidence=0.9, name="i1"),
    prediction("acb", "a", confidence=0.8, name="i2"),
    prediction("bac", "a", confidence=0.7, name="i3", also="b"),
    prediction("bca", "a", confidence=0.4, name="i4"),
    prediction("bac", "b", confidence=0.6, name="i5"),
    prediction("abc", "c", confidence=0.5, name="i6", also="b"),
]


def measured(took_ms: float = 4.0) -> Measured:
    """A whole evaluation over `SIX`, two healthy logs, two twins, one known incident."""
    steady = Interval(mean=0.5, low=0.4, high=0.6, n=2)
    known = (KnownThread(prediction=SIX[0], own=("case-one",), place=1, first="case-one"),)
    healthy = (
        HealthyLog(name="fine", alarm=False),
        HealthyLog(name="alarm", alarm=True, cause="beta", triggers=("cue-x: a | b",)),
    )
    twin_names = ("parity", "parity_threads", "zh_right", "en_right")
    figures = quality(SIX)
    return Measured(
        predictions=tuple(SIX),
        figures={
            **figures,
            **{f"{name}_all": value for name, value in figures.items()},
            **known_figures(known),
            **{f"{name}{lines}": steady for name in twin_names for lines in ("", "_with_lines")},
            "false_alarms": share(healthy, lambda log: log.alarm),
        },
        known=known,
        twins=(
            Twin(case="one", cause="alpha", zh="alpha", en="alpha", from_thread=True),
            Twin(
                case="two",
                cause="alpha",
                zh="beta",
                en="alpha",
                from_thread=False,
                only_en=("cue:x",),
            ),
        ),
        variants=(),
        stages=Stages(taken_ms=dict.fromkeys((*STAGES, TOTAL), (took_ms,))),
        healthy=healthy,
        cases=7,
        learning=(LearningPoint(name="50%", reports=12, top1=steady, top3=steady),),
    )


def without_healthy(whole: Measured) -> Measured:
    """The same, had nobody named a folder of healthy logs."""
    nothing = share([], bool)
    return replace(whole, healthy=(), figures={**whole.figures, "false_alarms": nothing})
