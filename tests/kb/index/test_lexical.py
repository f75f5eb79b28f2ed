"""Words: the score is BM25, filters act before ranking, changes are seen by new readers only."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kb.errors import SearchIndexError
from kb.index import lexical
from kb.index.base import Term
from kb.index.lexical import ChunkWords
from kb.types.entries import Filters

K1, B = 1.2, 0.75


def document(number: int, body: str, **fields: object) -> ChunkWords:
    """A document with that body."""
    values: dict[str, object] = {
        "number": number,
        "entry_id": f"e{number}",
        "day": 20240000 + number,
        "body": tuple(body.split()),
        "signature": (),
        "tags": (("kind", "case" if number % 2 else "thread"), ("cause", f"c{number % 3}")),
    }
    return ChunkWords(**(values | fields))  # type: ignore[arg-type]


def bm25(documents: list[ChunkWords], terms: list[Term]) -> dict[int, float]:
    """The formula, over all documents; documents without a term are left out."""
    lengths = [len(one.body) for one in documents]
    average = sum(lengths) / len(lengths)
    found: dict[int, float] = {}
    for one in documents:
        counts = Counter(one.body)
        total = 0.0
        for term in terms:
            have = sum(term.word in other.body for other in documents)
            idf = math.log(1 + (len(documents) - have + 0.5) / (have + 0.5))
            count = counts[term.word]
            norm = K1 * (1 - B + B * len(one.body) / average)
            total += term.weight * idf * count * (K1 + 1) / (count + norm)
        if total:
            found[one.number] = total
    return found


WORDS = ["nccl", "timeout", "rank", "超时", "保存", "ib_gid", "loader", "loader", "gloo", "barrier"]
CORPUS = [
    document(n, " ".join(WORDS[(n * k) % 10] for k in range(1, 3 + n % 7))) for n in range(1, 31)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index of the corpus."""
    lexical.write(tmp_path, CORPUS)
    return tmp_path


QUESTIONS = [
    [Term(word="nccl")],
    [Term(word="超时"), Term(word="loader", weight=0.3)],
    [Term(word="gloo"), Term(word="barrier"), Term(word="absent")],
    [Term(word="rank"), Term(word="rank")],
]


@pytest.mark.parametrize("terms", QUESTIONS, ids=["one", "weights", "absent", "twice"])
def test_scores_are_bm25(folder: Path, terms: list[Term]) -> None:
    """Scores equal the formula, are above 0, and order the answer, ties by number."""
    numbers, scores = lexical.load(folder).search(terms, 100)
    truth = bm25(CORPUS, terms)
    found = dict(zip(numbers.tolist(), scores.tolist(), strict=True))
    assert found == pytest.approx(truth, rel=1e-4)
    assert min(scores) > 0
    ranked = sorted(found, key=lambda number: (-found[number], number))
    assert numbers.tolist() == ranked


@pytest.mark.parametrize("terms", QUESTIONS, ids=["one", "weights", "absent", "twice"])
def test_scores_of_given_chunks_are_those_of_the_search(folder: Path, terms: list[Term]) -> None:
    """Asked for single chunks, the index gives the same scores, and none to the others."""
    index = lexical.load(folder)
    numbers, scores = index.search(terms, 100)
    found = dict(zip(numbers.tolist(), scores.tolist(), strict=True))
    wanted = [1, 2, 3, 4, 5, 999]
    expected = {number: found[number] for number in wanted if number in found}
    assert index.scores(terms, wanted) == pytest.approx(expected, rel=1e-5)


