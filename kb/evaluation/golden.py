"""The golden set: queries as people write them, and which cases answer them, judged twice.

Files of ``data/golden``: ``queries.jsonl``, one file a judging pass, and what a third look settled.
What the figures use is the mean of both passes rounded down, so a case counts fully only where both
say so. Where they agree on no case at all, the third look decides; agreement leaves it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from kb.errors import DataError
from kb.evaluation.metrics import FULL, GRADES
from kb.types.vocabulary import Language

QUERIES = "queries.jsonl"
PASSES = ("judgements-a.jsonl", "judgements-b.jsonl")
SETTLED = "settled.jsonl"

REPORTS = "golden/reports.jsonl"  # of data/
QueryKind = Literal["words", "log", "mixed"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenQuery:
    """What a person asks: `words` is a description, `log` program output only, `mixed` both.

    `language` is the person's, also where only program output was pasted; `typos` says that words
    are misspelt.
    """

    id: str
    language: Language
    kind: QueryKind
    text: str
    typos: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenIncident:
    """A report in the project's own words; `also` are causes as defensible as `cause`."""

    id: str
    lang: Language
    cause: str
    also: tuple[str, ...]
    text: str
    log: str

    @property
    def causes(self) -> tuple[str, ...]:
        """The right causes, the first one first."""
        return (self.cause, *self.also)

    @property
    def paste(self) -> str:
        """Words and log as they are pasted."""
        return f"{self.text}\n{self.log}".strip()


def load_golden_reports(path: Path) -> tuple[GoldenIncident, ...]:
    """The reports that judge the diagnosis, in the order of the file.

    Raises:
        DataError: the file is missing or breaks its schema.
    """
    return _lines(path, GoldenIncident)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Grades of the cases one pass looked at for one query; cases not named have grade 0."""

    query: str
    grades: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenSet:
    """Queries in the order of the file, with both passes' grades by query id.

    `settled` holds the grades of the queries on which the passes agree on no case.
    """

    queries: tuple[GoldenQuery, ...]
    first: Mapping[str, Mapping[str, int]]
    second: Mapping[str, Mapping[str, int]]
    settled: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def grades(self, query: str) -> dict[str, int]:
        """The grades that count: those settled, or the mean of both passes rounded down."""
        grades = self.settled.get(query) or self.agreed(query)
        return {case: grade for case, grade in grades.items() if grade}

    def agreed(self, query: str) -> dict[str, int]:
        """The mean of both passes rounded down."""
        second = self.second[query]
        return {case: (grade + second[case]) // 2 for case, grade in self.first[query].items()}

    def pairs(self) -> list[tuple[int, int]]:
        """Both passes' grades of every query and case they looked at."""
        return [
            (grade, self.second[query.id][case])
            for query in self.queries
            for case, grade in self.first[query.id].items()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two passes agree: share of equal grades, and Cohen's kappa (1: always)."""

    pairs: int
    equal: float
    kappa: float


def load_golden(folder: Path) -> GoldenSet:
    """Read and check the golden set.

    Raises:
        DataError: a file is missing or breaks its schema, the passes judged different cases, or
            they agree on no case for a query.
    """
    queries = _lines(folder / QUERIES, GoldenQuery)
    twice = [query for query, count in Counter(query.id for query in queries).items() if count > 1]
    if twice:
        raise DataError(f"{QUERIES}: {twice[0]!r} stands twice", todo="rename one of them")
    first, second = (_pass(folder / name) for name in PASSES)
    settled = _pass(folder / SETTLED) if (folder / SETTLED).exists() else {}
    golden = GoldenSet(queries=queries, first=first, second=second, settled=settled)
    _check(golden)
    return golden


def _check(golden: GoldenSet) -> None:
    ids = {query.id for query in golden.queries}
    for name, judged in zip(PASSES, (golden.first, golden.second), strict=True):
        wrong = judged.keys() ^ ids
        if wrong:
            raise DataError(
                f"{name}: {min(wrong)!r} is not both a query and judged",
                todo=f"judge every query of {QUERIES} once",
            )
    for query in sorted(ids):
        if golden.first[query].keys() != golden.second[query].keys():
            raise DataError(
                f"query {query!r}: the passes judged different cases",
                todo="judge every case of either pass in both",
            )
        agreed = FULL in golden.agreed(query).values()
        if agreed == (query in golden.settled):
            raise DataError(
                f"query {query!r}: the passes agree on a case of grade {FULL} and it is settled"
                if agreed
                else f"query {query!r}: the passes agree on no case of grade {FULL}",
                todo=f"settle the queries without agreement in {SETTLED}, and no others",
            )


def _pass(path: Path) -> dict[str, dict[str, int]]:
    judgements = {item.query: item.grades for item in _lines(path, Judgement)}
    for query, grades in judgements.items():
        if not set(grades.values()) <= set(GRADES):
            raise DataError(f"{path.name}: {query!r} has a grade that is none of {GRADES}")
    return judgements


def _lines(path: Path, kind: type[T]) -> tuple[T, ...]:
    """One value a line."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", todo="restore data/golden") from error
    decoder = msgspec.json.Decoder(kind)
    values = []
    for number, line in enumerate(lines, start=1):
        try:
            values.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            raise DataError(
                f"{path.name}, line {number}: {error}", todo="see data/golden/README.md"
            ) from error
    return tuple(values)


def agreement(pairs: Sequence[tuple[int, int]]) -> Agreement:
    """Agreement of two judges: kappa = (observed - expected) / (1 - expected).

    Kappa is NaN where chance alone would always agree.
    Source: Cohen 1960, https://doi.org/10.1177/001316446002000104
    """
    total = len(pairs)
    if not total:
        return Agreement(pairs=0, equal=float("nan"), kappa=float("nan"))
    equal = sum(first == second for first, second in pairs) / total
    by_first = Counter(first for first, _ in pairs)
    by_second = Counter(second for _, second in pairs)
    expected = sum(by_first[grade] * by_second[grade] for grade in GRADES) / total**2
    kappa = (equal - expected) / (1 - expected) if expected < 1 else float("nan")
    return Agreement(pairs=total, equal=equal, kappa=kappa)
