"""The golden measurement on a small set with known answers, and the floors of the shipped one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kb.embed import load_embedder
from kb.evaluation.ablation import SHIPPED
from kb.evaluation.golden import GoldenQuery, GoldenSet, load_golden
from kb.evaluation.metrics import Result
from kb.evaluation.retrieval import Benchmark, Query
from kb.evaluation.search_quality import (
    BOTH,
    CROSS,
    MINILM,
    MINILM_HYBRID,
    SAME,
    GoldenReport,
    measure_golden,
    measure_threads,
)
from kb.knowledge import load_knowledge
from kb.settings import Settings
from kb.text import Tokenizer
from tests.kb.evaluation.test_ablation import twin
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry

ROUTES = ["lexical", "lexical + expansion", "dense", SHIPPED]


def golden_set(*queries: GoldenQuery, grades: dict[str, dict[str, int]]) -> GoldenSet:
    """A set both passes judged alike."""
    return GoldenSet(queries=queries, first=grades, second=grades)


def by_route(results: tuple[Result, ...], group: str) -> dict[str, float]:
    """Recall@1 of every route in one group."""
    return {one.route: one.recall_at_1.mean for one in results if one.group == group}


def test_a_query_crosses_to_the_other_language_only() -> None:
    """A Chinese word finds its Chinese twin, and across languages only what is translated."""
    cases = [twin("hang", "卡死", "freeze"), twin("slow", "缓慢", "slow")]
    golden = golden_set(
        GoldenQuery(id="q1", language="zh", kind="words", text="卡死"),
        GoldenQuery(id="q2", language="en", kind="log", text="slow"),
        grades={"q1": {"hang": 2, "slow": 0}, "q2": {"slow": 2}},
    )
    tokenizer = SplitTokenizer({"卡死": "freeze"})
    report = measure_golden(golden, cases, WordEmbedder(), tokenizer)
    assert by_route(report.results, SAME) == dict.fromkeys(ROUTES, 1)
    assert by_route(report.results, BOTH) == dict.fromkeys(ROUTES, 1)
    crossing = by_route(report.results, CROSS)
    assert (crossing["lexical"], crossing["lexical + expansion"]) == (0, 0.5)
    assert (report.queries, report.cases, report.left_out) == (2, 2, 0)
    assert (report.agreement.pairs, report.agreement.kappa) == (3, 1)


def test_parity_is_recall_across_over_recall_within() -> None:
    """One of two queries crosses: parity is a half over all, and 1 without the bare log line."""
    others = [twin(f"other{number}", f"别的{number}", f"else{number}") for number in range(8)]
    cases = [twin("hang", "卡死", "freeze"), twin("zz", "缓慢", "slow"), *others]
    golden = golden_set(
        GoldenQuery(id="q1", language="zh", kind="words", text="卡死"),
        GoldenQuery(id="q2", language="en", kind="log", text="slow"),
        grades={"q1": {"hang": 2}, "q2": {"zz": 2}},
    )

    class Wordless(WordEmbedder):
        def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return super().encode_queries(texts) * np.float32(0)

    report = measure_golden(golden, cases, Wordless(), SplitTokenizer({"卡死": "freeze"}))
    assert report.parity.mean == 0.5
    assert report.parity_of_words.mean == 1
    parts = {result.group: result.recall_at_1.mean for result in report.parts}
    assert parts == {
        "zh→zh": 1,
        "en→en": 1,
        "zh→en": 1,
        "en→zh": 0,
        f"words, {BOTH}": 1,
        f"log, {BOTH}": 1,
    }


def test_queries_without_their_case_are_left_out() -> None:
    """A knowledge base of other cases measures what it can, and says how much it could not."""
    golden = golden_set(
        GoldenQuery(id="q1", language="zh", kind="words", text="卡死"),
        grades={"q1": {"absent": 2, "hang": 1}},
    )
    report = measure_golden(golden, [make_entry("hang")], WordEmbedder(), SplitTokenizer())
    assert (report.queries, report.left_out, report.results, report.parts) == (0, 1, (), ())
    assert report.parity.n == 0


def test_another_model_stands_beside() -> None:
    """The second model's rows come after the search's own."""
    golden = golden_set(
        GoldenQuery(id="q1", language="en", kind="words", text="freeze"),
        grades={"q1": {"hang": 2}},
    )
    report = measure_golden(
        golden,
        [twin("hang", "卡死", "freeze")],
        WordEmbedder(),
        SplitTokenizer(),
        monolingual=WordEmbedder("other@1"),
    )
    assert list(by_route(report.results, SAME)) == [*ROUTES, MINILM, MINILM_HYBRID]


def test_threads_are_split_by_language() -> None:
    """Every post is searched among all threads; groups are its language pair."""
    benchmark = Benchmark(
        queries=(
            Query(id="t0", text="red", group="en→en", relevant=0),
            Query(id="t1", text="蓝", group="zh→en", relevant=1),
        ),
        documents=("red", "blue"),
    )
    results = measure_threads(benchmark, WordEmbedder(), SplitTokenizer({"蓝": "blue"}))
    assert by_route(results, "en→en") == dict.fromkeys(ROUTES, 1)
    crossing = by_route(results, "zh→en")
    assert (crossing["lexical"], crossing["lexical + expansion"]) == (0, 1)


@pytest.fixture(scope="module")
def shipped(data_dir: Path) -> GoldenReport:
    """The shipped search measured on the shipped golden set."""
    embedder, tokenizer = load_embedder(Settings(data=data_dir)), Tokenizer(data_dir / "lexicon")
    cases = load_knowledge(data_dir).cases
    return measure_golden(load_golden(data_dir / "golden"), cases, embedder, tokenizer)


def of(report: GoldenReport, group: str, route: str = SHIPPED) -> Result:
    """One row of the tables."""
    return next(one for one in report.results if (one.group, one.route) == (group, route))


@pytest.mark.slow
def test_the_shipped_search_finds_what_the_golden_set_asks(shipped: GoldenReport) -> None:
    """Floors below the lower ends of the intervals measured: noise passes, a broken part fails."""
    assert shipped.left_out == 0
    assert of(shipped, BOTH).mrr.mean >= 0.79
    assert of(shipped, BOTH).recall_at_5.mean >= 0.84
    assert of(shipped, SAME).recall_at_5.mean >= 0.85
    assert of(shipped, CROSS).recall_at_5.mean >= 0.79


@pytest.mark.slow
def test_the_shipped_search_crosses_languages(shipped: GoldenReport) -> None:
    """Across languages nearly as much is found as within one, and it is the expansion's doing."""
    assert shipped.parity.mean >= 0.91
    plain, expanded = (of(shipped, CROSS, route) for route in ROUTES[:2])
    assert expanded.recall_at_5.mean >= plain.recall_at_5.mean + 0.1
