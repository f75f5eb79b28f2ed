"""How much a team's own language model is worth: asked about the shipped golden reports.

Its trust (`kb.second_reader.answer.pool`) is the one under which both readers together give the
right causes most probability. A model that guesses gets about none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kb.diagnose.evidence_model import Ranking
from kb.errors import DataError
from kb.evaluation.intervals import share
from kb.evaluation.published import Interval
from kb.second_reader.answer import ModelAnswer, opinion_of, pool
from kb.second_reader.asking import SecondReader
from kb.service import Service
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import UNKNOWN, Language

REPORTS = "reports.jsonl"  # of data/golden
STEPS = 20  # of trust, from 0 to 1
LEAST = 0.005  # probability a right cause has at least when likelihoods are compared
_SILENT = Bilingual(zh="", en="")


class ReportWithCause(msgspec.Struct, frozen=True):
    """A report with its cause: a line of data/golden/reports.jsonl."""

    id: str
    lang: Language
    cause: str
    text: str
    also: tuple[str, ...] = ()
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRead:
    """A report as both readers see it; `answer` is None where the model gave none."""

    cause: str
    ranking: Ranking
    answer: ModelAnswer | None
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondReaderFigures:
    """First causes right: of ours, of the model alone, of both at the measured `trust`."""

    trust: float
    answered: int
    ours: Interval
    model: Interval
    both: Interval
    tokens: int


def load_golden_reports(folder: Path) -> tuple[ReportWithCause, ...]:
    """The reports of ``data/golden``.

    Raises:
        DataError: the file is missing or a line breaks the schema.
    """
    path = folder / REPORTS
    try:
        lines = path.read_bytes().splitlines()
        return tuple(msgspec.json.decode(line, type=ReportWithCause) for line in lines)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path}: {error}", todo="reinstall the package") from error


def read_twice(
    service: Service, reader: SecondReader, reports: Sequence[ReportWithCause]
) -> list[SecondRead]:
    """Every report with a cause, read by us and by the model."""
    pairs = []
    for report in reports:
        if report.cause == UNKNOWN:
            continue
        paste = "\n\n".join(part for part in (report.text, report.log) if part)
        verdict = service.judge(service.read_text(paste))
        opinion = reader.ask_about(verdict)
        pairs.append(
            SecondRead(
                cause=report.cause,
                ranking=verdict.ranking,
                answer=opinion.answer,
                tokens=opinion.tokens,
            )
        )
    return pairs


def measure_trust(pairs: Sequence[SecondRead]) -> SecondReaderFigures:
    """The trust with the best likelihood, and what each reader and both together get right."""
    answered = [pair for pair in pairs if pair.answer is not None]
    trusts = [step / STEPS for step in range(STEPS + 1)]
    trust = max(trusts, key=lambda one: (_likelihood(answered, one), -one)) if answered else 0.0
    return SecondReaderFigures(
        trust=trust,
        answered=len(answered),
        ours=share(pairs, lambda pair: pair.ranking.causes[0].cause == pair.cause),
        model=share(pairs, lambda pair: _alone(pair) == pair.cause),
        both=share(pairs, lambda pair: _together(pair, trust).causes[0].cause == pair.cause),
        tokens=sum(pair.tokens for pair in pairs),
    )


def _likelihood(pairs: Sequence[SecondRead], trust: float) -> float:
    total = 0.0
    for pair in pairs:
        shares = {one.cause: one.probability for one in _together(pair, trust).causes}
        total += math.log(max(shares.get(pair.cause, 0.0), LEAST))
    return total


def _together(pair: SecondRead, trust: float) -> Ranking:
    return pool(pair.ranking, pair.answer, trust, _SILENT) if pair.answer else pair.ranking


def _alone(pair: SecondRead) -> str:
    if pair.answer is None:
        return ""
    opinion = opinion_of(pair.answer.causes, [one.cause for one in pair.ranking.causes])
    return max(opinion, key=lambda cause: opinion[cause])
