"""How well the search finds cases, as tables for `timeout-kb evaluate retrieval`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.common import note
from kb.errors import MissingExtraError
from kb.settings import Settings

if TYPE_CHECKING:
    from kb.evaluation.metrics import RouteQuality
    from kb.evaluation.search_quality import GoldenReport
    from kb.search.rerank import Reranker
    from kb.service import Service

Figures = dict[str, dict[str, str]]
Tables = dict[str, dict[str, dict[str, str]]]
"""Table, row, column."""


def retrieval(
    service: Service,
    settings: Settings,
    threads: Path | None,
    *,
    minilm: bool,
    report: Path | None,
) -> dict[str, Figures | Tables]:
    """The search on the golden set and on labelled threads, route by route."""
    from kb.embed import load_embedder
    from kb.evaluation.golden import load_golden
    from kb.evaluation.search_quality import (
        measure_golden,
        measure_posts,
        monolingual,
        retrieval_figures,
    )
    from kb.text.tokenizer import Tokenizer
    from kb.train.threads import load_threads

    embedder, tokenizer = load_embedder(settings), Tokenizer(settings.data / "lexicon")
    other, missing = None, ""
    try:
        other = monolingual() if minilm else None
    except MissingExtraError as error:
        missing = str(error)
    golden = load_golden(settings.data / "golden")
    cases = service.knowledge.cases
    reranker = _reranker(service, settings)
    measured = measure_golden(
        golden, cases, embedder, tokenizer, monolingual=other, reranker=reranker
    )
    if report is not None:
        from kb.evaluation.published import save_published

        note(
            f"wrote {save_published(report, retrieval_figures(measured, date=today().isoformat()))}"
        )
    summary = _summary(measured) | ({"MiniLM": missing} if missing else {})
    tables = _tables("golden set", measured.results)
    tables["golden set, parts, the search as shipped"] = {
        result.group: _row(result) for result in measured.parts
    }
    if threads is not None:
        labelled = load_threads(threads)
        results = measure_posts(labelled, embedder, tokenizer, monolingual=other, reranker=reranker)
        tables |= _tables("posts and their threads' causes", results)
    return {"retrieval": {"golden set": summary}, "retrieval by route": tables}


def _reranker(service: Service, settings: Settings) -> Reranker:
    """The second look of the shipped search."""
    from kb.knowledge.framework_names import framework_names
    from kb.search.rerank import FOLDER, load_reranker

    names = framework_names(service.knowledge.framework_names)
    return load_reranker(settings.data / FOLDER, names)


def case_queries(
    service: Service, settings: Settings, path: Path, *, minilm: bool, show: bool
) -> Figures | Tables:
    """Whether the queries of a file find their case; with `show` those that miss it."""
    from kb.embed import load_embedder
    from kb.evaluation.case_queries import (
        ask_case_queries,
        load_case_queries,
        missed,
        query_figures,
    )
    from kb.evaluation.search_quality import monolingual
    from kb.knowledge.paraphrases import FOLDER, load_paraphrases
    from kb.text.tokenizer import Tokenizer

    queries = load_case_queries(path)
    learned = {item.case for item in load_paraphrases(settings.data / FOLDER)}
    answers = ask_case_queries(
        queries,
        service.knowledge.cases,
        load_embedder(settings),
        Tokenizer(settings.data / "lexicon"),
        monolingual=monolingual() if minilm else None,
        reranker=_reranker(service, settings),
    )
    if show:
        return {
            "queries whose case is not first": {
                query.q: f"{query.case}: {f'rank {rank}' if rank else 'not found'}"
                for query, rank in missed(queries, answers)
            }
        }
    return _tables(path.name, query_figures(queries, answers, learned))


def _summary(report: GoldenReport) -> dict[str, str]:
    agreed = report.agreement
    return {
        "queries": f"{report.queries} ({report.left_out} left out, their cases are not here)",
        "cases searched": str(report.cases),
        "two judgements": f"kappa {agreed.kappa:.2f}, equal {agreed.equal:.1%} of {agreed.pairs}",
        "recall@5, cross-language / same": str(report.parity),
        "the same without bare log lines": str(report.parity_of_words),
    }


def _tables(title: str, results: Sequence[RouteQuality]) -> Tables:
    """One table a group, one row a route."""
    tables: Tables = {}
    for result in results:
        table = tables.setdefault(f"{title}, {result.group} (n={result.count})", {})
        table[result.route] = _row(result)
    return tables


def _row(result: RouteQuality) -> dict[str, str]:
    figures = {
        "MRR": result.mrr,
        "recall@1": result.recall_at_1,
        "recall@5": result.recall_at_5,
        "recall@10": result.recall_at_10,
        "nDCG@10": result.ndcg_at_10,
    }
    return {name: value.text(3, 2) for name, value in figures.items()}


def today() -> dt.date:
    """The date that reports are given."""
    return dt.datetime.now(dt.UTC).date()
