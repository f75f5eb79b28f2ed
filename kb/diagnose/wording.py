"""Words of the answer that depend on numbers: bands, the summary, scopes of fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kb.knowledge.labels import Words
from kb.types.answer import AnswerIncident
from kb.types.incident import Incident, Unread
from kb.types.knowledge import AppliesTo
from kb.types.vocabulary import DiagnosisStatus

# Lower bound of each band of probability, strongest first; the labels are `band.<name>`.
BANDS = (("certain", 0.85), ("likely", 0.5), ("possible", 0.2), ("unlikely", 0.0))

SECONDS_PER_MINUTE = 60
SECONDS_PER_HOUR = 3600
LEAST = 0.0001  # probabilities are rounded to this; a cause that is named is never impossible


def band(probability: float) -> str:
    """Name of the band a probability falls in."""
    return next(name for name, floor in BANDS if probability >= floor)


def is_likely(probability: float) -> bool:
    """Whether a cause is at least likely: what follows from it alone may then be said as such."""
    return probability >= dict(BANDS)["likely"]


def percent(probability: float) -> str:
    """A share as people read it: whole per cent, never 0 % or 100 % for what is only nearly so."""
    if 0 < probability < 0.01:
        return "<1%"
    if 0.99 < probability < 1:
        return ">99%"
    return f"{round(probability * 100)}%"


def model_percent(probability: float) -> str:
    """A probability of the model, which gives neither 0 nor 1, though rounding may."""
    return percent(min(max(probability, LEAST), 1 - LEAST))


def duration(milliseconds: int, words: Words) -> str:
    """A span in its largest fitting unit: ``10 min``, ``1 h 30 min``, ``45 s``, ``250 ms``."""
    seconds, rest = divmod(milliseconds, 1000)
    if seconds == 0:
        return words("word.milliseconds", count=rest)
    hours, seconds = divmod(seconds, SECONDS_PER_HOUR)
    minutes, seconds = divmod(seconds, SECONDS_PER_MINUTE)
    units = (("word.hours", hours), ("word.minutes", minutes), ("word.seconds", seconds))
    return " ".join(words(name, count=count) for name, count in units if count)


def rank_span(ranks: Iterable[int]) -> str:
    """Ranks in short: ``0-2, 5``."""
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRanks:
    """The ranks that waited for another one, and the operation that most of them waited in."""

    ranks: tuple[int, ...]
    op: str
    seq: int | None
    numel_in: int | None
    numel_out: int | None


def waiting_ranks(incident: Incident | AnswerIncident) -> WaitingRanks:
    """Who waited, without the ranks the evidence points to, and in what.

    The operation is the incident's, unless those ranks all stand in others: the report that says
    most may be of the one rank that ran something else.
    """
    error = incident.first_error
    suspects = {culprit.rank for culprit in incident.culprit_ranks} | {
        error.rank if error else None
    }
    reporting = incident.ranks_reporting
    ranks = tuple(rank for rank in reporting if rank not in suspects) or reporting
    main = (incident.op, incident.seq, incident.numel_in, incident.numel_out)
    works = Counter(
        (state.last_op, state.last_seq, state.numel_in, state.numel_out)
        for state in incident.ranks
        if state.rank in ranks and state.last_op
    )
    usual = min(works, key=lambda work: (-works[work], str(work)), default=main)
    op, seq, numel_in, numel_out = main if main in works or not main[0] else usual
    return WaitingRanks(ranks=ranks, op=op, seq=seq, numel_in=numel_in, numel_out=numel_out)


def fill_ranks(text: str, incident: Incident) -> str:
    """A text of data/missing_evidence.yaml with the incident's ranks for its placeholders.

    Where nothing tells how many ranks there are, there may be more silent ones.
    """
    more = "" if incident.world_size else ", …"
    values = {
        "{silent}": rank_span(incident.ranks_silent) + more,
        "{ranks}": rank_span(incident.ranks_reporting),
        "{world}": str(incident.world_size or ""),
    }
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def summary(
    words: Words, status: DiagnosisStatus, incident: Incident, title: str, probability: float
) -> str:
    """Two sentences: what happened, and what it most likely was."""
    if status == "no_timeout":
        return words("summary.no_timeout")
    second = (
        words("summary.cause", title=title, band=words(f"band.{band(probability)}"))
        if status == "diagnosed"
        else words("summary.unknown", title=title)
    )
    return f"{_happened(words, incident)}{'' if words.language == 'zh' else ' '}{second}"


class Placed(Protocol):
    """Something that stands on a line, of a file where there are several."""

    @property
    def line(self) -> int:
        """Counted from 1."""

    @property
    def file(self) -> str:
        """Empty for a single source."""


def place(words: Words, item: Placed) -> str:
    """Where something stands, in words: ``rank_3.log line 23``, ``line 23``."""
    if item.file:
        return words("word.file_line", file=item.file, line=item.line)
    return words("word.line", line=item.line)


def why_unread(words: Words, item: Unread) -> str:
    """Why a file could not be read, in words; its name stands elsewhere."""
    label = f"error.{item.code}"
    return words(label, name="", **item.values).strip() if words.has(label) else item.reason


def _happened(words: Words, incident: Incident) -> str:
    first = incident.first_error
    if first is not None and first.rank is not None:
        return words("summary.first_error_rank", rank=first.rank, place=place(words, first))
    if first is not None:
        return words("summary.first_error", place=place(words, first))
    if incident.culprit_ranks:
        ranks = words.listing([str(culprit.rank) for culprit in incident.culprit_ranks[:4]])
        return words("summary.culprit", ranks=ranks)
    if incident.op and incident.timeout_ms:
        seconds = round(incident.timeout_ms / 1000)
        return words("summary.op_timeout", op=incident.op, seconds=seconds)
    if incident.has_timeout:
        return words("summary.timeout")
    return words("summary.hang")


def scope(words: Words, applies: AppliesTo) -> str:
    """Where a fix applies, in words; empty when everywhere."""
    names = [*applies.frameworks, *applies.versions, *applies.backends]
    names += [words(f"stage.{stage}") for stage in applies.stages]
    return words.listing(names)
