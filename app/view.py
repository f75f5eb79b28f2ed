"""The view model: a Diagnosis arranged for a reader, in words of one language.

Every string here is safe to print (`app.quoting.plain`); commands may have several lines. Each
face only lays it out. Orders are those of the Diagnosis.
"""

from __future__ import annotations

from dataclasses import dataclass

from kb.types import DiagnosisStatus, Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A label and its value: ``What hung: ALLREDUCE, seq 14217``."""

    label: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteView:
    """A literal piece of the input and where it stands (``rank 3, line 812, cuda-oom``)."""

    text: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """One reason for or `against` a cause; `url` is empty unless the source is a page."""

    where: str
    quote: str
    reason: str
    against: bool
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandView:
    """A command to copy, why, and what its outcomes mean."""

    command: str
    why: str
    outcomes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FixView:
    """A fix with its standing in words; `notes` say where it applies and what to beware of."""

    title: str
    status: str
    steps: tuple[str, ...]
    commands: tuple[str, ...]
    notes: tuple[Row, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseView:
    """A cause with probability (``62 %``) and band in words; `faint` if it is hardly possible."""

    id: str
    title: str
    percent: str
    band: str
    faint: bool
    evidence: tuple[EvidenceView, ...]
    fixes: tuple[FixView, ...]
    checks: tuple[CommandView, ...]
    restart: str
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningView:
    """A setting, what is wrong with it in two words, and why."""

    setting: str
    verdict: str
    explanation: str
    notes: tuple[str, ...]
    where: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """A similar case; `score` as shown (``0.83``)."""

    id: str
    title: str
    project: str
    score: str
    cause: str
    status: str
    url: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A small table; the first row holds the column names."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything a reader gets to see of one Diagnosis."""

    status: DiagnosisStatus
    language: Language
    verdict: str
    summary: str
    culprits: tuple[str, ...]
    first_error: QuoteView | None
    facts: tuple[Row, ...]
    causes: tuple[CauseView, ...]
    unknown: str
    best_check: CommandView | None
    restart: str
    warnings: tuple[WarningView, ...]
    cases: tuple[CaseView, ...]
    next: tuple[CommandView, ...]
    timeline: tuple[str, ...]
    ranks: TableView | None
    footer: str
