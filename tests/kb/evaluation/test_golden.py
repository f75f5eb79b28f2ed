"""The golden set: its schema, its balance, and the agreement of its two judgements."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.evaluation.golden import PASSES, QUERIES, SETTLED, GoldenSet, agreement, load_golden
from kb.knowledge.load import Knowledge, load_knowledge
from kb.text.language import has_han
from tests.copied import Originals, case_texts, shared_originals

MIN_KAPPA = 0.6  # below it two judgements are usually called moderate
SHOULD_NOT_SHARE = "a query shares a run of words with a case it is to find"


@pytest.fixture(scope="module")
def golden(data_dir: Path) -> GoldenSet:
    """The shipped golden set."""
    return load_golden(data_dir / "golden")


@pytest.fixture(scope="module")
def knowledge(data_dir: Path) -> Knowledge:
    """The shipped knowledge."""
    return load_knowledge(data_dir)


def write(
    folder: Path, queries: list[dict[str, object]], *passes: dict[str, dict[str, int]]
) -> None:
    """A golden set with two passes of grades by query."""
    lines = [json.dumps(query) for query in queries]
    (folder / QUERIES).write_text("\n".join(lines) + "\n", "utf-8")
    for name, grades in zip(PASSES, passes, strict=True):
        rows = [json.dumps({"query": query, "grades": its}) for query, its in grades.items()]
        (folder / name).write_text("\n".join(rows) + "\n", "utf-8")


def query(identifier: str) -> dict[str, object]:
    """A query of that id."""
    return {"id": identifier, "language": "en", "kind": "words", "text": "it hangs"}


def test_a_case_counts_as_far_as_both_judgements_say(tmp_path: Path) -> None:
    """The mean rounded down: 2 and 2 is 2, 2 and 1 is 1, 1 and 0 is nothing."""
    first, second = {"a": 2, "b": 2, "c": 1, "d": 2}, {"a": 2, "b": 1, "c": 0, "d": 0}
    write(tmp_path, [query("q1")], {"q1": first}, {"q1": second})
    golden = load_golden(tmp_path)
    assert golden.grades("q1") == {"a": 2, "b": 1, "d": 1}
    assert sorted(golden.pairs()) == [(1, 0), (2, 0), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    ("queries", "first", "second", "said"),
    [
        pytest.param(["q1", "q1"], {"q1": {"a": 2}}, {"q1": {"a": 2}}, "stands twice", id="twice"),
        pytest.param(["q1"], {"q2": {"a": 2}}, {"q1": {"a": 2}}, "judged", id="unknown-query"),
        pytest.param(["q1"], {"q1": {"a": 3}}, {"q1": {"a": 2}}, "grade", id="no-such-grade"),
        pytest.param(["q1"], {"q1": {"a": 2}}, {"q1": {"b": 2}}, "different", id="other-cases"),
        pytest.param(["q1"], {"q1": {"a": 2}}, {"q1": {"a": 1}}, "agree on no", id="no-full-grade"),
    ],
)
def test_a_broken_set_is_refused(
    tmp_path: Path,
    queries: list[str],
    first: dict[str, dict[str, int]],
    second: dict[str, dict[str, int]],
    said: str,
) -> None:
    """What is wrong is named with the query or the file."""
    write(tmp_path, [query(one) for one in queries], first, second)
    with pytest.raises(DataError, match=said):
        load_golden(tmp_path)


def test_a_third_look_settles_what_the_passes_do_not(tmp_path: Path) -> None:
    """Without agreement the settled grades count; beside an agreement they are refused."""
    write(tmp_path, [query("q1")], {"q1": {"a": 2, "b": 1}}, {"q1": {"a": 1, "b": 2}})
    settled = tmp_path / SETTLED
    settled.write_text(json.dumps({"query": "q1", "grades": {"a": 2, "b": 0}}) + "\n", "utf-8")
    golden = load_golden(tmp_path)
    assert golden.grades("q1") == {"a": 2}
    assert sorted(golden.pairs()) == [(1, 2), (2, 1)]
    write(tmp_path, [query("q1")], {"q1": {"a": 2}}, {"q1": {"a": 2}})
    with pytest.raises(DataError, match="settled"):
        load_golden(tmp_path)


def test_a_missing_or_torn_file_is_named(tmp_path: Path) -> None:
    """A missing file, and a line that is no query, say which."""
    with pytest.raises(DataError, match=QUERIES):
        load_golden(tmp_path)
    (tmp_path / QUERIES).write_text('{"id": "q1"}\n', "utf-8")
    with pytest.raises(DataError, match="line 1"):
        load_golden(tmp_path)


def test_kappa_of_a_worked_example() -> None:
    """50 items, 35 alike, expected .5: kappa is .4 (the textbook's grant proposals)."""
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    found = agreement(pairs)
    assert (found.pairs, found.equal) == (50, 0.7)
    assert found.kappa == pytest.approx(0.4)


def test_kappa_at_its_ends() -> None:
    """1 for equal judgements, 0 for chance, negative for opposite ones, NaN without a choice."""
    assert agreement([(0, 0), (1, 1), (2, 2)]).kappa == pytest.approx(1)
    assert agreement([(0, 0), (0, 1), (1, 0), (1, 1)]).kappa == pytest.approx(0)
    assert agreement([(0, 1), (1, 0)]).kappa == pytest.approx(-1)
    assert math.isnan(agreement([(0, 0)]).kappa)
    assert math.isnan(agreement([]).kappa)


def test_the_shipped_queries_are_balanced(golden: GoldenSet) -> None:
    """At least 120, half of them Chinese, of every kind, in both languages, some misspelt."""
    assert len(golden.queries) >= 120
    languages = Counter(query.language for query in golden.queries)
    assert languages["zh"] == languages["en"]
    kinds = Counter((query.language, query.kind) for query in golden.queries)
    assert {language for language, _ in kinds} == {"zh", "en"}
    assert (
        min(kinds[language, kind] for language in ("zh", "en") for kind in ("words", "log")) >= 10
    )
    assert min(kinds[language, "mixed"] for language in ("zh", "en")) >= 4
    misspelt = Counter(query.language for query in golden.queries if query.typos)
    assert min(misspelt["zh"], misspelt["en"]) >= 4


def test_the_shipped_queries_speak_their_language(golden: GoldenSet) -> None:
    """Words of a Chinese query are Chinese, an English one has no Chinese character."""
    wrong = [
        query.id
        for query in golden.queries
        if query.kind != "log" and has_han(query.text) != (query.language == "zh")
    ]
    assert wrong == []
    assert len({query.text for query in golden.queries}) == len(golden.queries)


def test_the_shipped_judgements_name_cases(golden: GoldenSet, knowledge: Knowledge) -> None:
    """Every judged id is a case."""
    judged = {case for grades in golden.first.values() for case in grades}
    assert judged - knowledge.case_by_id.keys() == set()


def test_the_shipped_judgements_agree(golden: GoldenSet) -> None:
    """Two passes over the same pairs: equal far beyond chance, and not copies of one another."""
    found = agreement(golden.pairs())
    assert found.kappa >= MIN_KAPPA
    assert found.equal < 1


def test_queries_do_not_quote_their_cases(golden: GoldenSet, knowledge: Knowledge) -> None:
    """No sentence of a case stands in a query: retrieval is not asked to find its own words."""
    prose = Originals.of(
        [text for _, text in case_texts(knowledge)],
        [line for case in knowledge.cases for line in case.signature],
    )
    quoting = [
        (query.id, run)
        for query in golden.queries
        if query.kind != "log"
        for run in prose.copied(query.text)
    ]
    assert quoting == [], SHOULD_NOT_SHARE


@pytest.mark.shared
def test_queries_are_nobodys_post(
    golden: GoldenSet, knowledge: Knowledge, shared_dir: Path
) -> None:
    """No sentence of a real thread or page stands in a query."""
    originals = shared_originals(shared_dir, knowledge)
    copied = [
        (query.id, run)
        for query in golden.queries
        if query.kind != "log"
        for run in originals.copied(query.text)
    ]
    assert copied == []
