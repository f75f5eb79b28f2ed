"""The retrieval evaluation: its measures against hand-worked examples."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kb.errors import InputError
from kb.evaluation.retrieval import (
    Benchmark,
    Query,
    Scores,
    dense,
    evaluate,
    hybrid,
    load_threads,
    ranks,
)

SCORES = arrays(np.float32, (3, 5), elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0]))


@given(SCORES)
def test_rank_is_the_place_in_the_sorted_list(scores: Scores) -> None:
    """The rank is the place of the document when sorted by score, ties by place in the list."""
    for relevant in range(5):
        found = ranks(scores, [relevant] * 3)
        order = [sorted(range(5), key=lambda i: (-row[i], i)) for row in scores.tolist()]
        assert found.tolist() == [one.index(relevant) + 1 for one in order]


def test_hybrid_is_the_mean_of_the_stretched_routes() -> None:
    """½ of each route, whatever its unit; a silent route changes no order."""

    def loud(_: Sequence[str], __: Sequence[str]) -> Scores:
        return np.array([[0, 500, 1000]], dtype=np.float32)

    def soft(_: Sequence[str], __: Sequence[str]) -> Scores:
        return np.array([[0.2, 0.2, 0.1]], dtype=np.float32)

    def silent(_: Sequence[str], __: Sequence[str]) -> Scores:
        return np.array([[7, 7, 7]], dtype=np.float32)

    assert np.allclose(hybrid(loud, soft)(["q"], ["a", "b", "c"]), [[0.5, 0.75, 0.5]])
    assert np.allclose(hybrid(loud, silent)(["q"], ["a", "b", "c"]), [[0, 0.25, 0.5]])


def test_results_are_split_by_group() -> None:
    """MRR, recall and nDCG of ranks 1, 2 (group a) and 11 (group b), by hand."""
    queries = [("x", "a", 0), ("y", "a", 1), ("z", "b", 10)]
    benchmark = Benchmark(
        queries=tuple(Query(id=i, text=i, group=g, relevant=r) for i, g, r in queries),
        documents=tuple("abcdefghijk"),
    )

    def falling(texts: Sequence[str], documents: Sequence[str]) -> Scores:
        return np.tile(-np.arange(len(documents), dtype=np.float32), (len(texts), 1))

    first, second = evaluate(benchmark, {"falling": falling})
    assert (first.route, first.group, first.count) == ("falling", "a", 2)
    assert first.mrr.mean == pytest.approx(0.75)
    assert first.recall_at_1.mean == 0.5
    assert first.recall_at_5.mean == 1
    assert first.ndcg_at_10.mean == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert (second.group, second.count, second.recall_at_10.mean) == ("b", 1, 0)
    assert second.mrr.mean == pytest.approx(1 / 11)
    assert second.ndcg_at_10.mean == 0


def test_threads_become_queries_and_documents(tmp_path: Path) -> None:
    """The post is the query, root cause and fix are its document; mixed posts count as Chinese."""
    common = {"title": "T", "query_text": "words", "query_log": ""}
    threads = [
        common | {"id": "1", "lang": "en", "root_cause": "R1", "fix": "F1"},
        common | {"id": "2", "lang": "mixed", "root_cause": "R2", "fix": "F2", "query_log": "log"},
    ]
    path = tmp_path / "threads.jsonl"
    path.write_text("".join(json.dumps(thread) + "\n" for thread in threads), "utf-8")
    benchmark = load_threads(path)
    assert benchmark.documents == ("R1 F1", "R2 F2")
    assert [query.text for query in benchmark.queries] == ["T\nwords", "T\nwords\nlog"]
    assert [query.group for query in benchmark.queries] == ["en→en", "zh→en"]
    assert [query.relevant for query in benchmark.queries] == [0, 1]


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A file that holds no threads is an input error that names it."""
    path = tmp_path / "other.jsonl"
    path.write_text('{"id": 1}\n', "utf-8")
    with pytest.raises(InputError, match=r"other\.jsonl"):
        load_threads(path)


def test_dense_route_scores_by_cosine() -> None:
    """The dense route is the inner product of the two sides' unit vectors."""

    class Letters:
        name = "letters"
        dimension = 2

        def encode_queries(self, texts: Sequence[str]) -> Scores:
            return np.array([[1, 0] if "a" in text else [0, 1] for text in texts], np.float32)

        encode_passages = encode_queries

    assert dense(Letters())(["a", "b"], ["b", "a"]).tolist() == [[0, 1], [1, 0]]
