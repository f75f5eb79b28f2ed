"""Whether queries find the case they were written for, route by route.

The queries are written by somebody who read a case's source and not the case, and are asked once:
after that they are no judges any more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kb.embed.base import Embedder
from kb.errors import InputError
from kb.evaluation.metrics import FULL, GradedRanking, RouteQuality, summarise
from kb.evaluation.search_quality import SHIPPED, Answers, GradedQuestion, Models
from kb.index.base import Tokens
from kb.search.rerank import Reranker
from kb.types.entries import Entry
from kb.types.vocabulary import Language

ALL = "all"
LEARNED, APART = "case with paraphrases", "case without paraphrases"


class CaseQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query, how it was written, and the case that answers it."""

    q: str
    lang: Language
    kind: Literal["lay", "line", "question", "keywords"]
    case: str


def load_case_queries(path: Path) -> tuple[CaseQuery, ...]:
    """Read queries, one JSON object a line.

    Raises:
        InputError: the file is missing or empty, or a line is no such object.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", todo="give a file of queries") from error
    queries = []
    for number, line in enumerate(lines, start=1):
        try:
            queries.append(msgspec.json.decode(line, type=CaseQuery))
        except msgspec.DecodeError as error:
            raise InputError(f"{path}, line {number}: {error}", todo="correct the line") from error
    if not queries:
        raise InputError(f"{path}: no queries", todo="one JSON object a line")
    return tuple(queries)


def ask_case_queries(
    queries: Sequence[CaseQuery],
    cases: Sequence[Entry],
    embedder: Embedder,
    tokenizer: Tokens,
    *,
    monolingual: Embedder | None = None,
    reranker: Reranker | None = None,
) -> Answers:
    """The answers of every route over `cases`; `monolingual` is measured beside `embedder`.

    Raises:
        InputError: a query names a case that is not there.
    """
    if missing := sorted({query.case for query in queries} - {case.id for case in cases}):
        raise InputError(f"no case {missing[0]!r}", todo="see data/cases")
    models = Models(
        embedder=embedder, monolingual=monolingual, tokenizer=tokenizer, reranker=reranker
    )
    return models.ask(cases, [GradedQuestion(text=q.q, grades={q.case: FULL}) for q in queries])


def query_figures(
    queries: Sequence[CaseQuery], answers: Answers, learned: Collection[str]
) -> tuple[RouteQuality, ...]:
    """Every route on all queries, then the shipped one by language, kind and standing.

    `learned` are the cases that have paraphrases.
    """
    groups: dict[str, list[GradedRanking]] = {}
    for query, graded in zip(queries, answers[SHIPPED], strict=True):
        standing = LEARNED if query.case in learned else APART
        for group in (query.lang, query.kind, standing):
            groups.setdefault(group, []).append(graded)
    return (
        *(summarise(route, ALL, graded) for route, graded in answers.items()),
        *(summarise(SHIPPED, group, groups[group]) for group in sorted(groups)),
    )


def missed(queries: Sequence[CaseQuery], answers: Answers) -> list[tuple[CaseQuery, int]]:
    """The queries whose case is not first, each with its rank from 1; 0 where it is not found."""
    ranks = [
        next((rank for rank, grade in enumerate(one.ranking, start=1) if grade == FULL), 0)
        for one in answers[SHIPPED]
    ]
    return [(query, rank) for query, rank in zip(queries, ranks, strict=True) if rank != 1]
