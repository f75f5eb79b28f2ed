"""The verdict on a reading: which causes, how likely, and whether it is unknown or no timeout.

Knows neither languages nor faces; `kb.diagnose.rendering` puts a verdict into words.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from kb.diagnose.cues import CueHit, CueReader
from kb.diagnose.evidence_model import Ranking, Weights, opinions, rank_causes
from kb.diagnose.evidence_provided import missing_names, node_names, remark_names, seen_names
from kb.diagnose.fix_likeness import FixLikeness
from kb.diagnose.launchers import LauncherReader
from kb.diagnose.learned import TermReader
from kb.diagnose.reader import Reader, reader_signals
from kb.diagnose.same_error import NO_MARKS, ErrorMarks, error_marks
from kb.diagnose.same_project import ProjectNames
from kb.diagnose.signals import (
    COUNTER,
    Signal,
    conflict_signals,
    cue_signals,
    event_signals,
    fact_signals,
    harm_signals,
    statement_signals,
)
from kb.diagnose.statement_model import StatementModel
from kb.diagnose.statements import StatementReader, TopicStatement, distinct
from kb.diagnose.votes import base_rates, case_votes
from kb.knowledge.framework_names import framework_names
from kb.knowledge.load import Knowledge
from kb.settings_check import ContradictionFinder, SettingConflict, find_harms
from kb.text.polarity import PolarityReader
from kb.types.entries import Entry, Filters, Hit
from kb.types.incident import LogReading
from kb.types.vocabulary import DiagnosisStatus, EventRole, Polarity, ReaderName, Standing

UNKNOWN_BELOW = 0.25  # a leading cause less likely than this is no answer
SIMILAR_SHOWN = 5
SIMILAR_SOUGHT = 12  # more than are shown: the votes need them
SEARCHED_KINDS = ("case",)  # reviewed entries: their cause is a claim somebody checked
# What a team added: these count where somebody confirmed the cause.
TEAM_KINDS = ("incident", "writeup", "thread")
MARKED_SCORE = 0.6  # the errors of hits below this are not compared: they are not the same incident
# Paths, addresses and identifiers: a file called `stuck-gpu.md` is no report of a hang.
# In ASCII only: Chinese has no spaces, a whole sentence would go with the path in it.
_NAMES = re.compile(r"(?<![!-~])[!-~]*[/_][!-~]*|(?<![!-,.-~])[!-,.-~]++-[!-,.-~]++-[!-~]+")
QUERY_CHARS = 6000
NO_TROUBLE = COUNTER | {Polarity.BEFORE, Polarity.LOOKED_AT}
RECENT_TEXTS = 4  # a text is searched with and weighed: it is read once
STACK_EVENT = "thread_dump"  # people take stacks of processes that hang
COMPARED_STACKS = frozenset(("stack_odd", "stack_all_wait"))  # facts of several ranks' stacks
# Events of cues that together make a description one of a timeout or of failed communication.
DISTRIBUTED = "distributed"
MIN_REPORT_BYTES = 48  # fewer are a remark: eight words, sixteen characters in Chinese
REPORT_EVENTS = (frozenset({"hang"}), frozenset({DISTRIBUTED, "failure"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOpinion:
    """What came of asking a language model (`kb.second_reader`).

    Attributes:
        model: as its server names it.
        why, why_values: why there is no opinion: a label `second.<why>` and what fills it; empty
            where there is one.
        trust: how much its opinion counts, from 0 to 1.
        top: its likeliest causes with their shares.
        ask: the question that would decide, in its words.
        tokens: read and written; 0 where its server does not tell.
    """

    model: str
    why: str
    trust: float
    why_values: Mapping[str, str] = field(default_factory=dict)
    top: tuple[tuple[str, float], ...] = ()
    ask: str = ""
    tokens: int = 0
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the engine concludes from a reading, in no language yet.

    An answer is made of nothing else (`kb.diagnose.rendering.render`), so answers in several
    languages cannot differ in substance.

    Attributes:
        reading: what was read, with what a person added since.
        signals: all observations, answers to checks included.
        hits: similar cases, best first.
        entries: the entries behind `hits`, by id.
        votes: share of the similar cases per cause.
        marks: what tells the failure of the nearest entries from others, by entry id.
        conflicts: what the settings contradict.
        torch: torch's version where a person named it.
        took_ms: wall time of reading and judging.
        is_searched: whether similar cases could be searched for.
        second: what came of asking a language model; None where none was asked.
        answers: what a language model asked, and what the person answered.
        opinions: what parts of the evidence alone would say: shares of all causes, by part.
        seen: names of all that was seen, as data/input_evidence.yaml has them: events, facts,
            settings, what a person says of it, what started the job.
        uses: what the job uses, as data/framework_names.yaml names it.
        fix_likeness: points of likeness to what was reported, by the id of the fix.
    """

    reading: LogReading
    status: DiagnosisStatus
    ranking: Ranking
    signals: tuple[Signal, ...]
    hits: tuple[Hit, ...]
    entries: Mapping[str, Entry]
    votes: dict[str, float]
    conflicts: tuple[SettingConflict, ...] = ()
    torch: str = ""
    took_ms: float = 0.0
    is_searched: bool = True
    second: SecondOpinion | None = None
    answers: tuple[tuple[str, str], ...] = ()
    opinions: Mapping[ReaderName, Mapping[str, float]] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()
    marks: Mapping[str, ErrorMarks] = field(default_factory=dict)
    uses: frozenset[str] = frozenset()
    fix_likeness: Mapping[str, float] = field(default_factory=dict)


