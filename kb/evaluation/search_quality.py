"""The two measurements of the search: the golden set over the cases, and posts over their threads.

Every golden query is asked three times: of the cases in its own language only, of the cases in the
other language only, and of the cases as shipped, which carry both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kb.embed.base import Embedder
from kb.evaluation.ablation import (
    SHIPPED,
    Question,
    Remembering,
    ask,
    in_one_language,
    searchable,
    thread_entries,
)
from kb.evaluation.golden import Agreement, GoldenQuery, GoldenSet, agreement
from kb.evaluation.intervals import Interval, ratio_interval
from kb.evaluation.metrics import FULL, Judged, Result, recall_at, summarise
from kb.evaluation.retrieval import Benchmark
from kb.index.manifest import Tokens
from kb.types import Entry, Language

SAME, CROSS, BOTH = "same language", "cross-language", "both languages"
MINILM, MINILM_HYBRID = "MiniLM", "hybrid with MiniLM"
PARITY_RANKS = 5  # parity compares recall at this rank
LANGUAGES: tuple[Language, Language] = ("zh", "en")

Answers = Mapping[str, Sequence[Judged]]
"""Route → answers in the order of the queries."""


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
    results: tuple[Result, ...]
    parts: tuple[Result, ...]
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
    questions = [Question(text=query.text, grades=golden.grades(query.id)) for query in queries]
    models = Models(embedder=embedder, monolingual=monolingual, tokenizer=tokenizer)
    settings = _settings(queries, questions, cases, models) if queries else {}
    shipped = {name: answers[SHIPPED] for name, answers in settings.items()}
    spoken = [number for number, query in enumerate(queries) if query.kind != "log"]
    return GoldenReport(
        agreement=agreement(golden.pairs()),
        results=tuple(
            summarise(route, setting, judged)
            for setting, answers in settings.items()
            for route, judged in answers.items()
        ),
        parts=_parts(queries, shipped),
        parity=_parity(shipped, range(len(queries))),
        parity_of_words=_parity(shipped, spoken),
        queries=len(queries),
        cases=len(cases),
        left_out=len(golden.queries) - len(queries),
    )


def measure_threads(
    benchmark: Benchmark,
    embedder: Embedder,
    tokenizer: Tokens,
    *,
    monolingual: Embedder | None = None,
) -> tuple[Result, ...]:
    """Every post against all threads' root causes and fixes, by route and language pair."""
    questions = [Question(text=query.text, grades={query.id: FULL}) for query in benchmark.queries]
    models = Models(embedder=embedder, monolingual=monolingual, tokenizer=tokenizer)
    answers = models.ask(thread_entries(benchmark), questions)
    groups = [query.group for query in benchmark.queries]
    return tuple(
        summarise(
            route, group, [one for one, its in zip(judged, groups, strict=True) if its == group]
        )
        for group in sorted(set(groups))
        for route, judged in answers.items()
    )


class Models:
    """The models to compare: the search's own and, beside it, a monolingual one."""

    def __init__(
        self, *, embedder: Embedder, monolingual: Embedder | None, tokenizer: Tokens
    ) -> None:
        """Texts are encoded once however often they are indexed."""
        self._own = Remembering(embedder)
        self._other = Remembering(monolingual) if monolingual else None
        self._tokenizer = tokenizer

    def ask(
        self, entries: Sequence[Entry], questions: Sequence[Question]
    ) -> dict[str, list[Judged]]:
        """All routes' answers over `entries`."""
        with searchable(entries, self._own, self._tokenizer) as rankers:
            answers = ask(rankers, questions)
        if self._other is not None:
            with searchable(entries, self._other, self._tokenizer) as rankers:
                chosen = {MINILM: rankers["dense"], MINILM_HYBRID: rankers[SHIPPED]}
                answers |= ask(chosen, questions)
        return answers


def _settings(
    queries: Sequence[GoldenQuery],
    questions: Sequence[Question],
    cases: Sequence[Entry],
    models: Models,
) -> dict[str, dict[str, list[Judged]]]:
    """Setting → route → answers."""
    alone = {
        language: models.ask([in_one_language(case, language) for case in cases], questions)
        for language in LANGUAGES
    }
    other: dict[Language, Language] = {"zh": "en", "en": "zh"}

    def pick(route: str, *, crossing: bool) -> list[Judged]:
        return [
            alone[other[query.language] if crossing else query.language][route][number]
            for number, query in enumerate(queries)
        ]

    names = list(alone["zh"])
    return {
        SAME: {route: pick(route, crossing=False) for route in names},
        CROSS: {route: pick(route, crossing=True) for route in names},
        BOTH: models.ask(cases, questions),
    }


def _parts(
    queries: Sequence[GoldenQuery], shipped: Mapping[str, Sequence[Judged]]
) -> tuple[Result, ...]:
    """The shipped search on each part of the golden set."""
    arrows = {SAME: {"zh": "zh→zh", "en": "en→en"}, CROSS: {"zh": "zh→en", "en": "en→zh"}}
    groups: dict[str, list[Judged]] = {}
    for setting, names in arrows.items():
        for query, judged in zip(queries, shipped.get(setting, ()), strict=True) if shipped else ():
            groups.setdefault(names[query.language], []).append(judged)
    for query, judged in zip(queries, shipped.get(BOTH, ()), strict=True):
        groups.setdefault(f"{query.kind}, {BOTH}", []).append(judged)
        if query.typos:
            groups.setdefault(f"misspelt, {BOTH}", []).append(judged)
    return tuple(summarise(SHIPPED, group, judged) for group, judged in groups.items())


def _parity(shipped: Mapping[str, Sequence[Judged]], numbers: Sequence[int]) -> Interval:
    def recalls(setting: str) -> list[float]:
        return [recall_at(shipped[setting][number], PARITY_RANKS) for number in numbers]

    return ratio_interval(*(recalls(name) if numbers else [] for name in (CROSS, SAME)))
