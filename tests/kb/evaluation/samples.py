"""Small incidents, predictions and samples for the tests of the evaluation."""

from __future__ import annotations

from kb.diagnose.fit import Sample
from kb.diagnose.signals import Signal
from kb.evaluation.figures import Prediction, quality
from kb.evaluation.incidents import Incident
from kb.evaluation.intervals import Interval
from kb.evaluation.known import Known, known_quality
from kb.evaluation.measure import Measured, Parity
from kb.evaluation.negatives import Negative
from kb.evaluation.parity import ParityQuality, Twin
from kb.evaluation.stages import STAGES, TOTAL, Stages

CAUSES = ("alpha", "beta", "chi")


def incident(
    name: str = "one",
    *,
    cause: str = "alpha",
    also: tuple[str, ...] = (),
    text: str = "it hangs",
    log: str = "",
    language: str = "en",
    repo: str = "",
    measurable: bool = True,
) -> Incident:
    """A labelled incident."""
    return Incident(
        id=name,
        url=f"https://example.org/{name}/issues/1",
        repo=repo or f"owner/{name}",
        language=language,
        text=text,
        log=log,
        cause=cause,
        also=also,
        stage="train",
        measurable=measurable,
    )


def prediction(
    ranking: str, right: str, *, confidence: float = 0.5, name: str = "one", also: str = ""
) -> Prediction:
    """A prediction; causes are written by their first letters, best first: ``bca``."""
    names = {cause[0]: cause for cause in CAUSES}
    rest = (1 - confidence) / 2
    return Prediction(
        incident=incident(name, cause=names[right], also=tuple(names[letter] for letter in also)),
        causes=tuple(names[letter] for letter in ranking),
        probabilities=(confidence, rest, rest),
    )


def sample(cause: str, group: str, *, says: str = "") -> Sample:
    """A sample that shows one signal named `says`, to which the expert gives no nats."""
    signal = Signal(
        name=f"cue:{says or cause}",
        kind="text",
        quote="q",
        line=1,
        weights=dict.fromkeys(CAUSES, 0.0),
        reason_id="r",
        source="s",
    )
    return Sample(signals=(signal,), votes={}, cause=cause, also=(), group=group)


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
    """A whole evaluation over `SIX`, two negatives, two twins, one known incident."""
    steady = Interval(mean=0.5, low=0.4, high=0.6, n=2)
    parity = ParityQuality(
        agreement=steady, agreement_threads=steady, zh_right=steady, en_right=steady
    )
    known = Known(prediction=SIX[0], own=("case-one",), place=1, first="case-one")
    return Measured(
        predictions=tuple(SIX),
        measurable=quality(SIX),
        everything=quality(SIX),
        known=known_quality([known]),
        known_answers=(known,),
        parity=Parity(
            words=parity,
            with_lines=parity,
            pairs=(
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
        ),
        worth=(),
        stages=Stages(taken_ms=dict.fromkeys((*STAGES, TOTAL), (took_ms,))),
        negatives=(
            Negative(name="fine", status="no_timeout", cause="", triggers=()),
            Negative(name="alarm", status="diagnosed", cause="beta", triggers=("cue-x: a | b",)),
        ),
        cases=7,
    )
