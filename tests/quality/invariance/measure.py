"""Which answers change when a report is changed in what tells nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kb.diagnose.verdict import Verdict
from kb.service import Service
from kb.types.incident import LogReading
from tests.quality.invariance.additions import Disturbance, Pasted, disturbances, number
from tests.quality.invariance.incidents import KnownIncident, Sizes

RISE = 0.05  # what tells nothing moves no cause up by more
FILE_NAMES = ("first", "second")  # without a number: that would name a rank


@dataclass(frozen=True, slots=True)
class DisturbedReport:
    """An incident, what was done to it, and what both reports are answered."""

    incident: KnownIncident
    disturbance: Disturbance
    before: Verdict
    after: Verdict

    @property
    def cause_changed(self) -> bool:
        """The first cause, or that there is none, is another one."""
        return first(self.before) != first(self.after)

    @property
    def ranks_changed(self) -> bool:
        """Other ranks are named as culprits."""
        return culprits(self.before) != culprits(self.after)

    @property
    def rise(self) -> float:
        """By how much the probability of the cause that gained most rose."""
        before, after = probabilities(self.before), probabilities(self.after)
        return max(after[cause] - before[cause] for cause in after)

    def evidence_change(self) -> tuple[list[str], list[str]]:
        """Names of the signals that are new, and of those that are gone."""
        before = {signal.name for signal in self.before.signals}
        after = {signal.name for signal in self.after.signals}
        return sorted(after - before), sorted(before - after)


def first(verdict: Verdict) -> str:
    """The first cause, or the status of an answer that names none."""
    return verdict.ranking.causes[0].cause if verdict.status == "diagnosed" else verdict.status


def culprits(verdict: Verdict) -> tuple[int, ...]:
    """The ranks named as culprits."""
    return tuple(sorted(culprit.rank for culprit in verdict.reading.incident.culprit_ranks))


def probabilities(verdict: Verdict) -> Mapping[str, float]:
    """Probability of each cause."""
    return {cause.cause: cause.probability for cause in verdict.ranking.causes}


class InvarianceMeasure:
    """Answers reports as they are and disturbed."""

    def __init__(self, service: Service, incidents: Sequence[KnownIncident]) -> None:
        self.service = service
        self._incidents = incidents
        self._disturbances = disturbances()
        self._plain: dict[str, Verdict] = {}

    @property
    def kinds(self) -> list[str]:
        """Kinds of disturbances, in the order of the table."""
        return list(dict.fromkeys(one.kind for one in self._disturbances))

    def reports(self, kind: str, sample: int | None = None) -> Iterator[DisturbedReport]:
        """Disturbed reports of a kind, `sample` of them, always the same, or all."""
        pairs = [
            (incident, one)
            for incident in self._incidents
            for one in self._disturbances
            if one.kind == kind
        ]
        pairs.sort(key=lambda pair: number(pair[1].id, pair[0].id))
        done = 0
        for incident, one in pairs:
            if sample is not None and done >= sample:
                return
            report = self.disturb(incident, one)
            if report is not None:
                done += 1
                yield report

    def disturb(self, incident: KnownIncident, one: Disturbance) -> DisturbedReport | None:
        """One report disturbed; None where that does not fit or changes nothing."""
        before = self._plain_verdict(incident)
        if before.ranking.causes[0].cause in one.against:
            return None  # it denies what is answered: that tells something
        pasted = one.apply(incident, Sizes(before.reading.incident, incident.text))
        if pasted is None or pasted == incident.text:
            return None
        after = self._judge(pasted, incident)
        return DisturbedReport(incident=incident, disturbance=one, before=before, after=after)

    def _plain_verdict(self, incident: KnownIncident) -> Verdict:
        if incident.id not in self._plain:
            self._plain[incident.id] = self._judge(incident.text, incident)
        return self._plain[incident.id]

    def _judge(self, pasted: Pasted, incident: KnownIncident) -> Verdict:
        return self.service.judge(self._read(pasted), exclude=incident.exclude)

    def _read(self, pasted: Pasted) -> LogReading:
        if isinstance(pasted, str):
            return self.service.read_text(pasted)
        if isinstance(pasted, bytes):
            return self.service.read_stream([pasted])
        with tempfile.TemporaryDirectory(prefix="invariance-") as folder:
            paths = [Path(folder) / f"{FILE_NAMES[place]}.txt" for place in range(len(pasted))]
            for path, text in zip(paths, pasted, strict=True):
                path.write_text(text, encoding="utf-8")
            return self.service.read_paths(paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFigures:
    """How many reports of a kind were disturbed, and of how many the answer changed.

    `rises` counts those in which a cause gained more than `RISE`.
    """

    kind: str
    reports: int
    causes: int
    ranks: int
    rises: int

    @property
    def share(self) -> float:
        """Of changed first causes."""
        return self.causes / self.reports if self.reports else 0.0


def figures(kind: str, reports: Iterable[DisturbedReport]) -> KindFigures:
    """Figures of reports of one kind."""
    known = list(reports)
    return KindFigures(
        kind=kind,
        reports=len(known),
        causes=sum(report.cause_changed for report in known),
        ranks=sum(report.ranks_changed for report in known),
        rises=sum(report.rise > RISE for report in known),
    )


def overall(parts: Sequence[KindFigures]) -> KindFigures:
    """The figures of all kinds together, each report counted once."""
    return KindFigures(
        kind="all",
        reports=sum(part.reports for part in parts),
        causes=sum(part.causes for part in parts),
        ranks=sum(part.ranks for part in parts),
        rises=sum(part.rises for part in parts),
    )
