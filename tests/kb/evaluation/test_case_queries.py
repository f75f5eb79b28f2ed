"""Queries in a file: read strictly, asked of every route, told apart by how they were written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evaluation.case_queries import (
    ALL,
    APART,
    LEARNED,
    ask_case_queries,
    load_case_queries,
    missed,
    query_figures,
)
from kb.evaluation.search_quality import SHIPPED
from tests.kb.evaluation.test_search_quality import twin
from tests.kb.fakes import SplitTokenizer, WordEmbedder

ROWS = [
    {"q": "checkpoint never written", "lang": "en", "kind": "lay", "case": "save"},
    {"q": "link flaps", "lang": "zh", "kind": "keywords", "case": "link"},
    {"q": "link flaps", "lang": "en", "kind": "line", "case": "save"},
]


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    """The rows as a file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_figures_by_route_and_by_group(tmp_path: Path) -> None:
    """All queries have a line a route; the shipped search one a language, kind and standing."""
    queries = load_case_queries(write(tmp_path / "q.jsonl", ROWS))
    cases = [twin("save", "存检查点", "checkpoint saving"), twin("link", "链路", "a link flaps")]
    answers = ask_case_queries(queries, cases, WordEmbedder(), SplitTokenizer())
    figures = query_figures(queries, answers, {"save"})
    found = {(one.route, one.group): (one.count, one.recall_at_1.mean) for one in figures}
    assert found["lexical", ALL] == (3, pytest.approx(2 / 3))
    assert found[SHIPPED, LEARNED] == (2, 0.5)
    assert found[SHIPPED, APART] == (1, 1)
    assert found[SHIPPED, "line"] == (1, 0)
    assert [(query.kind, rank) for query, rank in missed(queries, answers)] == [("line", 2)]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [([], "no queries"), ([ROWS[0] | {"kind": "song"}], "line 1: Invalid enum value")],
)
def test_wrong_files_are_refused(tmp_path: Path, rows: list[dict[str, str]], wrong: str) -> None:
    """An empty file, a kind there is not, and a case there is not."""
    with pytest.raises(InputError, match=wrong):
        load_case_queries(write(tmp_path / "q.jsonl", rows))
    queries = load_case_queries(write(tmp_path / "right.jsonl", ROWS))
    with pytest.raises(InputError, match="no case 'link'"):
        ask_case_queries(queries, [twin("save", "a", "b")], WordEmbedder(), SplitTokenizer())
