"""Nearest vectors: the score is the cosine, for every kind of index, whatever changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kb.errors import SearchIndexError
from kb.index import faiss_index
from kb.index.faiss_index import FaissIndex

DIMENSION = 48
SQ8_ERROR = 0.01  # of a cosine; promised by the docstring of `search`
Vectors = NDArray[np.float32]


def clustered(count: int, *, seed: int = 0, dimension: int = DIMENSION) -> Vectors:
    """Unit rows around two hundred centres, always the same, as texts of one field lie."""
    centres = np.random.default_rng(99).standard_normal((200, dimension))
    generator = np.random.default_rng(seed)
    rows = centres[generator.integers(0, 200, count)]
    rows = rows + 0.7 * generator.standard_normal((count, dimension))
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def batches(
    numbers: NDArray[np.int64], vectors: Vectors, size: int = 700
) -> Callable[[], Iterator[tuple[NDArray[np.int64], Vectors]]]:
    """What the builder streams from the store."""
    return lambda: (
        (numbers[start : start + size], vectors[start : start + size])
        for start in range(0, len(numbers), size)
    )


def build(numbers: NDArray[np.int64], vectors: Vectors, kind: str) -> FaissIndex:
    """An index of either kind."""
    return FaissIndex.build(
        batches(numbers, vectors),
        size=len(numbers),
        dimension=vectors.shape[1],
        exact_limit=10**9 if kind == "exact" else 0,
    )


def brute_force(
    numbers: NDArray[np.int64], vectors: Vectors, query: Vectors, limit: int
) -> tuple[list[int], Vectors]:
    """The truth: every cosine, sorted, ties by number."""
    scores = vectors @ query
    order = np.lexsort((numbers, -scores))[:limit]
    return numbers[order].tolist(), scores[order]


@pytest.fixture(scope="module", params=["exact", "ivf"])
def corpus(request: pytest.FixtureRequest) -> tuple[str, NDArray[np.int64], Vectors, FaissIndex]:
    """Six thousand vectors under numbers with holes, in an index of each kind."""
    vectors = clustered(6000)
    numbers = np.arange(6000, dtype=np.int64) * 3 + 5
    return request.param, numbers, vectors, build(numbers, vectors, request.param)


def test_scores_are_cosines(
    corpus: tuple[str, NDArray[np.int64], Vectors, FaissIndex],
) -> None:
    """Every score is the cosine of that very vector: exactly, or within what 8 bits allow."""
    kind, numbers, vectors, index = corpus
    tolerance = 1e-5 if kind == "exact" else SQ8_ERROR
    for query in clustered(40, seed=1):
        found, scores = index.search(query, 20)
        true = vectors[(found - 5) // 3] @ query
        np.testing.assert_allclose(scores, true, atol=tolerance)
        assert np.all(np.diff(scores) <= 0)
        assert np.all((scores >= -1) & (scores <= 1))
    assert index.size == len(numbers)


def test_the_nearest_are_found(
    corpus: tuple[str, NDArray[np.int64], Vectors, FaissIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact search finds what brute force finds; a tenth of the lists holds .95 of it."""
    monkeypatch.setattr(faiss_index, "SCANNED", 600)
    kind, numbers, vectors, index = corpus
    recalls = []
    for query in clustered(60, seed=2):
        found, _ = index.search(query, 10)
        truth, _ = brute_force(numbers, vectors, query, 10)
        recalls.append(len(set(found.tolist()) & set(truth)) / 10)
    assert np.mean(recalls) == 1 if kind == "exact" else np.mean(recalls) >= 0.95


def test_the_opposite_vector_scores_minus_one() -> None:
    """The range is used to both ends: the sign is not lost, and nothing leaves [-1, 1]."""
    vectors = np.eye(4, dtype=np.float32)[[0, 1]]
    index = build(np.array([1, 2], dtype=np.int64), np.vstack([vectors[0], -vectors[0]]), "exact")
    found, scores = index.search(vectors[0], 2)
    assert found.tolist() == [1, 2]
    assert scores.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("share", [0.5, 0.02, 0.001])
