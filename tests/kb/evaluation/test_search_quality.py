"""The golden measurement on a small set with known answers, and the floors of the shipped one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kb.embed import load_embedder
from kb.evaluation.golden import GoldenQuery, GoldenSet, load_golden
from kb.evaluation.metrics import FULL, GradedRanking, RouteQuality
from kb.evaluation.search_quality import (
    BOTH,
    CROSS,
    MINILM,
    MINILM_HYBRID,
    SAME,
    SHIPPED,
    GoldenReport,
    GradedQuestion,
    Remembering,
    answer_entry,
    ask,
    in_one_language,
    measure_golden,
    measure_posts,
    searchable,
)
from kb.knowledge.load import read_knowledge
from kb.service import Service
from kb.settings import Settings
from kb.text.tokenizer import Tokenizer
from kb.types.entries import Chunk, Entry, Section
from kb.types.vocabulary import Language
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry
from tests.kb.train.examples import thread

ROUTES = ["lexical", "lexical + expansion", "dense", SHIPPED]


def twin(entry_id: str, zh: str, en: str) -> Entry:
    """An entry with one chunk and one section a language."""
    texts: tuple[tuple[Language, str], ...] = (("zh", zh), ("en", en))
    return replace(
        make_entry(entry_id),
        language="both",
        sections=tuple(
            Section(role="symptoms", title="t", text=text, language=language)
            for language, text in texts
        ),
        chunks=tuple(
            Chunk(
                id=f"{entry_id}#{number}",
                entry_id=entry_id,
                role="symptoms",
                language=language,
                text=text,
            )
            for number, (language, text) in enumerate(texts)
        ),
    )


def golden_set(*queries: GoldenQuery, grades: dict[str, dict[str, int]]) -> GoldenSet:
    """A set both passes judged alike."""
    return GoldenSet(queries=queries, first=grades, second=grades)


def by_route(results: tuple[RouteQuality, ...], group: str) -> dict[str, float]:
    """Recall@1 of every route in one group."""
    return {one.route: one.recall_at_1.mean for one in results if one.group == group}


def test_each_route_finds_what_it_can() -> None:
    """Words find words, translations find the other language, the model finds its neighbours."""
    entries = [make_entry("zh", "超时"), make_entry("en", "timeout"), make_entry("no", "salad")]
    with searchable(entries, WordEmbedder(), SplitTokenizer({"timeout": "超时"})) as rankers:
        found = {name: rank("timeout") for name, rank in rankers.items()}
    assert list(found) == ["lexical", "lexical + expansion", "dense", SHIPPED]
    assert found["lexical"] == ["en"]
    assert found["lexical + expansion"] == ["en", "zh"]
    assert found["dense"][0] == "en"
    assert sorted(found["dense"]) == ["en", "no", "zh"]
    assert found[SHIPPED][:2] == ["en", "zh"]


def test_an_entry_counts_once_by_its_best_chunk() -> None:
    """Chunks become entries in the order of their first chunk."""
    entries = [make_entry("a", "red", "red green"), make_entry("b", "green green", "blue")]
    with searchable(entries, WordEmbedder(), SplitTokenizer()) as rankers:
        assert rankers["lexical"]("green") == ["b", "a"]
        assert rankers["lexical"]("red") == ["a"]


def test_a_question_of_unknown_words_finds_nothing() -> None:
    """Without words and without a vector there is no ranking."""
    with searchable([make_entry("a", "red")], WordEmbedder(), SplitTokenizer()) as rankers:
        assert rankers["lexical"]("...") == rankers["dense"]("...") == []


def test_one_language_of_an_entry() -> None:
    """The other language's sections and chunks are gone, and nothing else."""
    entry = twin("a", "超时", "timeout")
    english = in_one_language(entry, "en")
    assert [chunk.text for chunk in english.chunks] == ["timeout"]
    assert {section.language for section in english.sections} == {"en"}
    same = replace(english, language="both", sections=entry.sections, chunks=entry.chunks)
    assert same == entry
    with searchable([english], WordEmbedder(), SplitTokenizer()) as rankers:
        assert rankers["lexical"]("超时") == []
        assert rankers["lexical"]("timeout") == ["a"]


