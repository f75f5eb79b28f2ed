"""The parts of the evaluation: known incidents, twins, kinds of evidence, healthy logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evaluation.measure import (
    VARIANTS,
    Twin,
    Variant,
    case_twins,
    judge_healthy,
    known_figures,
    known_threads,
    one_sided,
    restrict,
    twin_figures,
)
from kb.service import Service
from kb.train.samples import causes_of, relate
from kb.train.weights import KINDS, CrossFit
from kb.types.entries import Entry
from kb.types.vocabulary import UNKNOWN
from tests.kb.train.examples import TIMEOUT_LOG, sample, thread


@pytest.fixture(scope="module")
def case(small: Service) -> Entry:
    """A case with a cause."""
    return next(case for case in small.knowledge.cases if case.causes[0].id != UNKNOWN)


def symptoms(case: Entry) -> str:
    """What the case's English reporter saw."""
    return next(s.text for s in case.sections if s.role == "symptoms" and s.language == "en")


def test_known_incidents_are_those_with_a_case(small: Service, case: Entry) -> None:
    """A report in a case's own words finds that case first; one without a case is left out."""
    own = replace(thread("one", cause=case.causes[0].id, text=symptoms(case)), url=case.url)
    other = thread("other", cause=case.causes[0].id, text=TIMEOUT_LOG)
    both = [own, other]
    causes = causes_of(small)
    fitted = CrossFit([sample(cause, f"g{n}") for n, cause in enumerate(causes * 2)], causes)
    answers = known_threads(both, relate(both, small), small, fitted.rank)
    assert [(item.prediction.thread.id, item.place) for item in answers] == [("one", 1)]
    assert answers[0].first in answers[0].own
    assert known_figures(answers)["known_recall_at_1"].mean == 1.0


def test_twins_of_a_case_are_both_judged(small: Service) -> None:
    """Every case gives one twin, with a cause in each language, in the order of the cases."""
    causes = causes_of(small)
    fitted = CrossFit([sample(cause, f"g{n}") for n, cause in enumerate(causes * 2)], causes)
    first = small.knowledge.cases[0]
    posted = [replace(thread("one"), url=f"{first.url}#issuecomment-1")]
    found = case_twins(posted, relate([], small), small, fitted.rank, lines=False)
    assert [twin.case for twin in found] == [case.id for case in small.knowledge.cases]
    assert {twin.zh for twin in found} | {twin.en for twin in found} <= set(causes)
    assert found[0].from_thread


def test_parity_counts_agreement_and_what_one_language_saw() -> None:
    """Of three twins two agree, of the one from a thread none; signals are counted by side."""

    def twin(zh: str, en: str, *, thread: bool = False, only_zh: tuple[str, ...] = ()) -> Twin:
        return Twin(
            case="c",
            cause="alpha",
            zh=zh,
            en=en,
            from_thread=thread,
            only_zh=only_zh,
            only_en=("y",),
        )

    pairs = [
        twin("alpha", "alpha", only_zh=("x",)),
        twin("beta", "beta"),
        twin("alpha", "beta", thread=True, only_zh=("x", "z")),
    ]
    found = twin_figures(pairs)
    assert found["parity"].mean == pytest.approx(2 / 3)
    assert (found["parity_threads"].mean, found["parity_threads"].n) == (0.0, 1)
    assert found["zh_right"].mean == pytest.approx(2 / 3)
    assert found["en_right"].mean == pytest.approx(1 / 3)
    assert one_sided(pairs) == [("y", 0, 3), ("x", 2, 0), ("z", 1, 0)]


def test_an_alarm_tells_what_set_it_off(small: Service, tmp_path: Path) -> None:
    """A timeout among healthy logs is an alarm with the pattern's name; a healthy log is none."""
    (tmp_path / "b.log").write_text(TIMEOUT_LOG, "utf-8")
    (tmp_path / "a.log").write_text("step 1 loss 0.5\nstep 2 loss 0.4\n", "utf-8")
    healthy, alarm = judge_healthy(small, tmp_path)
    assert (healthy.name, healthy.alarm, healthy.triggers) == ("a", False, ())
    assert (alarm.name, alarm.alarm) == ("b", True)
    assert any("Watchdog caught collective" in trigger for trigger in alarm.triggers)


def test_a_folder_without_logs_is_named(small: Service, tmp_path: Path) -> None:
    """Nothing to judge is an error, not a rate of 0."""
    with pytest.raises(InputError, match=r"holds no \*\.log"):
        judge_healthy(small, tmp_path)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_keeps_only_its_evidence(variant: Variant) -> None:
    """Signals of other kinds go, and votes where similar cases do not count."""
    one = sample("alpha", "g")
    every = tuple(replace(one.signals[0], kind=kind, name=kind) for kind in KINDS)
    kept = restrict(replace(one, signals=every, votes={"alpha": 1.0}), variant)
    assert {signal.kind for signal in kept.signals} == set(variant.kinds)
    assert kept.votes == ({"alpha": 1.0} if variant.votes else {})
