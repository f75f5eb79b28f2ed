"""How much a team's own language model is worth: asked about the shipped golden reports.

Its trust (`kb.second_reader.answer.pool`) is the one under which both readers together give the
right causes most probability. A model that guesses gets about none.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from kb.diagnose.evidence_model import Ranking
from kb.errors import DataError
from kb.evaluation.intervals import share
from kb.evaluation.published import Interval
from kb.second_reader.answer import ModelAnswer, opinion_of, pool
from kb.second_reader.asking import SecondReader
from kb.service import Service
from kb.train.reports import FOLDER as REPORTS_FOLDER
from kb.train.reports import load_reports
from kb.train.samples import (
    HeldOutReader,
    case_samples,
    causes_of,
    described_reports,
    relate,
    thread_samples,
)
from kb.train.threads import LabelledThread
from kb.train.weights import CrossFit
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import UNKNOWN, Language

REPORTS = "reports.jsonl"  # of data/golden
STEPS = 20  # of trust, from 0 to 1
TOP = 3
SEED = 3  # of the model that guesses
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


# --- recorded answers ----------------------------------------------------------------------------


class RecordedAnswer(msgspec.Struct, frozen=True):
    """What a model said of a thread, kept from an earlier time: probabilities by cause id."""

    id: str
    p: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledFigures:
    """First right, among three, and the Brier score over all causes (0 is best)."""

    first: Interval
    three: Interval
    brier: float


def load_answers(path: Path) -> dict[str, ModelAnswer]:
    """Recorded answers by thread, one JSON object a line.

    Raises:
        DataError: the file cannot be read or a line breaks the schema.
    """
    try:
        rows = [
            msgspec.json.decode(line, type=RecordedAnswer)
            for line in path.read_bytes().splitlines()
            if line.strip()
        ]
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path}: {error}", todo="give one JSON object a line: id, p") from error
    return {row.id: ModelAnswer(causes=row.p, quotes={}) for row in rows}


def read_recorded(
    service: Service, threads: Sequence[LabelledThread], answers: Mapping[str, ModelAnswer]
) -> list[SecondRead]:
    """Every thread with an answer; ours by weights and a reader that never saw its project."""
    relations, causes = relate(threads, service), causes_of(service)
    samples = thread_samples(threads, service, relations)
    more = case_samples(service, relations)
    reports = load_reports(service.settings.data / REPORTS_FOLDER)
    written = described_reports(service, relations, reports)
    held_out = HeldOutReader([*samples, *more, *written], service)
    samples, more = ([held_out.read(one) for one in part] for part in (samples, more))
    fitted = CrossFit(samples, causes, more)
    return [
        SecondRead(cause=thread.cause, ranking=fitted.rank(sample), answer=answers[thread.id])
        for thread, sample in zip(threads, samples, strict=True)
        if thread.id in answers
    ]


def pooled_figures(pairs: Sequence[SecondRead], trust: float | None) -> PooledFigures:
    """Both readers at that trust; None: the model alone."""
    shares = [_shares(pair, trust) for pair in pairs]
    ranked = [
        (pair.cause, sorted(of, key=lambda cause, of=of: (-of[cause], cause)))  # type: ignore[misc]
        for pair, of in zip(pairs, shares, strict=True)
    ]
    brier = sum(
        (value - (cause == pair.cause)) ** 2
        for pair, of in zip(pairs, shares, strict=True)
        for cause, value in of.items()
    )
    return PooledFigures(
        first=share(ranked, lambda item: item[1][0] == item[0]),
        three=share(ranked, lambda item: item[0] in item[1][:TOP]),
        brier=brier / len(pairs),
    )


def _shares(pair: SecondRead, trust: float | None) -> dict[str, float]:
    """The shares of all causes, which sum to 1."""
    causes = [one.cause for one in pair.ranking.causes]
    if trust is None:
        return opinion_of(pair.answer.causes if pair.answer else {}, causes)
    ranking = _together(pair, trust)
    return {one.cause: one.probability / (1 - ranking.unknown) for one in ranking.causes}


def bad_models(pairs: Sequence[SecondRead]) -> dict[str, list[SecondRead]]:
    """The same reports as worthless models would read them: by their kind."""
    chance = random.Random(SEED)  # noqa: S311 - a guess, no secret
    causes = sorted(one.cause for one in pairs[0].ranking.causes)
    inverted = []
    for pair in pairs:
        given = pair.answer.causes if pair.answer else {}
        most = max(given.values(), default=1.0)
        inverted.append({cause: most - given.get(cause, 0.0) for cause in causes})
    kinds: dict[str, list[dict[str, float]]] = {
        "random": [{chance.choice(causes): 1.0} for _ in pairs],
        "always the same": [{causes[0]: 1.0} for _ in pairs],
        "inverted": inverted,
    }
    return {
        kind: [
            replace(pair, answer=ModelAnswer(causes=named, quotes={}))
            for pair, named in zip(pairs, answers, strict=True)
        ]
        for kind, answers in kinds.items()
    }


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
