"""The fit of the second look: words are counted by case, weights make the right entry likely."""

from __future__ import annotations

import numpy as np
import pytest

from kb.knowledge.paraphrases import Paraphrase
from kb.search.rerank import FEATURES
from kb.train.reranker import (
    Candidates,
    count_words,
    fit_weights,
    fold_of,
    prior_of,
    ranks,
    scaled,
)
from tests.kb.fakes import SplitTokenizer, make_entry


def paraphrase(case: str, text: str) -> Paraphrase:
    """Said of a case."""
    return Paraphrase(case=case, lang="en", kind="lay", text=text)


def test_words_are_counted_where_their_case_has_them() -> None:
    """Asked in how many paraphrases, present in how many of their cases."""
    cases = [make_entry("a", "cards wait in a gather"), make_entry("b", "the disk is full")]
    said = [
        paraphrase("a", "why why gather"),
        paraphrase("a", "gather hangs"),
        paraphrase("b", "why gather"),
    ]
    counts = count_words(said, cases, SplitTokenizer({}))  # type: ignore[arg-type]
    assert counts == {"gather": (3, 2), "hangs": (1, 0), "why": (2, 0)}
    assert prior_of(counts) == pytest.approx(2 / 6)


def rankings() -> list[Candidates]:
    """Entries of which mostly that with the larger coverage is right, whatever the likeness."""
    generator = np.random.default_rng(1)
    made = []
    for number in range(60):
        features = generator.random((5, len(FEATURES)))
        features[:, 2:] = 0
        by_coverage = int(features[:, 1].argmax())
        right = by_coverage if number % 6 else (by_coverage + 1) % 5
        made.append(Candidates(features=features, right=right))
    return made


def test_the_fit_finds_what_tells() -> None:
    """The gradient is zero at the weights, and the telling feature outweighs the other."""
    made = rankings()
    weights = fit_weights(made)
    assert weights[1] > 5 * abs(weights[0])
    assert np.mean(np.array(ranks(made, weights)) == 1) > 0.75
    again = fit_weights([*made, Candidates(features=made[0].features, right=-1)])
    assert np.allclose(again, weights)


def test_scores_keep_their_middle_and_their_top() -> None:
    """The best score is in the middle what it was, and the same text with all words scores 1."""
    made = rankings()
    weights, shift = scaled(fit_weights(made), made)
    best = [(one.features @ weights).max() + shift for one in made]
    assert np.median(best) == pytest.approx(np.median([one.features[:, 0].max() for one in made]))
    assert weights[0] + weights[1] + shift == pytest.approx(1)


def test_folds_are_by_case() -> None:
    """A case is always in the same fold, and the folds are of a size."""
    sizes = np.bincount([fold_of(f"case-{number}") for number in range(500)], minlength=5)
    assert sizes.min() > 70
