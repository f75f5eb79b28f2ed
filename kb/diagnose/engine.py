"""The engine: from a reading to a ranking of causes. Knows neither languages nor faces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kb.diagnose.cues import POLARITY, CueHit, CueReader
from kb.diagnose.kinship import Kin
from kb.diagnose.model import Ranking, Weights, rank_causes
from kb.diagnose.signals import Signal, cue_signals, event_signals, fact_signals
from kb.diagnose.votes import base_rates, case_votes
from kb.knowledge import Knowledge
from kb.types import DiagnosisStatus, Entry, Filters, Hit, LogReading, SearchResult

UNKNOWN_BELOW = 0.25  # a leading cause less likely than this is no answer
SIMILAR_SHOWN = 5
SIMILAR_SOUGHT = 12  # more than are shown: the votes need them
SEARCHED_KINDS = ("case",)  # reviewed entries only: their cause is a claim somebody checked
# Paths, addresses and identifiers: a file called `stuck-gpu.md` is no report of a hang.
# In ASCII only: Chinese has no spaces, a whole sentence would go with the path in it.
_NAMES = re.compile(r"[!-~]*[/_][!-~]*|[!-,.-~]+-[!-,.-~]+-[!-~]+")
QUERY_CHARS = 6000
UNSURE_CHARS = 600  # of lines that may be words, searched with when none surely are
STACK_EVENT = "thread_dump"  # people take stacks of processes that hang
SHORT_LINES = 12  # a paste this short is a person's, however little it looks like prose
# Events of cues that together make a description one of a timeout or of failed communication.
REPORT_EVENTS = (frozenset({"hang"}), frozenset({"distributed", "failure"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the engine concludes, before it is put into words."""

    status: DiagnosisStatus
    ranking: Ranking
    signals: tuple[Signal, ...]
    hits: tuple[Hit, ...]
    votes: Mapping[str, float]


class Engine:
    """Weighs a reading; made once from the knowledge and the fitted weights."""

    def __init__(self, knowledge: Knowledge, weights: Weights) -> None:
        self._knowledge = knowledge
        self._weights = weights
        gate = frozenset().union(*REPORT_EVENTS)
        polarity = [cue for cue in knowledge.cues if cue.event in POLARITY]
        cues = [cue for cue in knowledge.cues if cue.event not in POLARITY]
        self._gate = CueReader([cue for cue in cues if cue.event in gate], polarity)
        self._cues = CueReader([cue for cue in cues if cue.event not in gate], polarity)
        self._kin = Kin(knowledge.cases)
        self._rates = base_rates(knowledge.cases)

    def signals(self, reading: LogReading) -> tuple[Signal, ...]:
        """All signals of a reading: log lines, facts, and the person's words."""
        hits = self._cues.read(reading.words)
        return (
            *event_signals(reading.events, self._knowledge.pattern_by_id),
            *fact_signals(reading.incident.facts, self._knowledge.fact_by_id),
            *cue_signals(hits, reading.word_lines, reading.word_file),
        )

    def nearer(
        self, reading: LogReading, found: SearchResult, entries: Mapping[str, Entry]
    ) -> SearchResult:
        """The search result with cases of a named project moved up."""
        hits = self._kin.nearer(found.hits, entries, _said(reading))
        return replace(found, hits=hits)

    def kin(
        self, reading: LogReading, found: SearchResult, entries: Mapping[str, Entry]
    ) -> list[Signal]:
        """The signal that a case of the same project met the same error, if one did."""
        return self._kin.signals(found.hits, entries, _said(reading))

    def votes(self, found: SearchResult, entries: Mapping[str, Entry]) -> dict[str, float]:
        """Share of votes per cause among the similar entries."""
        return case_votes(found.hits, entries, self._rates)

    def judge(
        self,
        reading: LogReading,
        found: SearchResult,
        entries: Mapping[str, Entry],
        *,
        told: Sequence[Signal] = (),
    ) -> Verdict:
        """Rank the causes of `reading`, given the similar entries `found`.

        `told` are further observations: what a person answered to a check.
        """
        signals = (*self.signals(reading), *self.kin(reading, found, entries), *told)
        votes = self.votes(found, entries)
        ranking = rank_causes(signals, votes, self._weights)
        return Verdict(
            status=self._status(reading, ranking),
            ranking=ranking,
            signals=signals,
            hits=found.hits,
            votes=votes,
        )

    def _status(self, reading: LogReading, ranking: Ranking) -> DiagnosisStatus:
        if not self._about_timeout(reading):
            return "no_timeout"
        return "unknown" if ranking.causes[0].probability < UNKNOWN_BELOW else "diagnosed"

    def _about_timeout(self, reading: LogReading) -> bool:
        """Whether the input speaks of a timeout, a hang or failed communication at all."""
        if reading.incident.has_timeout:
            return True
        if any(event.event == STACK_EVENT for event in reading.events):
            return True
        said = {hit.cue.event for hit in self.report_cues(reading)}
        return any(events <= said for events in REPORT_EVENTS)

    def report_cues(self, reading: LogReading) -> list[CueHit]:
        """Cues by which a person's words are a report of a hang or of failed communication."""
        short = reading.incident.lines <= SHORT_LINES
        spoken = _NAMES.sub(" ", reading.words if short else reading.description)
        return [hit for hit in self._gate.read(spoken) if not hit.denied]


def _said(reading: LogReading) -> str:
    return f"{reading.words}\n{reading.excerpt}"


def query_text(reading: LogReading) -> str:
    """What to search with: the person's words first, then the lines that matter."""
    described = reading.description or reading.words[:UNSURE_CHARS]
    return f"{described}\n{reading.excerpt}".strip()[:QUERY_CHARS]


def search_filters(exclude: Sequence[str] = ()) -> Filters:
    """Filters for similar entries; `exclude` leaves entries out (an incident's own case)."""
    return Filters(kinds=SEARCHED_KINDS, exclude_ids=tuple(exclude))
