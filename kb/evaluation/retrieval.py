"""How well a post finds its own root cause and fix, by any scorer; no index is involved.

A route is anything that scores all documents for all queries. `kb.evaluation.ablation` measures
the indexes and the search themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.embed.base import Embedder
from kb.errors import InputError
from kb.evaluation.metrics import FULL, Judged, Result, summarise
from kb.fuse import fuse_scores

Scores = NDArray[np.float32]
Route = Callable[[Sequence[str], Sequence[str]], Scores]
"""Takes queries and documents, returns shape (queries, documents), higher is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and the one document it is about.

    `group` is what the results are split by, such as ``zh→en``.
    """

    id: str
    text: str
    group: str
    relevant: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Queries and the documents each of them is searched in."""

    queries: tuple[Query, ...]
    documents: tuple[str, ...]


def load_threads(path: Path) -> Benchmark:
    """Every thread's post as query, every thread's root cause and fix as document.

    `path` holds one JSON object a line with id, lang, title, query_text, query_log, root_cause
    and fix. Posts in Chinese, wholly or in part, are the group ``zh→en``.

    Raises:
        InputError: the file cannot be read or a line lacks a field.
    """
    queries, documents = [], []
    try:
        lines = path.read_text("utf-8").rstrip("\n").split("\n")
        for number, line in enumerate(lines):
            thread = json.loads(line)
            title, text, log = thread["title"], thread["query_text"], thread["query_log"]
            queries.append(
                Query(
                    id=thread["id"],
                    text="\n".join(part for part in (title, text, log) if part),
                    group="en→en" if thread["lang"] == "en" else "zh→en",
                    relevant=number,
                )
            )
            documents.append(f"{thread['root_cause']} {thread['fix']}")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a file of threads: {error!r}") from error
    return Benchmark(queries=tuple(queries), documents=tuple(documents))


def dense(embedder: Embedder) -> Route:
    """The route that scores by cosine, in [-1, 1]."""

    def score(queries: Sequence[str], documents: Sequence[str]) -> Scores:
        scores: Scores = embedder.encode_queries(queries) @ embedder.encode_passages(documents).T
        return scores

    return score


def hybrid(*routes: Route) -> Route:
    """The mean of `routes`, each query's scores stretched to [0, 1] first."""

    def score(queries: Sequence[str], documents: Sequence[str]) -> Scores:
        weights = [1 / len(routes)] * len(routes)
        parts = [route(queries, documents) for route in routes]
        return np.stack([fuse_scores(rows, weights) for rows in zip(*parts, strict=True)])

    return score


def ranks(scores: Scores, relevant: Sequence[int]) -> NDArray[np.int64]:
    """Rank of each query's relevant document, counted from 1; of equal scores the first wins."""
    rows = np.arange(len(relevant))
    own = scores[rows, list(relevant)][:, None]
    before = np.arange(scores.shape[1])[None, :] < np.asarray(relevant)[:, None]
    ahead = (scores > own) | ((scores == own) & before)
    return np.asarray(1 + ahead.sum(axis=1), dtype=np.int64)


def evaluate(benchmark: Benchmark, routes: Mapping[str, Route]) -> list[Result]:
    """Results of every route on every group, routes in the order given, groups sorted."""
    texts = [query.text for query in benchmark.queries]
    relevant = [query.relevant for query in benchmark.queries]
    groups = np.array([query.group for query in benchmark.queries])
    results = []
    for name, route in routes.items():
        found = ranks(route(texts, benchmark.documents), relevant)
        results += [
            summarise(name, str(group), _judged(found[groups == group]))
            for group in sorted({*groups})
        ]
    return results


def _judged(ranks_found: NDArray[np.int64]) -> list[Judged]:
    """Answers in which the only relevant document stands at the given ranks."""
    return [Judged(found=(0,) * (rank - 1) + (FULL,), ideal=(FULL,)) for rank in ranks_found]