def test_a_filter_acts_before_ranking(
    corpus: tuple[str, NDArray[np.int64], Vectors, FaissIndex],
    share: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best of the allowed are found, however few they are."""
    monkeypatch.setattr(faiss_index, "SCANNED", 600)
    kind, numbers, vectors, index = corpus
    generator = np.random.default_rng(3)
    allowed = np.sort(generator.choice(numbers, max(1, int(share * len(numbers))), replace=False))
    inside = np.isin(numbers, allowed)
    recalls = []
    for query in clustered(30, seed=4):
        found, _ = index.search(query, 5, allowed)
        truth, _ = brute_force(numbers[inside], vectors[inside], query, 5)
        assert set(found.tolist()) <= set(allowed.tolist())
        recalls.append(len(set(found.tolist()) & set(truth)) / len(truth))
    assert np.mean(recalls) == 1 if kind == "exact" else np.mean(recalls) >= 0.95


def test_nothing_allowed_finds_nothing(
    corpus: tuple[str, NDArray[np.int64], Vectors, FaissIndex],
) -> None:
    """An empty filter result is an empty answer, not an error."""
    found, scores = corpus[3].search(clustered(1)[0], 5, np.zeros(0, dtype=np.int64))
    assert found.tolist() == scores.tolist() == []


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_changes_equal_an_index_built_anew(data: st.DataObject) -> None:
    """After any removals, additions and replacements, search equals brute force over what is left.

    Holds with and without a filter, and the order of the changes does not disturb older values.
    """
    vectors = clustered(60, seed=5)
    state = {number: vectors[number] for number in range(20)}
    index = build(np.arange(20, dtype=np.int64), vectors[:20], "exact")
    before, former = index, dict(state)
    for _ in range(data.draw(st.integers(1, 4))):
        removed = data.draw(st.lists(st.integers(0, 40), max_size=6, unique=True))
        added = data.draw(st.lists(st.integers(0, 40), max_size=6, unique=True))
        rows = data.draw(st.lists(st.integers(0, 59), min_size=len(added), max_size=len(added)))
        index = index.with_changes(
            np.array(sorted(removed), dtype=np.int64),
            np.array(added, dtype=np.int64),
            vectors[rows].reshape(-1, DIMENSION),
        )
        state = {n: row for n, row in state.items() if n not in removed}
        state |= dict(zip(added, vectors[rows], strict=True))
    query = vectors[data.draw(st.integers(0, 59))]
    allowed = data.draw(st.none() | st.lists(st.integers(0, 40), unique=True).map(sorted))
    check(index, state, query, allowed)
    check(before, former, query, allowed)


def check(
    index: FaissIndex, state: dict[int, Vectors], query: Vectors, allowed: list[int] | None
) -> None:
    """Search against the truth over `state`."""
    kept = sorted(state if allowed is None else set(state) & set(allowed))
    mask = None if allowed is None else np.array(allowed, dtype=np.int64)
    found, scores = index.search(query, 100, mask)
    expected = np.array([state[number] @ query for number in found.tolist()])
    assert sorted(found.tolist()) == kept
    assert index.size == len(state)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert np.all(np.diff(scores) <= 0)


@pytest.mark.parametrize("kind", ["exact", "ivf"])
def test_a_saved_index_answers_the_same(tmp_path: Path, kind: str) -> None:
    """Saved and loaded, with changes on top, it gives the same numbers and scores."""
    vectors = clustered(3000)
    index = build(np.arange(2990, dtype=np.int64), vectors[:2990], kind)
    changed = index.with_changes(
        np.array([1, 2], dtype=np.int64), np.arange(2990, 3000, dtype=np.int64), vectors[2990:]
    )
    changed.save(tmp_path, "base.faiss")
    loaded = FaissIndex.load(tmp_path, "base.faiss")
    assert (loaded.kind, loaded.size, loaded.dimension) == (index.kind, 2998, DIMENSION)
    for query in vectors[:2].tolist() + vectors[2995:].tolist():
        mine = changed.search(np.array(query, dtype=np.float32), 10)
        theirs = loaded.search(np.array(query, dtype=np.float32), 10)
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])


def test_the_kind_follows_the_size() -> None:
    """Up to the limit the search is exact, one more vector and it has lists."""
    vectors = clustered(401)
    numbers = np.arange(401, dtype=np.int64)

    def kind(count: int) -> str:
        made = FaissIndex.build(
            batches(numbers[:count], vectors[:count]),
            size=count,
            dimension=DIMENSION,
            exact_limit=400,
        )
        return made.kind

    assert kind(400) == "exact"
    assert kind(401) == "ivf40,sq8"


def test_building_twice_gives_the_same_index() -> None:
    """The same vectors give the same lists, so the same answers."""
    vectors = clustered(3000)
    numbers = np.arange(3000, dtype=np.int64)
    first, second = (build(numbers, vectors, "ivf") for _ in range(2))
    for query in vectors[:20]:
        np.testing.assert_array_equal(first.search(query, 10)[0], second.search(query, 10)[0])


@pytest.mark.parametrize("name", ["base.faiss", faiss_index.DELTA])
def test_a_cut_off_file_is_refused(tmp_path: Path, name: str) -> None:
    """A damaged file is an error with the repair, never a crash."""
    build(np.arange(100, dtype=np.int64), clustered(100), "exact").save(tmp_path, "base.faiss")
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(SearchIndexError, match="timeout-kb ingest --rebuild"):
        FaissIndex.load(tmp_path, "base.faiss")


def test_vectors_come_back_as_they_were_put_in() -> None:
    """Of an exact index, after changes too; unknown numbers are left out; lists give none."""
    numbers, vectors = np.arange(0, 1000, 2, dtype=np.int64), clustered(500)
    index = build(numbers, vectors, "exact")
    asked = np.array([1, 4, 10, 998, 5000], dtype=np.int64)
    found = index.vectors_of(asked)
    assert found is not None
    assert found[0].tolist() == [4, 10, 998]
    assert np.array_equal(found[1], vectors[[2, 5, 499]])
    later = clustered(2, seed=5)
    gone, new = np.array([10], dtype=np.int64), np.array([4, 1], dtype=np.int64)
    changed = index.with_changes(gone, new, later).vectors_of(np.sort(asked))
    assert changed is not None
    assert changed[0].tolist() == [1, 4, 998]
    assert np.array_equal(changed[1], np.stack([later[1], later[0], vectors[499]]))
    assert build(numbers, vectors, "ivf").vectors_of(asked) is None
