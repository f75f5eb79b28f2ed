"""What is observed of incidents: own cases step aside, projects stay together, stages add up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evaluation.diagnosis import CrossFit
from kb.evaluation.known import known_incidents, known_quality
from kb.evaluation.measure import causes_of
from kb.evaluation.negatives import judge_negatives
from kb.evaluation.parity import Twin, one_sided, parity_quality, twins
from kb.evaluation.samples import (
    CASE_WEIGHT,
    case_samples,
    kinships,
    observe,
    samples_of,
    thread_address,
)
from kb.evaluation.stages import PASTE_LINES, STAGES, TOTAL, pastes, time_stages
from kb.service import Service
from kb.types import UNKNOWN, Entry
from tests.kb.evaluation.samples import incident, sample

TIMEOUT_LOG = (
    "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, "
    "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
)


@pytest.fixture(scope="module")
def case(small: Service) -> Entry:
    """A case with a cause."""
    return next(case for case in small.knowledge.cases if case.causes[0].id != UNKNOWN)


def symptoms(case: Entry) -> str:
    """What the case's English reporter saw."""
    return next(s.text for s in case.sections if s.role == "symptoms" and s.language == "en")


@pytest.mark.parametrize(
    "url",
    ["https://GitHub.com/a/b/issues/7", "https://github.com/a/b/issues/7/", "https://github.com/a/b/issues/7#issuecomment-1"],
)  # fmt: skip
def test_a_thread_has_one_address(url: str) -> None:
    """Case, closing slash and the place inside a thread do not matter."""
    assert thread_address(url) == "https://github.com/a/b/issues/7"


def test_an_incident_s_own_case_steps_aside(small: Service, case: Entry) -> None:
    """The case that stands on the incident's thread is found for it, and not when it is judged."""
    own = replace(incident("one", text=symptoms(case)), url=f"{case.url}#issuecomment-5")
    kin = kinships([own], small)
    assert case.id in kin.own["one"]
    assert set(kin.own["one"]) <= set(kin.aside["one"])
    found = [hit.entry_id for hit in observe(own.text, small).hits]
    judged = [hit.entry_id for hit in observe(own.text, small, kin.aside["one"]).hits]
    assert case.id in found
    assert case.id not in judged
    assert kin.group(own.repo) == kin.group(case.project)


def test_a_repost_s_case_steps_aside_too(small: Service, case: Entry) -> None:
    """An incident that repeats another's story may not use the other's case."""
    story = symptoms(case) + " and every time it stops at the very same place of the second epoch"
    first = replace(incident("first", text=story), url=case.url)
    again = incident("again", text=f"hello, {story}")
    kin = kinships([first, again], small)
    assert kin.own["again"] == ()
    assert case.id in kin.aside["again"]
    assert kin.group(again.repo) == kin.group(first.repo)


def test_samples_carry_the_label(small: Service) -> None:
    """Cause, equally defensible causes and the project's group go from incident to sample."""
    one = incident("one", cause="rank-crash", also=("memory-pressure",), text=TIMEOUT_LOG)
    (made,) = samples_of([one], small)
    assert (made.cause, made.also, made.group) == ("rank-crash", ("memory-pressure",), "owner/one")
    assert made.weight == 1.0
    assert any(signal.kind == "log" for signal in made.signals)


def test_each_case_gives_a_sample_a_language(small: Service) -> None:
    """Two for every case with a known cause, of little weight, under its cause."""
    known = [case for case in small.knowledge.cases if case.causes[0].id != UNKNOWN]
    made = case_samples(small)
    assert [item.cause for item in made] == [case.causes[0].id for case in known for _ in "ze"]
    assert {item.weight for item in made} == {CASE_WEIGHT}


def test_known_incidents_are_those_with_a_case(small: Service, case: Entry) -> None:
    """A report in a case's own words finds that case first; one without a case is left out."""
    own = replace(incident("one", cause=case.causes[0].id, text=symptoms(case)), url=case.url)
    other = incident("other", cause=case.causes[0].id, text=TIMEOUT_LOG)
    both = [own, other]
    causes = causes_of(small)
    fitted = CrossFit([sample(cause, f"g{n}") for n, cause in enumerate(causes * 2)], causes)
    answers = known_incidents(both, kinships(both, small), small, fitted)
    assert [(item.prediction.incident.id, item.place) for item in answers] == [("one", 1)]
    assert answers[0].first in answers[0].own
    assert known_quality(answers).recall_at_1.mean == 1.0


def test_twins_of_a_case_are_both_judged(small: Service) -> None:
    """Every case gives one twin, with a cause in each language, in the order of the cases."""
    causes = causes_of(small)
    fitted = CrossFit([sample(cause, f"g{n}") for n, cause in enumerate(causes * 2)], causes)
    first = small.knowledge.cases[0]
    threads = frozenset({thread_address(first.url)})
    found = twins(small, kinships([], small), fitted, threads, lines=False)
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
    found = parity_quality(pairs)
    assert found.agreement.mean == pytest.approx(2 / 3)
    assert (found.agreement_threads.mean, found.agreement_threads.n) == (0.0, 1)
    assert found.zh_right.mean == pytest.approx(2 / 3)
    assert found.en_right.mean == pytest.approx(1 / 3)
    assert one_sided(pairs) == [("y", 0, 3), ("x", 2, 0), ("z", 1, 0)]


def test_an_alarm_tells_what_set_it_off(small: Service, tmp_path: Path) -> None:
    """A timeout among healthy logs is an alarm with the pattern's name; a healthy log is none."""
    (tmp_path / "b.log").write_text(TIMEOUT_LOG, "utf-8")
    (tmp_path / "a.log").write_text("step 1 loss 0.5\nstep 2 loss 0.4\n", "utf-8")
    healthy, alarm = judge_negatives(small, tmp_path)
    assert (healthy.name, healthy.alarm, healthy.triggers) == ("a", False, ())
    assert (alarm.name, alarm.alarm) == ("b", True)
    assert any("Watchdog caught collective" in trigger for trigger in alarm.triggers)


def test_a_folder_without_logs_is_named(small: Service, tmp_path: Path) -> None:
    """Nothing to judge is an error, not a rate of 0."""
    with pytest.raises(InputError, match=r"holds no \*\.log"):
        judge_negatives(small, tmp_path)


def test_pastes_have_the_length_asked_for() -> None:
    """Words stand first, the log last; a long post is cut."""
    long = "\n".join(f"line {n}" for n in range(300))
    short, cut = pastes(
        [incident("a", text="it hangs\n" + TIMEOUT_LOG, log=TIMEOUT_LOG), incident("b", text=long)]
    )
    assert short.count("\n") == cut.count("\n") == PASTE_LINES - 1
    assert (short.splitlines()[0], short.splitlines()[-1]) == ("it hangs", TIMEOUT_LOG)


def test_every_stage_of_every_paste_is_timed(small: Service) -> None:
    """Two pastes give two times a stage, none negative; reading costs something."""
    stages = time_stages(small, ["it hangs\n" + TIMEOUT_LOG, TIMEOUT_LOG])
    assert set(stages.taken_ms) == {*STAGES, TOTAL}
    assert {len(taken) for taken in stages.taken_ms.values()} == {2}
    assert min(min(taken) for taken in stages.taken_ms.values()) >= 0.0
    assert 0.0 < stages.p50_ms("read") <= stages.p99_ms("read")
