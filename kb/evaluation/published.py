"""The figures of the evaluation as a file beside the report: what a page tells of the quality."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from kb.errors import DataError, InputError

PUBLISHED = "figures.json"
PUBLISHED_FORMAT = 1
REPAIR = "write it anew with: timeout-kb evaluate --threads FILE --report data/golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure with its 95 % interval over `n` values; None where there was nothing to measure."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseFigures:
    """One cause: incidents that have it, how they are ranked, how often naming it is right."""

    cause: str
    n: int
    named: int
    top1: float | None
    top3: float | None
    precision: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BinFigures:
    """Answers of like confidence: its mean, and the share that was right."""

    confidence: float
    right: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFigures:
    """Measurable incidents of one language, or with and without a log."""

    name: str
    top1: Figure
    top3: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisFigures:
    """How good the diagnosis is; `figures` go by the names of `kb.evaluation.publish`.

    `negatives` are logs without a timeout. Of the measurable incidents `answered` are those the
    product gives a cause for instead of "unknown", `answered_right` those of them it gets right.
    """

    date: str
    incidents: int
    measurable: int
    cases: int
    negatives: int
    unknown_below: float
    answered: int
    answered_right: int
    figures: dict[str, Figure]
    bins: tuple[BinFigures, ...]
    causes: tuple[CauseFigures, ...]
    parts: tuple[PartFigures, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteFigures:
    """One way to search in one setting (``same language``, ``cross-language``, …)."""

    setting: str
    route: str
    n: int
    mrr: Figure
    recall_at_1: Figure
    recall_at_5: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalFigures:
    """How good the search is on the judged queries; `parity` is across languages over within."""

    date: str
    queries: int
    cases: int
    kappa: float | None
    routes: tuple[RouteFigures, ...]
    parity: Figure
    parity_of_words: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What the file holds; a part nobody has measured is None."""

    format: int = PUBLISHED_FORMAT
    diagnosis: DiagnosisFigures | None = None
    retrieval: RetrievalFigures | None = None


@dataclass(frozen=True, slots=True)
class _Head:
    format: int = field(default=0)


def load_published(folder: Path) -> Published:
    """The figures kept in `folder`; without a file there are none.

    Raises:
        DataError: the file is damaged or of another format; the message has the repairing command.
    """
    path = folder / PUBLISHED
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Published()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", todo=REPAIR) from error
    try:
        found = msgspec.json.decode(content, type=_Head).format
        if found != PUBLISHED_FORMAT:
            raise DataError(
                f"{path} is of format {found}, this program reads {PUBLISHED_FORMAT}", todo=REPAIR
            )
        return msgspec.json.decode(content, type=Published)
    except msgspec.DecodeError as error:
        raise DataError(f"{path} cannot be read: {error}", todo=REPAIR) from error


def save_published(
    folder: Path,
    *,
    diagnosis: DiagnosisFigures | None = None,
    retrieval: RetrievalFigures | None = None,
) -> Path:
    """Write the parts given; the other stays, and so does the date of a part that has not moved.

    Raises:
        DataError: the file that is there cannot be read.
        InputError: the folder cannot be written.
    """
    before = load_published(folder)
    changes: dict[str, Any] = {}
    if diagnosis is not None:
        old = before.diagnosis
        moved = old is None or replace(old, date=diagnosis.date) != diagnosis
        changes["diagnosis"] = diagnosis if moved else old
    if retrieval is not None:
        last = before.retrieval
        moved = last is None or replace(last, date=retrieval.date) != retrieval
        changes["retrieval"] = retrieval if moved else last
    path = folder / PUBLISHED
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    encoded = msgspec.json.format(msgspec.json.encode(replace(before, **changes)), indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(encoded + b"\n")
        aside.replace(path)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", todo="name a folder to write to") from error
    return path
