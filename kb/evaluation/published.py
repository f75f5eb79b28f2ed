"""The figures of the evaluation and the file beside the report that the quality page reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kb.errors import DataError, InputError
from kb.files.atomic import write_file

PUBLISHED = "figures.json"
PUBLISHED_FORMAT = 1
RECORD = "first_sight.jsonl"  # of data/golden
DIGITS = 4  # more would change with every platform
REPAIR = "write it anew with: timeout-kb evaluate --threads FILE --report data/golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its 95 % interval over `n` values; None where there was nothing to measure."""

    mean: float | None
    low: float | None
    high: float | None
    n: int

    def __str__(self) -> str:
        return f"{self.text(3, 3)} (n={self.n})"

    def text(self, digits: int, ends: int) -> str:
        """``0.642 [0.55, 0.73]``, with so many digits of the mean and of both ends."""
        if self.mean is None or self.low is None or self.high is None:
            return "nan [nan, nan]"
        return f"{self.mean:.{digits}f} [{self.low:.{ends}f}, {self.high:.{ends}f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseFigures:
    """One cause: threads that have it, how they are ranked, how often naming it first is right."""

    cause: str
    n: int
    named: int
    top1: float | None
    top3: float | None
    precision: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceBin:
    """Answers of like confidence: its mean, and the share that was right."""

    confidence: float
    right: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFigures:
    """Measurable threads of one language, or with and without a log."""

    name: str
    top1: Interval
    top3: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPoint:
    """What the reader reaches that has learned from `reports` shipped reports; held out."""

    name: str
    reports: int
    top1: Interval
    top3: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisFigures:
    """How good the diagnosis is; `figures` go by the names of `kb.evaluation.measure`.

    `negatives` are logs without a timeout. Of the measurable threads `answered` are those the
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
    figures: dict[str, Interval]
    bins: tuple[ConfidenceBin, ...]
    causes: tuple[CauseFigures, ...]
    parts: tuple[PartFigures, ...]
    learning: tuple[LearningPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteFigures:
    """One way to search in one setting (``same language``, ``cross-language``, …)."""

    setting: str
    route: str
    n: int
    mrr: Interval
    recall_at_1: Interval
    recall_at_5: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalFigures:
    """How good the search is on the judged queries; `parity` is across languages over within."""

    date: str
    queries: int
    cases: int
    kappa: float | None
    routes: tuple[RouteFigures, ...]
    parity: Interval
    parity_of_words: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigures:
    """What the file holds; a part nobody has measured is None."""

    format: int = PUBLISHED_FORMAT
    diagnosis: DiagnosisFigures | None = None
    retrieval: RetrievalFigures | None = None


@dataclass(frozen=True, slots=True)
class _Format:
    format: int = field(default=0)


def load_published(folder: Path) -> PublishedFigures:
    """The figures kept in `folder`; without a file there are none.

    Raises:
        DataError: the file is damaged or of another format; the message has the repairing command.
    """
    path = folder / PUBLISHED
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return PublishedFigures()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", todo=REPAIR) from error
    try:
        number = msgspec.json.decode(content, type=_Format).format
        if number != PUBLISHED_FORMAT:
            raise DataError(
                f"{path} is of format {number}, this program reads {PUBLISHED_FORMAT}", todo=REPAIR
            )
        return msgspec.json.decode(content, type=PublishedFigures)
    except msgspec.DecodeError as error:
        raise DataError(f"{path} cannot be read: {error}", todo=REPAIR) from error


def save_published(folder: Path, figures: DiagnosisFigures | RetrievalFigures) -> Path:
    """Write one part; the other stays, and so does the date of a part that has not moved.

    Raises:
        DataError: the file that is there cannot be read.
        InputError: the folder cannot be written.
    """
    content = _rounded(load_published(folder))
    part = "diagnosis" if isinstance(figures, DiagnosisFigures) else "retrieval"
    new, old = _rounded(figures), content[part]
    if old is None or old | {"date": new["date"]} != new:
        content[part] = new
    path = folder / PUBLISHED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", todo="name a folder to write to") from error
    return path


def _rounded(value: object) -> dict[str, Any]:
    """A dataclass as JSON has it, numbers in few digits."""

    def cut(item: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(item, float):
            return round(item, DIGITS)
        if isinstance(item, dict):
            return {name: cut(one) for name, one in item.items()}
        return [cut(one) for one in item] if isinstance(item, list) else item

    rounded: dict[str, Any] = cut(msgspec.json.decode(msgspec.json.encode(value)))
    return rounded


# --- first sight ---------------------------------------------------------------------------------


class FirstSightAnswer(msgspec.Struct, frozen=True):
    """One answer: the right cause, the one named first and how surely, the place of the right one.

    `log` tells whether one was pasted.
    """

    cause: str
    named: str
    confidence: float
    rank: int
    lang: str
    log: bool


class BatchRecord(msgspec.Struct, frozen=True):
    """A line of data/golden/first_sight.jsonl: one batch, asked once.

    `version` is the digest of data/, `digest` that of the addresses, so that a batch is not asked
    again under another name. `figures` are means and 95 % intervals by name, as
    `FIRST_SIGHT_TITLES` tells them. Early batches have no `answers`.
    """

    batch: str
    date: str
    version: str
    digest: str
    posts: int
    zh: int
    recent: int
    figures: dict[str, tuple[float, float, float]]
    answers: tuple[FirstSightAnswer, ...] = ()


def load_records(folder: Path) -> tuple[BatchRecord, ...]:
    """All batches on record in `folder` (``data/golden``), oldest first.

    Raises:
        DataError: a line breaks the schema.
    """
    path = folder / RECORD
    lines = path.read_bytes().splitlines() if path.is_file() else []
    try:
        return tuple(msgspec.json.decode(line, type=BatchRecord) for line in lines)
    except msgspec.DecodeError as error:
        raise DataError(f"{path}: {error}", todo="correct the line") from error
