"""Cross-fitting: what is judged was never learned from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.train.weights import CrossFit, assign_folds, fit
from tests.kb.train.examples import CAUSES, sample


def test_groups_are_never_split_and_folds_are_even() -> None:
    """Every group has one fold; 40 groups of 1 to 3 fill ten folds to within one group."""
    samples = [sample("alpha", f"g{n}") for n in range(40) for _ in range(1 + n % 3)]
    folds = assign_folds(samples)
    sizes = [sum(folds[item.group] == fold for item in samples) for fold in range(10)]
    assert sum(sizes) == len(samples)
    assert max(sizes) - min(sizes) <= 3
    assert assign_folds(samples[::-1]) == folds


def test_a_cause_only_one_group_has_is_not_learned_for_it() -> None:
    """A word that means alpha elsewhere and beta in one project leaks nothing of that project.

    Leaking weights would learn that ``odd`` in the project `secret` means beta; held-out ones
    have only seen it mean alpha.
    """
    common = [sample("alpha", f"g{n}", says="odd") for n in range(30)]
    common += [sample("chi", f"h{n}", says="plain") for n in range(30)]
    secret = [sample("beta", "secret", says="odd") for _ in range(20)]
    fitted = CrossFit([*common, *secret], CAUSES)
    assert fitted.rank(secret[0]).causes[0].cause == "alpha"
    assert fitted.weights_of("secret").learned["cue:odd"].get("beta", 0.0) <= 0.0
    assert fitted.weights_of("g0").learned["cue:odd"].get("beta", 0.0) > 0.0


def test_what_repeats_across_projects_is_learned() -> None:
    """A word with one meaning in all projects is ranked rightly in a project never seen."""
    samples = [sample(CAUSES[n % 3], f"g{n}") for n in range(60)]
    fitted = CrossFit(samples, CAUSES)
    assert [fitted.rank(item).causes[0].cause for item in samples] == list(CAUSES) * 20


def test_probabilities_of_a_ranking_fall_and_stay_within_one() -> None:
    """Each ranking's probabilities are sorted and sum to at most 1."""
    samples = [sample(CAUSES[n % 3], f"g{n}") for n in range(30)]
    fitted = CrossFit(samples, CAUSES)
    for item in samples:
        probabilities = [scored.probability for scored in fitted.rank(item).causes]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) <= 1.0 + 1e-9


def test_the_reader_and_the_votes_are_held() -> None:
    """However well the labels agree with both, neither outgrows what has no language."""
    samples = [
        replace(
            sample(cause, f"g{n}"),
            signals=(replace(signal, kind="reader", weights={cause: 3.0}),),
            votes={cause: 0.5},
        )
        for n in range(60)
        for cause in [CAUSES[n % 3]]
        for signal in sample(cause, "").signals
    ]
    weights = fit(samples, CAUSES)
    assert weights.scale["reader"] == pytest.approx(0.4, abs=0.001)
    assert weights.case_weight == pytest.approx(0.35, abs=0.001)
