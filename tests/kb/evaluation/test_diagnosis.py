"""Cross-fitting: what is judged was never learned from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.diagnose.fit import KINDS
from kb.evaluation.diagnosis import CrossFit, assign_folds, cross_validate
from kb.evaluation.evidence import VARIANTS, Variant, restrict
from tests.kb.evaluation.samples import CAUSES, incident, sample


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
    incidents = [incident(f"i{n}", cause=item.cause) for n, item in enumerate(samples)]
    assert [item.rank for item in cross_validate(incidents, samples, CAUSES)] == [1] * 60


def test_probabilities_of_a_ranking_fall_and_stay_within_one() -> None:
    """Each prediction's probabilities are sorted and sum to at most 1."""
    samples = [sample(CAUSES[n % 3], f"g{n}") for n in range(30)]
    incidents = [incident(f"i{n}", cause=item.cause) for n, item in enumerate(samples)]
    for item in cross_validate(incidents, samples, CAUSES):
        assert list(item.probabilities) == sorted(item.probabilities, reverse=True)
        assert sum(item.probabilities) <= 1.0 + 1e-9


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_keeps_only_its_evidence(variant: Variant) -> None:
    """Signals of other kinds go, and votes where similar cases do not count."""
    one = sample("alpha", "g")
    every = tuple(replace(one.signals[0], kind=kind, name=kind) for kind in KINDS)
    kept = restrict(replace(one, signals=every, votes={"alpha": 1.0}), variant)
    assert {signal.kind for signal in kept.signals} == variant.kinds
    assert kept.votes == ({"alpha": 1.0} if variant.votes else {})
