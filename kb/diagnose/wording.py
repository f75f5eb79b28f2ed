"""Words of the answer that depend on numbers: bands, the summary, scopes of fixes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kb.types import AppliesTo, Bilingual, DiagnosisStatus, Incident, Language, Unread

# Lower bound of each band of probability, strongest first; the labels are `band.<name>`.
BANDS = (("certain", 0.85), ("likely", 0.5), ("possible", 0.2), ("unlikely", 0.0))


class Words:
    """Labels in one language."""

    def __init__(self, labels: Mapping[str, Bilingual], language: Language) -> None:
        self._labels = labels
        self.language = language

    def say(self, name: str, /, **values: object) -> str:
        """The label `name` with `values` filled in; the name itself where no label exists."""
        label = self._labels.get(name)
        return label.get(self.language).format(**values) if label else name

    def has(self, name: str) -> bool:
        """Whether there is such a label."""
        return name in self._labels

    def join(self, parts: list[str]) -> str:
        """A list in words."""
        return ("、" if self.language == "zh" else ", ").join(parts)


def band(probability: float) -> str:
    """Name of the band a probability falls in."""
    return next(name for name, floor in BANDS if probability >= floor)


def summary(
    words: Words, status: DiagnosisStatus, incident: Incident, title: str, probability: float
) -> str:
    """Two sentences: what happened, and what it most likely was."""
    if status == "no_timeout":
        return words.say("summary.no_timeout")
    second = (
        words.say("summary.cause", title=title, band=words.say(f"band.{band(probability)}"))
        if status == "diagnosed"
        else words.say("summary.unknown", title=title)
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
        return words.say("word.file_line", file=item.file, line=item.line)
    return words.say("word.line", line=item.line)


def why_unread(words: Words, item: Unread) -> str:
    """Why a file could not be read, in words; its name stands elsewhere."""
    label = f"error.{item.code}"
    return words.say(label, name="", **item.values).strip() if words.has(label) else item.reason


def _happened(words: Words, incident: Incident) -> str:
    first = incident.first_error
    if first is not None and first.rank is not None:
        return words.say("summary.first_error_rank", rank=first.rank, place=place(words, first))
    if first is not None:
        return words.say("summary.first_error", place=place(words, first))
    if incident.culprit_ranks:
        ranks = words.join([str(culprit.rank) for culprit in incident.culprit_ranks[:4]])
        return words.say("summary.culprit", ranks=ranks)
    if incident.op and incident.timeout_ms:
        seconds = round(incident.timeout_ms / 1000)
        return words.say("summary.op_timeout", op=incident.op, seconds=seconds)
    if incident.has_timeout:
        return words.say("summary.timeout")
    return words.say("summary.hang")


def scope(words: Words, applies: AppliesTo) -> str:
    """Where a fix applies, in words; empty when everywhere."""
    parts = [*applies.frameworks, *applies.versions, *applies.backends]
    parts += [words.say(f"stage.{stage}") for stage in applies.stages]
    return words.join(parts)