class Engine:
    """Weighs a reading; made once from the knowledge and the fitted weights."""

    def __init__(
        self,
        knowledge: Knowledge,
        weights: Weights,
        reader: Reader | None = None,
        fixes: FixLikeness | None = None,
        terms: TermReader | None = None,
        statements: StatementModel | None = None,
    ) -> None:
        """Judge by `knowledge` and `weights`; without `reader` nothing learned is read.

        `fixes` tells how alike fixes are to a report, `terms` finds the words that `weights`
        learned of the team's own outcomes, `statements` decides what sentences state.
        """
        self._terms = terms
        self._fixes = fixes
        self._names = framework_names(knowledge.framework_names)
        self._knowledge = knowledge
        self._weights = weights
        self._reader = reader
        gate = frozenset().union(*REPORT_EVENTS)
        self._gate = CueReader([cue for cue in knowledge.cues if cue.event in gate])
        self._cues = CueReader([cue for cue in knowledge.cues if cue.event not in gate])
        vague = {kind.id for kind in knowledge.events if EventRole.VAGUE in kind.roles}
        failures = {kind.id for kind in knowledge.events if EventRole.MACHINE_FAILURE in kind.roles}
        specific = {pattern.event for pattern in knowledge.patterns if pattern.kind == "root"}
        self._sufficient, self._specific = {STACK_EVENT} | failures, specific - vague
        self._polarity = PolarityReader(knowledge.polarity)
        self._statements = StatementReader(knowledge.topics, statements)
        self._read_words = lru_cache(maxsize=RECENT_TEXTS)(self._remarks_in)
        self._launchers = LauncherReader(knowledge.launchers)
        self._projects = ProjectNames(knowledge.cases)
        self._rates = base_rates(knowledge.cases)
        self.contradictions = ContradictionFinder(knowledge)

    def with_learned(self, weights: Weights, terms: TermReader | None) -> Engine:
        """This engine with other weights and words of the team; who judges now is not disturbed."""
        other = copy.copy(self)
        other._weights, other._terms = weights, terms
        return other

    def signals(
        self, reading: LogReading, conflicts: Sequence[SettingConflict] = (), torch: str = ""
    ) -> tuple[Signal, ...]:
        """All signals of a reading: observations, and what the learned reader makes of it."""
        return (
            *self.observations(reading, conflicts, torch),
            *self._read_description(reading),
            *(self._terms.read(reading) if self._terms else ()),
        )

    def observations(
        self, reading: LogReading, conflicts: Sequence[SettingConflict] = (), torch: str = ""
    ) -> tuple[Signal, ...]:
        """What is seen in a reading: log lines, facts, settings, and what a person states."""
        statements, found = self._read_words(reading.words)
        hits = [hit for hit in found if not self._only_names(hit, reading)]
        return (
            *event_signals(reading.events, self._knowledge.pattern_by_id),
            *fact_signals(reading.incident.facts, self._knowledge.fact_by_id),
            *conflict_signals(conflicts),
            *harm_signals(find_harms(reading, self._knowledge.advice, torch=torch or None)),
            *cue_signals(hits, reading.word_places),
            *statement_signals(
                statements, hits, reading.word_places, added_chars=reading.added_chars
            ),
        )

    def _only_names(self, hit: CueHit, reading: LogReading) -> bool:
        """Whether a cue of what was said later is the name of a framework and nothing more."""
        matched = reading.words[hit.start : hit.end]
        return hit.start < reading.added_chars and self._names.is_name(matched)

    def _read_description(self, reading: LogReading) -> list[Signal]:
        if self._reader is None:
            return []
        # What a person adds in a conversation answers something: it is no description.
        words = self.description(reading.words)[reading.remark_chars :]
        if len(words.encode()) < MIN_REPORT_BYTES:
            return []
        return reader_signals(self._reader.read(words), reading.word_places)

    def description(self, words: str) -> str:
        """The words, with blanks in place of sentences that only rule something out."""
        for left, right in self._ruling_out(words):
            blank = re.sub(r"[^\n]", " ", words[left:right])
            words = f"{words[:left]}{blank}{words[right:]}"
        return words

    def causes_of(self, sentence: str) -> dict[str, float]:
        """What the learned reader takes one sentence for: nats of each cause, around their mean."""
        shares = self._reader.read(sentence) if self._reader is not None else ()
        causes = shares[0].weights if shares else {}
        return {cause: sum(share.weights[cause] for share in shares) for cause in causes}

    def _remarks_in(self, words: str) -> tuple[tuple[TopicStatement, ...], tuple[CueHit, ...]]:
        remarks = self._polarity.read(words)
        statements = self._statements.read(remarks)
        return statements, self._cues.read(remarks, statements)

    def _seen(self, reading: LogReading, signals: Sequence[Signal]) -> frozenset[str]:
        """The names of all that was seen."""
        statements, hits = self._read_words(reading.words)
        seen = seen_names(reading) | {signal.name for signal in signals}
        seen |= frozenset(missing_names(reading))
        seen |= remark_names(hits, statements)
        seen |= node_names(self.contradictions.job_of(reading))
        return seen | self._launchers.read(reading, seen)

    def statements(self, words: str) -> tuple[TopicStatement, ...]:
        """What a person's words say of the topics, and how."""
        return distinct(self._statements.read(self._polarity.read(words)))

    def topics_in(self, words: str) -> frozenset[str]:
        """The ids of the topics a person's words name."""
        return self._statements.topics_in(self._polarity.read(words))

    def query_text(self, reading: LogReading) -> str:
        """What to search with: the person's words first, then the lines that matter.

        A sentence that only rules something out is no likeness to cases with that, but better
        than nothing to search with.
        """
        query = f"{self._troubles(reading.words)}\n{reading.excerpt}".strip()
        return (query or reading.words.strip())[:QUERY_CHARS]

    def _troubles(self, words: str) -> str:
        """The words without sentences that speak of topics and of no trouble with any."""
        for left, right in reversed(self._ruling_out(words)):
            words = f"{words[:left]}{words[right:]}"
        return words.strip()

    def _ruling_out(self, words: str) -> list[tuple[int, int]]:
        """Where sentences stand that speak of topics and of no trouble with any."""
        told = self._read_words(words)[0]
        sentences = {item.left: item.right for item in told}
        trouble = {
            item.left
            for item in told
            if item.polarity not in NO_TROUBLE or item.standing is Standing.GENERIC
        }
        return [(left, sentences[left]) for left in sorted(sentences.keys() - trouble)]

    def judge(
        self,
        reading: LogReading,
        hits: Sequence[Hit],
        entries: Mapping[str, Entry],
        *,
        observed: Sequence[Signal] = (),
        torch: str = "",
        marks_of: Callable[[Entry], ErrorMarks] = lambda _: NO_MARKS,
    ) -> Verdict:
        """Rank the causes of `reading`, given the similar entries a search found.

        Args:
            reading: what was read.
            hits: of the search for `query_text`; cases of a project the text names move up.
            entries: the entries behind `hits`, by id.
            observed: observations beside the reading: what a person saw in a check.
            torch: torch's version where a person named it.
            marks_of: what tells the failure of an entry from others.
        """
        text = f"{reading.words}\n{reading.excerpt}"
        hits = self._projects.nearer(hits, entries, text)
        own = error_marks(reading, self._knowledge.event_by_id)

        def shared(entry: Entry) -> ErrorMarks:
            return own.shared(marks_of(entry)) if own else NO_MARKS

        same_project = self._projects.signals(hits, entries, text, shared, described=not own)
        conflicts = self.contradictions.of_reading(reading)
        signals = (*self.signals(reading, conflicts, torch), *same_project, *observed)
        votes = case_votes(hits, entries, self._rates)
        ranking = rank_causes(signals, votes, self._weights)
        return Verdict(
            reading=reading,
            status=self._status(reading, ranking),
            ranking=ranking,
            signals=signals,
            hits=tuple(hits),
            entries=entries,
            votes=votes,
            conflicts=conflicts,
            torch=torch,
            opinions=opinions(ranking, votes, self._weights),
            seen=self._seen(reading, signals),
            marks={
                hit.entry_id: marks
                for hit in hits
                if hit.score >= MARKED_SCORE and (marks := marks_of(entries[hit.entry_id]))
            },
            uses=self._names.used(text, reading.incident.frameworks),
            fix_likeness=self._likeness_of_fixes(reading, hits, entries),
        )

    def fix_points(self, words: str) -> dict[str, float]:
        """Points of likeness of what a person says to each fix, by its id; none without words."""
        return self._fixes.points(words, words) if self._fixes is not None else {}

    def _likeness_of_fixes(
        self, reading: LogReading, hits: Sequence[Hit], entries: Mapping[str, Entry]
    ) -> dict[str, float]:
        if self._fixes is None:
            return {}
        others = [fix for hit in hits[:SIMILAR_SHOWN] for fix in entries[hit.entry_id].fixes]
        words = reading.words[:QUERY_CHARS]
        return self._fixes.points(words, self.query_text(reading), others)

    def _status(self, reading: LogReading, ranking: Ranking) -> DiagnosisStatus:
        if not self._about_timeout(reading):
            return "unknown" if self._about_distributed(reading) else "no_timeout"
        return "unknown" if ranking.causes[0].probability < UNKNOWN_BELOW else "diagnosed"

    def _about_timeout(self, reading: LogReading) -> bool:
        """Whether it tells of a timeout, a hang, failed machines or what ended a rank."""
        if reading.incident.has_timeout:
            return True
        if any(event.event in self._sufficient for event in reading.events):
            return True
        if any(fact.name in COMPARED_STACKS for fact in reading.incident.facts):
            return True
        of_a_job = any(event.rank is not None for event in reading.events)
        if of_a_job and any(event.event in self._specific for event in reading.events):
            return True
        reported = {hit.cue.event for hit in self.report_cues(reading)}
        return any(events <= reported for events in REPORT_EVENTS)

    def _about_distributed(self, reading: LogReading) -> bool:
        """Whether a person speaks of distributed work, whatever they say is wrong with it."""
        if len(reading.words.encode()) < MIN_REPORT_BYTES:
            return False
        hits = self._gate.read(self._polarity.read(_NAMES.sub(" ", reading.words)))
        return any(hit.cue.event == DISTRIBUTED for hit in hits)

    def report_cues(self, reading: LogReading) -> list[CueHit]:
        """Cues by which a person's words are a report of a hang or of failed communication."""
        words = self._polarity.read(_NAMES.sub(" ", reading.words))
        return [hit for hit in self._gate.read(words) if not hit.denied]


def search_filters(exclude: Sequence[str] = ()) -> Filters:
    """Filters for similar cases; `exclude` leaves entries out (an incident's own case)."""
    return Filters(kinds=SEARCHED_KINDS, exclude_ids=tuple(exclude))


def team_filters(filters: Filters) -> Filters:
    """The same conditions on what the team added and confirmed, instead of on cases."""
    return replace(filters, kinds=TEAM_KINDS, statuses=("confirmed",))


def has_vote(entry: Entry) -> bool:
    """Whether an entry counts as evidence: a case, or what the team resolved and confirmed."""
    if entry.kind in SEARCHED_KINDS:
        return True
    return entry.resolved and bool(entry.causes) and entry.causes[0].status == "confirmed"
