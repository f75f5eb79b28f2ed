"""Parity: the same report in Chinese and in English gets the same first cause.

The reports are the symptoms of the shipped cases, which stand there in both languages, each a twin
of the other; the case itself does not vote, and the weights never saw its project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kb.diagnose.fit import Sample
from kb.evaluation.diagnosis import CrossFit
from kb.evaluation.intervals import Interval, mean_interval
from kb.evaluation.samples import Kinships, Observation, addresses, observe
from kb.service import Service
from kb.types import Entry, Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """One case's symptoms in both languages and the cause each is given first.

    `from_thread` tells the cases that stand on one of the labelled threads; `only_zh` and
    `only_en` name the signals one language gave and the other did not.
    """

    case: str
    cause: str
    zh: str
    en: str
    from_thread: bool
    only_zh: tuple[str, ...] = ()
    only_en: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether both languages name the same cause first."""
        return self.zh == self.en


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityQuality:
    """Share of twins that agree, and how often each language is right."""

    agreement: Interval
    agreement_threads: Interval
    zh_right: Interval
    en_right: Interval


def twins(
    service: Service, kin: Kinships, fitted: CrossFit, threads: frozenset[str], *, lines: bool
) -> list[Twin]:
    """The first causes of every case's symptoms, in the order of the cases.

    Args:
        service: the knowledge base.
        kin: which projects belong together.
        fitted: weights that never saw a project.
        threads: addresses of the labelled threads.
        lines: add the case's log lines, which both languages share, as a person pastes them.
    """
    found = []
    for case in service.knowledge.cases:
        seen = {
            section.language: observe(_report(case, section.language, lines), service, (case.id,))
            for section in case.sections
            if section.role == "symptoms"
        }
        zh, en = (_names(seen[language]) for language in ("zh", "en"))
        found.append(
            Twin(
                case=case.id,
                cause=case.causes[0].id,
                zh=_first(seen["zh"], case, kin, fitted),
                en=_first(seen["en"], case, kin, fitted),
                from_thread=bool(addresses(case) & threads),
                only_zh=tuple(sorted(zh - en)),
                only_en=tuple(sorted(en - zh)),
            )
        )
    return found


def one_sided(pairs: Sequence[Twin]) -> list[tuple[str, int, int]]:
    """Signals with the number of twins they stand in in Chinese alone and in English alone.

    Most lopsided first: a cue at the top reads one of the languages badly.
    """
    zh = Counter(name for pair in pairs for name in pair.only_zh)
    en = Counter(name for pair in pairs for name in pair.only_en)
    rows = [(name, zh[name], en[name]) for name in zh | en]
    return sorted(rows, key=lambda row: (-row[1] - row[2], row[0]))


def _names(seen: Observation) -> set[str]:
    return {signal.name for signal in seen.signals if signal.kind != "case"}


def _report(case: Entry, language: Language, lines: bool) -> str:
    words = [
        section.text
        for section in case.sections
        if section.role == "symptoms" and section.language == language
    ]
    return "\n".join([*words, *(case.signature if lines else ())])


def _first(seen: Observation, case: Entry, kin: Kinships, fitted: CrossFit) -> str:
    sample = Sample(
        signals=seen.signals,
        votes=seen.votes,
        cause=case.causes[0].id,
        also=(),
        group=kin.group(case.project),
    )
    return fitted.rank(sample).causes[0].cause


def parity_quality(pairs: Sequence[Twin]) -> ParityQuality:
    """Figures of `pairs`."""
    return ParityQuality(
        agreement=mean_interval([float(pair.agrees) for pair in pairs]),
        agreement_threads=mean_interval([float(pair.agrees) for pair in pairs if pair.from_thread]),
        zh_right=mean_interval([float(pair.zh == pair.cause) for pair in pairs]),
        en_right=mean_interval([float(pair.en == pair.cause) for pair in pairs]),
    )