def test_texts_are_encoded_once() -> None:
    """Vectors are those of the model, in the order asked, each text encoded a single time."""
    model = WordEmbedder()
    remembering = Remembering(model)
    first = remembering.encode_passages(["a", "b", "a"])
    second = remembering.encode_passages(["b", "c"])
    assert model.encoded == 3
    assert np.array_equal(first, WordEmbedder().encode_passages(["a", "b", "a"]))
    assert np.array_equal(second, WordEmbedder().encode_passages(["b", "c"]))
    assert remembering.encode_queries([]).shape == (0, model.dimension)
    assert (remembering.name, remembering.dimension) == (model.name, model.dimension)


def test_answers_carry_grades() -> None:
    """Every route's ranking becomes grades, questions in their order."""
    rankers = {"up": lambda _: ["a", "b"], "down": lambda _: ["b"]}
    questions = [
        GradedQuestion(text="x", grades={"a": 2}),
        GradedQuestion(text="y", grades={"b": 1}),
    ]
    answers = ask(rankers, questions)
    assert answers["up"] == [
        GradedRanking(ranking=(2, 0), ideal=(2,)),
        GradedRanking(ranking=(0, 1), ideal=(1,)),
    ]
    assert answers["down"] == [
        GradedRanking(ranking=(0,), ideal=(2,)),
        GradedRanking(ranking=(1,), ideal=(1,)),
    ]


def test_a_thread_s_answer_becomes_an_entry() -> None:
    """The answer is the one chunk of the entry under the thread's id, and is found by its words."""
    entries = [answer_entry(thread(name, answer=f"a{name}")) for name in "xy"]
    assert [(entry.id, entry.chunks[0].text) for entry in entries] == [("x", "ax"), ("y", "ay")]
    with searchable(entries, WordEmbedder(), SplitTokenizer()) as rankers:
        assert rankers["lexical"]("ay") == ["y"]


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
    """Every post is searched among all threads; groups are language pairs, mixed ones Chinese."""
    threads = [
        thread("t0", text="red", answer="red"),
        thread("t1", text="蓝", language="zh", answer="blue"),
        thread("t2", text="绿", language="mixed", answer="green"),
    ]
    results = measure_posts(threads, WordEmbedder(), SplitTokenizer({"蓝": "blue", "绿": "green"}))
    assert by_route(results, "en→en") == dict.fromkeys(ROUTES, 1)
    assert {one.count for one in results if one.group == "zh→en"} == {2}
    crossing = by_route(results, "zh→en")
    assert (crossing["lexical"], crossing["lexical + expansion"]) == (0, 1)


@pytest.fixture(scope="module")
def measured(data_dir: Path) -> GoldenReport:
    """The shipped search of cases without paraphrases, as users' own entries are, measured."""
    embedder, tokenizer = load_embedder(Settings(data=data_dir)), Tokenizer(data_dir / "lexicon")
    cases = read_knowledge(data_dir).cases
    return measure_golden(load_golden(data_dir / "golden"), cases, embedder, tokenizer)


def of(report: GoldenReport, group: str, route: str = SHIPPED) -> RouteQuality:
    """One row of the tables."""
    return next(one for one in report.results if (one.group, one.route) == (group, route))


@pytest.mark.slow
def test_the_shipped_search_finds_what_the_golden_set_asks(measured: GoldenReport) -> None:
    """Floors below the lower ends of the intervals measured: noise passes, a broken part fails."""
    assert measured.left_out == 0
    assert of(measured, BOTH).mrr.mean >= 0.79
    assert of(measured, BOTH).recall_at_5.mean >= 0.84
    assert of(measured, SAME).recall_at_5.mean >= 0.85
    assert of(measured, CROSS).recall_at_5.mean >= 0.79


@pytest.mark.slow
def test_the_shipped_search_crosses_languages(measured: GoldenReport) -> None:
    """Across languages nearly as much is found as within one, and it is the expansion's doing."""
    assert measured.parity.mean >= 0.91
    plain, expanded = (of(measured, CROSS, route) for route in ROUTES[:2])
    assert expanded.recall_at_5.mean >= plain.recall_at_5.mean + 0.1


def test_paraphrases_make_cases_findable(shipped: Service, data_dir: Path) -> None:
    """With them the fully right case is first and among five more often than ever without."""
    golden = load_golden(data_dir / "golden")
    first = five = asked = 0
    for query in golden.queries:
        right = {case for case, grade in golden.grades(query.id).items() if grade == FULL}
        found = [hit.entry_id for hit in shipped.search(query.text, limit=5).hits]
        asked += bool(right)
        first += bool(right.intersection(found[:1]))
        five += bool(right.intersection(found))
    assert asked >= 250
    assert first / asked >= 0.83
    assert five / asked >= 0.945
