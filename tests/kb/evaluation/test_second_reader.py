"""Measuring a language model: a good one is trusted, bad ones are not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kb.diagnose.evidence_model import Ranking, ScoredCause
from kb.errors import DataError
from kb.evaluation.second_reader import (
    SecondRead,
    bad_models,
    load_answers,
    load_golden_reports,
    measure_trust,
    pooled_figures,
)
from kb.second_reader.answer import ModelAnswer
from kb.settings import shipped_data

CAUSES = ("rank-crash", "network-fault", "shm-limits", "checkpoint-io", "uneven-data")


def ours(first: str) -> Ranking:
    """A ranking that is moderately sure."""
    order = sorted(CAUSES, key=lambda cause: cause != first)
    shares = (0.5, 0.2, 0.1, 0.1, 0.05)
    return Ranking(
        causes=tuple(
            ScoredCause(cause=cause, probability=share, logit=0.0)
            for cause, share in zip(order, shares, strict=True)
        ),
        unknown=0.05,
    )


def pairs(kind: str, count: int = 60) -> list[SecondRead]:
    """Reports of which we get six in ten right, read by a model of that kind."""
    chance = random.Random(3)
    found = []
    for _ in range(count):
        cause = chance.choice(CAUSES)
        first = cause if chance.random() < 0.6 else chance.choice(CAUSES)
        named = {
            "good": cause if chance.random() < 0.9 else chance.choice(CAUSES),
            "random": chance.choice(CAUSES),
            "stuck": "rank-crash",
            "inverted": next(one for one in CAUSES if one != cause),
        }[kind]
        answer = ModelAnswer(causes={named: 0.9}, quotes={})
        found.append(SecondRead(cause=cause, ranking=ours(first), answer=answer, tokens=10))
    return found


def test_a_good_model_is_trusted() -> None:
    """Both together are better than ours alone."""
    measured = measure_trust(pairs("good"))
    assert measured.trust >= 0.6
    assert measured.both.mean is not None
    assert measured.ours.mean is not None
    assert measured.both.mean > measured.ours.mean + 0.1
    assert (measured.answered, measured.tokens) == (60, 600)


@pytest.mark.parametrize("kind", ["random", "stuck", "inverted"])
def test_a_bad_model_is_not(kind: str) -> None:
    """Its trust is about zero, and nothing is lost."""
    measured = measure_trust(pairs(kind))
    assert measured.trust <= 0.15
    assert measured.both.mean is not None
    assert measured.ours.mean is not None
    assert measured.both.mean >= measured.ours.mean - 0.05


def test_without_answers_there_is_no_trust() -> None:
    """A model that never answers changes nothing."""
    silent = [SecondRead(cause="rank-crash", ranking=ours("rank-crash"), answer=None)]
    measured = measure_trust(silent)
    assert (measured.trust, measured.answered) == (0.0, 0)


def test_the_golden_reports_are_read() -> None:
    """Those that are shipped."""
    reports = load_golden_reports(shipped_data() / "golden")
    assert len(reports) >= 50
    assert len({report.cause for report in reports}) >= 18


def test_both_readers_together_and_bad_ones() -> None:
    """A good model gains what a bad one does not cost; the Brier score falls with it."""
    good = pairs("good")
    alone, both = pooled_figures(good, 0.0), pooled_figures(good, 1.0)
    model = pooled_figures(good, None)
    assert alone.first.mean is not None
    assert both.first.mean is not None
    assert both.first.mean >= alone.first.mean + 0.2
    assert both.brier < min(alone.brier, 0.5)
    assert model.three.mean is not None
    assert both.three.mean is not None
    assert both.three.mean >= model.three.mean
    for kind, bad in bad_models(good).items():
        lost = pooled_figures(bad, 0.3)
        assert lost.first.mean is not None, kind
        assert lost.first.mean >= alone.first.mean - 0.05


def test_recorded_answers_are_read(tmp_path: Path) -> None:
    """By thread; a broken line is refused."""
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "a", "p": {"rank-crash": 0.5}, "quote": "x"}\n\n')
    assert load_answers(path)["a"].causes == {"rank-crash": 0.5}
    path.write_text('{"id": "a"}\n')
    with pytest.raises(DataError):
        load_answers(path)
