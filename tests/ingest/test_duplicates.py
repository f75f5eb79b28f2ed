"""Near-duplicates."""

from __future__ import annotations

import random

import pytest

from ingest.duplicates import SHINGLE, THRESHOLD, NearDuplicates, similarity, sketch


def jaccard(first: str, second: str) -> float:
    """The true index, by brute force."""

    def shingles(text: str) -> set[str]:
        folded = "".join(text.lower().split())
        return {folded[i : i + SHINGLE] for i in range(len(folded) - SHINGLE + 1)}

    a, b = shingles(first), shingles(second)
    return len(a & b) / len(a | b)


def prose(seed: int, length: int = 400) -> str:
    """Text of random words."""
    source = random.Random(seed)
    return " ".join(f"w{source.randrange(5000)}" for _ in range(length))


@pytest.mark.parametrize("kept", [0, 100, 200, 300, 350, 400])
def test_estimate_is_near_the_truth(kept: int) -> None:
    """The estimate lies within three standard errors of the brute-force index."""
    words = prose(1).split()
    other = " ".join(words[:kept] + prose(2).split()[kept:])
    truth = jaccard(prose(1), other)
    assert similarity(sketch(prose(1)), sketch(other)) == pytest.approx(truth, abs=0.14)


def test_case_and_space_do_not_count() -> None:
    """A copy in other case and layout is the same text."""
    assert similarity(sketch("NCCL timeout at step 5"), sketch("nccl\n TIMEOUT at step5")) == 1.0


def test_empty_texts_are_like_nothing() -> None:
    """A text shorter than a shingle is a duplicate of nothing."""
    known = NearDuplicates()
    assert known.add("a", "") == ()
    assert known.add("b", "") == ()
    assert known.add("c", prose(1)) == ()


def test_pairs_are_exactly_those_above_the_threshold() -> None:
    """Each text names all earlier ones at or above the threshold and no other, best first."""
    base = prose(1).split()
    texts = {
        f"t{cut}": " ".join(base[:cut] + prose(cut).split()[cut:]) for cut in (0, 150, 330, 390)
    }
    texts["copy"] = prose(1)
    texts["origin"] = prose(1)
    known = NearDuplicates()
    done: list[str] = []
    for name, text in texts.items():
        expected = {
            (other, round(similarity(sketch(text), sketch(texts[other])), 2)) for other in done
        }
        expected = {pair for pair in expected if pair[1] >= THRESHOLD}
        found = known.add(name, text)
        assert {(pair.other_id, pair.similarity) for pair in found} == expected
        assert [pair.similarity for pair in found] == sorted(
            (pair.similarity for pair in found), reverse=True
        )
        done.append(name)
    assert known.like("new", prose(1))[0].similarity == 1.0
    assert known.like("new", prose(1)) == known.like("new", prose(1))