def test_idf_is_the_formulas(folder: Path) -> None:
    """The rarity the search reports is the one BM25 uses; an absent word is the rarest."""
    rarity = lexical.load(folder).rarity
    have = sum("nccl" in one.body for one in CORPUS)
    assert rarity("nccl") == pytest.approx(math.log(1 + (30 - have + 0.5) / (have + 0.5)))
    assert rarity("absent") == pytest.approx(math.log(1 + 30.5 / 0.5))


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        (Filters(kinds=("case",)), lambda n: n % 2 == 1),
        (Filters(kinds=("CASE",), causes=("c1", "c2")), lambda n: n % 2 == 1 and n % 3),
        (Filters(causes=("none",)), lambda n: False),
        (Filters(exclude_ids=("e4", "e5")), lambda n: n not in (4, 5)),
    ],
    ids=["one", "two facets", "none passes", "excluded"],
)
def test_filters_act_before_ranking(folder: Path, filters: Filters, passes: object) -> None:
    """With room for one, the best that passes is found, with the score it has unfiltered."""
    terms = [Term(word=word) for word in set(WORDS)]
    index = lexical.load(folder)
    all_numbers, all_scores = index.search(terms, 100)
    keep = [bool(passes(number)) for number in all_numbers.tolist()]  # type: ignore[operator]
    for limit in (1, 100):
        numbers, scores = index.search(terms, limit, filters=filters)
        np.testing.assert_array_equal(numbers, all_numbers[keep][:limit])
        np.testing.assert_allclose(scores, all_scores[keep][:limit], rtol=1e-5)


def test_a_date_range_includes_its_ends(tmp_path: Path) -> None:
    """Since and until pass the days they name; an entry without a date passes neither."""
    days = {1: 0, 2: 20240101, 3: 20240215, 4: 20240301}
    lexical.write(tmp_path, [document(n, "x", day=day) for n, day in days.items()])
    index = lexical.load(tmp_path)

    def found(**dates: str) -> list[int]:
        return sorted(index.search([Term(word="x")], 9, filters=Filters(**dates))[0].tolist())  # type: ignore[arg-type]

    assert found(since="2024-01-01", until="2024-02") == [2, 3]
    assert found(since="2024-02-15") == [3, 4]
    assert found(until="2024") == [2, 3, 4]


def test_signatures_are_a_field_of_their_own(tmp_path: Path) -> None:
    """A word of the body is not found in the signature, and the other way round."""
    lexical.write(tmp_path, [document(1, "alpha", signature=("beta",)), document(2, "beta")])
    index = lexical.load(tmp_path)
    assert index.search([Term(word="beta")], 9, field="signature")[0].tolist() == [1]
    assert index.search([Term(word="beta")], 9)[0].tolist() == [2]


def test_changes_are_for_new_readers(folder: Path) -> None:
    """A reader opened before keeps its answers; one opened after sees all changes at once."""
    before = lexical.load(folder)
    old = before.search([Term(word="nccl")], 100)
    lexical.write(folder, [document(3, "fresh"), document(99, "fresh nccl")], [1, 2, 3])
    after = lexical.load(folder)
    assert after.search([Term(word="fresh")], 9)[0].tolist() == [3, 99]
    assert not {1, 2, 3} & set(after.search([Term(word="nccl")], 100)[0].tolist())
    assert after.size == len(CORPUS) - 1
    np.testing.assert_array_equal(before.search([Term(word="nccl")], 100)[0], old[0])
    assert before.search([Term(word="fresh")], 9)[0].tolist() == []


def test_applying_a_change_twice_changes_nothing_more(folder: Path) -> None:
    """A catch-up that is repeated after a crash leaves no chunk twice."""
    for _ in range(2):
        lexical.write(folder, [document(99, "fresh")], [1, 99])
    index = lexical.load(folder)
    assert index.search([Term(word="fresh")], 9)[0].tolist() == [99]
    assert index.size == len(CORPUS)


def test_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    """No documents, no terms and no room are empty answers."""
    lexical.write(tmp_path, [])
    index = lexical.load(tmp_path)
    assert index.search([Term(word="x")], 5)[0].tolist() == []
    assert index.search([], 5)[0].tolist() == []
    assert index.scores([Term(word="x")], [1]) == {}


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    """The message names the repair."""
    with pytest.raises(SearchIndexError, match="timeout-kb ingest --rebuild"):
        lexical.load(tmp_path)
