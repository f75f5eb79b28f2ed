"""Weights learned from a team's confirmed outcomes, behind a gate (`timeout-kb learn`).

Corrections W of signals and of the team's own words are added to the shipped weights. With x the
signals of an incident and b its shipped logits, they minimise

    Σ outcomes  w · CE(label, softmax(b + xW/T))  +  Σ reports  KL(shipped ‖ softmax(b + xW/T))
                                                  +  ½ Σ pull · W²

so that shipped reports keep their answers. They are kept only where incidents held out of the fit
are read better, the golden reports no worse, and the outcomes do not contradict their own logs.
Everything is ordered and rounded: the same outcomes give the same weights.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.evidence_model import WEIGHTS, Ranking, Weights, load_weights, rank_causes
from kb.diagnose.learned import (
    MAX_NATS,
    TERM,
    LearnedWeights,
    TermReader,
    base_digest,
    term_lines,
)
from kb.diagnose.signals import Signal
from kb.errors import NotFoundError, StoreError
from kb.evaluation.golden import REPORTS as GOLDEN_REPORTS
from kb.evaluation.golden import load_golden_reports
from kb.saved import load_diagnosis
from kb.service import Service
from kb.text.tokenizer import Tokenizer
from kb.train.reports import FOLDER as REPORTS
from kb.train.reports import Report, load_reports
from kb.types.entries import Filters
from kb.types.incident import LogReading
from kb.types.vocabulary import UNKNOWN

MIN_OUTCOMES = 5  # fewer say nothing that can be held out
ANSWER_WEIGHT = 0.5  # of an answer judged right or wrong, beside a resolved incident
REPLAYED = 150  # shipped reports whose answers are held
SIGNAL_SUPPORT, TERM_SUPPORT = 2, 3  # outcomes something must stand in before it is learned of
SIGNAL_PULL, TERM_PULL = 20.0, 3.0  # precision around 0: shipped signals are known from thousands
MAX_TERMS = 30
RARE = 2  # shipped texts that may have a word of the team's own
MIN_TERM = 3  # characters; two of Han
FOLDS = 10
STEPS = 400  # of the optimiser, far more than the few features need
LEAST = 0.02  # nats; smaller corrections are left out
MIN_GAIN = 0.01  # nats a held-out incident, or nothing was learned
GOLDEN_SLACK = 0.003  # of the mean share of the right cause: rounding, and no more
# Of shipped reports, groups of 7 with one true cause have at most .93 nats, half of them below .45,
# and where it is above .65 at least .33 plausible; with a wrong cause .9 to 1.5, and at most .29.
GROUP = 4  # outcomes of one cause that are looked at together
UNLIKE = 0.65  # nats by which answers of one group differ
PLAUSIBLE = 2.0  # nats behind the leading cause
FEW_PLAUSIBLE = 0.3
EXPLAINED = 0.65  # share of the incidents with learned words that come out right
OWN_WORD = re.compile(r".*[^\W\d_]")
Floats = NDArray[np.float64]
Why = Literal["few", "contradicted", "golden", "team", "unexplained", "no_gain", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A confirmed outcome: what was read, and the cause it was.

    `origin` is the id of the entry or the saved diagnosis.
    """

    origin: str
    reading: LogReading
    cause: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSample:
    """What was seen of an incident, its right causes, and the words that may be learned of."""

    origin: str
    signals: tuple[Signal, ...]
    votes: dict[str, float]
    causes: tuple[str, ...]
    weight: float = 1.0
    words: frozenset[str] = frozenset()
    reading: LogReading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCount:
    """How many samples have the right cause first and among three, and its mean share."""

    count: int
    first: int
    three: int
    share: float

    def worse_than(self, other: OutcomeCount, *, slack: float = math.inf) -> bool:
        """Whether fewer are right, or the right cause's share is lower by more than `slack`."""
        fewer = self.first < other.first or self.three < other.three
        return fewer or self.share < other.share - slack


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningResult:
    """What came of learning; `learned` is None where nothing is kept, and `why` says why.

    Attributes:
        outcomes: how many there were; `left_out` of them could not be read any more.
        team: the team's incidents, held out, before and after.
        golden: the golden reports, before and after.
        contradicted: ids of the outcomes that contradict their logs.
        changed: cause → how many of the team's incidents have it first, before and after.
    """

    learned: LearnedWeights | None
    why: Why = ""
    outcomes: int = 0
    left_out: int = 0
    team: tuple[OutcomeCount, OutcomeCount] | None = None
    golden: tuple[OutcomeCount, OutcomeCount] | None = None
    contradicted: tuple[str, ...] = ()
    changed: dict[str, tuple[int, int]] = field(default_factory=dict)


# --- what there is to learn from ---------------------------------------------------------------


def collect_outcomes(service: Service) -> tuple[list[Outcome], int]:
    """Resolved incidents and judged answers by id, and how many could not be read any more."""
    known = service.knowledge.cause_by_id.keys() - {UNKNOWN}
    outcomes: dict[str, Outcome] = {}
    left_out = 0
    for entry in service.store.iter_entries(Filters(kinds=("incident",))):
        cause = entry.causes[0].id if entry.causes else ""
        text = entry.input_text
        if entry.resolved and cause in known and text.strip():
            reading = service.read_text(text)
            outcomes[entry.id] = Outcome(origin=entry.id, reading=reading, cause=cause, weight=1.0)
    for row in reversed(service.store.records.list_feedback()):  # of the same the newest counts
        cause = row.answered if row.verdict == "right" else row.cause
        if cause not in known or not row.diagnosis_id:
            continue
        try:
            reading = load_diagnosis(service, row.diagnosis_id).reading
        except (NotFoundError, StoreError):
            left_out += 1
            continue
        outcomes[row.diagnosis_id] = Outcome(
            origin=row.diagnosis_id, reading=reading, cause=cause, weight=ANSWER_WEIGHT
        )
    return _distinct([outcomes[origin] for origin in sorted(outcomes)]), left_out


def _distinct(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of outcomes of one log those of the greatest weight, ties by id."""
    best: dict[tuple[str, str], Outcome] = {}
    for outcome in sorted(outcomes, key=lambda item: (-item.weight, item.origin)):
        best.setdefault((outcome.reading.words, outcome.reading.excerpt), outcome)
    return sorted(best.values(), key=lambda item: item.origin)


def _sample(
    service: Service, reading: LogReading, causes: tuple[str, ...], origin: str, weight: float = 1.0
) -> LearningSample:
    """A reading as the shipped weights see it."""
    verdict = service.judge(reading, exclude=(origin,))
    return LearningSample(
        origin=origin,
        signals=tuple(one for one in verdict.signals if not one.name.startswith(TERM)),
        votes=verdict.votes,
        causes=causes,
        weight=weight,
        reading=reading,
    )


def _own_words(
    samples: Sequence[LearningSample],
    tokenizer: Tokenizer,
    reports: Sequence[Report],
    weights: Weights,
) -> list[LearningSample]:
    """The samples with their words that hardly any shipped report has.

    A word of incidents whose logs show many causes names the site, not what went wrong: left out.
    """
    tokens = [
        {
            token
            for text, _, _ in term_lines(sample.reading)
            for token in tokenizer.tokens(text)
            if OWN_WORD.match(token) and len(token) >= (MIN_TERM if token.isascii() else 2)
        }
        if sample.reading
        else set[str]()
        for sample in samples
    ]
    counts = Counter(token for own in tokens for token in own)
    often = sorted(token for token, count in counts.items() if count >= TERM_SUPPORT)
    shipped = [tokenizer.normalise(report.paste).lower() for report in reports]
    rare = [word for word in often if sum(word in text for text in shipped) <= RARE]
    logits = _all_logits(samples, weights)
    own = {
        word
        for word in rare
        if _unlikeness(logits[[number for number, had in enumerate(tokens) if word in had]])
        < UNLIKE
    }
    return [
        replace(sample, words=frozenset(words & own))
        for sample, words in zip(samples, tokens, strict=True)
    ]


def _contradicted(samples: Sequence[LearningSample], weights: Weights) -> list[str]:
    """Ids of outcomes of one cause whose logs show many others and hardly that one.

    A team's own failure may be read wrongly each time, but then alike.
    """
    causes = list(weights.prior)
    against: list[str] = []
    for number, cause in enumerate(causes):
        group = [sample for sample in samples if sample.causes[0] == cause]
        if len(group) < GROUP:
            continue
        logits = _all_logits(group, weights)
        plausible = logits[:, number] >= logits.max(axis=1) - PLAUSIBLE
        if _unlikeness(logits) >= UNLIKE and float(plausible.mean()) <= FEW_PLAUSIBLE:
            against += [one.origin for one, fits in zip(group, plausible, strict=True) if not fits]
    return sorted(against)


def _unlikeness(logits: Floats) -> float:
    """How unlike answers are, in nats: the entropy of their mean, less their mean entropy.

    The Jensen-Shannon divergence. Source: Lin 1991, https://doi.org/10.1109/18.61115
    """
    shares = _softmax(logits)
    return float(_entropy(shares.mean(axis=0)) - _entropy(shares).mean())


def _entropy(shares: Floats) -> Floats:
    return np.asarray(-(shares * np.log(shares + 1e-12)).sum(axis=-1))


def _share(ranking: Ranking, causes: Sequence[str]) -> float:
    return sum(one.probability for one in ranking.causes if one.cause in causes)


# --- the fit -------------------------------------------------------------------------------------


def fit_corrections(
    samples: Sequence[LearningSample],
    held: Sequence[LearningSample],
    weights: Weights,
    *,
    signals: bool,
) -> dict[str, dict[str, float]]:
    """Corrections in nats by feature and cause; without `signals` only the team's words get any.

    Args:
        samples: the outcomes to learn from.
        held: shipped reports whose answers are held as they are.
        weights: the shipped ones.
        signals: whether shipped signals are corrected as well.
    """
    causes = list(weights.prior)
    names = _features(samples, signals=signals)
    if not names:
        return {}
    pulls = np.array([TERM_PULL if name.startswith(TERM) else SIGNAL_PULL for name in names])
    pulls *= _repeats(_present(samples, names))
    scale = 1 / (np.sqrt(pulls) * weights.temperature)  # ridge 1 and temperature 1 from here on
    present = _present([*samples, *held], names) * scale
    base = _all_logits([*samples, *held], weights)
    target = np.concatenate(
        [
            np.array([[float(cause == one.causes[0]) for cause in causes] for one in samples]),
            _softmax(base[len(samples) :]).reshape(len(held), len(causes)),
        ]
    )
    counted = np.array([one.weight for one in samples] + [1.0] * len(held))
    fitted = _minimise(present, base, target, counted) / np.sqrt(pulls)[:, None]
    return _worth_keeping(fitted, names, causes)


def _features(samples: Sequence[LearningSample], *, signals: bool) -> list[str]:
    """Names of what is learned of: terms that tell one cause, then signals."""
    support: dict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        for word in sample.words:
            support[f"{TERM}{word}"][sample.causes[0]] += 1
    often = [name for name, causes in support.items() if causes.total() >= TERM_SUPPORT]
    often.sort(key=lambda name: (-(max(support[name].values()) ** 2) / support[name].total(), name))
    names = sorted(often[:MAX_TERMS])
    if signals:
        seen = Counter(
            name
            for sample in samples
            for name in {one.name for one in sample.signals if _is_learnable(one)}
        )
        names += sorted(name for name, count in seen.items() if count >= SIGNAL_SUPPORT)
    return names


def _is_learnable(signal: Signal) -> bool:
    """The reader's signals are parts of a model; what only rules out is weighed in another way."""
    return signal.kind != "reader" and not signal.rules_out


def _present(samples: Sequence[LearningSample], names: Sequence[str]) -> Floats:
    column = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(samples), len(names)))
    for row, sample in enumerate(samples):
        seen = [f"{TERM}{word}" for word in sample.words] + [one.name for one in sample.signals]
        for name in seen:
            if name in column:
                matrix[row, column[name]] = 1.0
    return matrix


def _repeats(present: Floats) -> Floats:
    """How many features stand in just the same samples, each itself counted: words of one name.

    Held around 0 as many times as firmly, they move together what one of them would alone.
    """
    _, place, counts = np.unique(present, axis=1, return_inverse=True, return_counts=True)
    return np.asarray(counts[place.ravel()], dtype=np.float64)


def _all_logits(samples: Sequence[LearningSample], weights: Weights) -> Floats:
    """The samples' logits, causes in the order of the prior."""
    rows = []
    for sample in samples:
        ranking = rank_causes(sample.signals, sample.votes, weights)
        logit = {one.cause: one.logit for one in ranking.causes}
        rows.append([logit[cause] for cause in weights.prior])
    return np.array(rows)


def _softmax(logits: Floats) -> Floats:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True)) if len(logits) else logits
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _minimise(present: Floats, base: Floats, target: Floats, counted: Floats) -> Floats:
    """Nesterov's accelerated gradient on a strongly convex loss: cross entropy and ½‖V‖².

    Cross entropy to the shipped answer and KL to it differ by a constant. The curvature is at most
    that of the ridge and half that of the features.
    Source: Nesterov 1983; the step and momentum as in Bubeck 2015, theorem 3.18.
    """
    curvature = 1 + 0.5 * float(np.linalg.norm(present.T * counted @ present, 2))
    momentum = (math.sqrt(curvature) - 1) / (math.sqrt(curvature) + 1)
    now = np.zeros((present.shape[1], base.shape[1]))
    ahead = now
    for _ in range(STEPS):
        error = counted[:, None] * (_softmax(base + present @ ahead) - target)
        after = ahead - (present.T @ error + ahead) / curvature
        ahead = after + momentum * (after - now)
        now = after
    return now


def _worth_keeping(
    fitted: Floats, names: Sequence[str], causes: Sequence[str]
) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for row, name in zip(fitted, names, strict=True):
        nats = {
            cause: round(max(-MAX_NATS, min(MAX_NATS, float(value))), 2)
            for cause, value in zip(causes, row, strict=True)
            if abs(value) >= LEAST
        }
        if nats:
            table[name] = nats
    return table


# --- the gate ------------------------------------------------------------------------------------


def rank_with(sample: LearningSample, weights: Weights) -> Ranking:
    """The ranking of a sample by weights that may know words of the team's own."""
    known = sorted(f"{TERM}{word}" for word in sample.words)
    terms = [
        Signal(name=name, kind="text", quote="", line=0, weights={}, reason_id="", source=name)
        for name in known
        if name in weights.learned
    ]
    return rank_causes((*sample.signals, *terms), sample.votes, weights)


def standing(judged: Iterable[tuple[LearningSample, Weights]]) -> OutcomeCount:
    """How samples are answered, each by the weights beside it."""
    count = first = three = 0
    shares = 0.0
    for sample, weights in judged:
        ranking = rank_with(sample, weights)
        order = [one.cause for one in ranking.causes[:3]]
        count += 1
        first += order[0] in sample.causes
        three += bool(set(order) & set(sample.causes))
        shares += _share(ranking, sample.causes)
    share = round(shares / count, 4) if count else 0.0
    return OutcomeCount(count=count, first=first, three=three, share=share)


def _by(
    samples: Sequence[LearningSample], weights: Weights
) -> Iterator[tuple[LearningSample, Weights]]:
    return ((sample, weights) for sample in samples)


def learn(service: Service) -> LearningResult:
    """Learn from the outcomes in the store of `service`, and judge what was learned.

    Raises:
        DataError: a shipped file cannot be read.
    """
    data = service.settings.data
    outcomes, left_out = collect_outcomes(service)
    result = LearningResult(learned=None, outcomes=len(outcomes), left_out=left_out)
    if len(outcomes) < MIN_OUTCOMES:
        return replace(result, why="few")
    weights, reports = load_weights(data / WEIGHTS), load_reports(data / REPORTS)
    tokenizer = Tokenizer(data / "lexicon")
    team = _own_words(
        [_sample(service, one.reading, (one.cause,), one.origin, one.weight) for one in outcomes],
        tokenizer,
        reports,
        weights,
    )
    contradicted = _contradicted(team, weights)
    if contradicted:
        return replace(result, why="contradicted", contradicted=tuple(contradicted))
    words = frozenset().union(*(sample.words for sample in team))
    terms = TermReader(sorted(words), tokenizer, service.knowledge.labels)
    golden = [
        _with_terms(_sample(service, reading, report.causes, report.id), terms)
        for report in load_golden_reports(data / GOLDEN_REPORTS)
        if UNKNOWN not in report.causes
        for reading in [service.read_text(report.paste)]
    ]
    held = [
        _with_terms(
            _sample(service, service.read_text(report.paste), (report.cause,), report.id), terms
        )
        for report in _replayed(reports)
    ]
    return _judged(result, team, golden, held, weights, service)


def _with_terms(sample: LearningSample, terms: TermReader) -> LearningSample:
    signals = terms.read(sample.reading) if sample.reading else []
    return replace(sample, words=frozenset(one.reason_id for one in signals))


def _replayed(reports: Sequence[Report]) -> list[Report]:
    """Reports retold from real ones, evenly from all of them."""
    retold = [report for report in reports if report.source == "retold"]
    step = max(1, len(retold) // REPLAYED)
    return retold[::step][:REPLAYED]


def _judged(
    result: LearningResult,
    team: Sequence[LearningSample],
    golden: Sequence[LearningSample],
    held: Sequence[LearningSample],
    weights: Weights,
    service: Service,
) -> LearningResult:
    """The first corrections that pass the gate: of words and signals, else of words alone."""
    base, used = base_digest(service.settings.data), service.learned
    in_use = used.added_to(weights) if used else weights
    refused = result
    for signals in (True, False) if len({one.causes[0] for one in team}) > 1 else (False,):
        made = fit_corrections(team, held, weights, signals=signals)
        learned = LearnedWeights(base=base, corrections=made, outcomes=len(team))
        new = learned.added_to(weights)
        folds = _held_out(team, held, weights, signals=signals)
        before = standing(_by(team, weights))
        after = standing((one, folds[one.origin]) for one in team)
        golden_before, golden_after = standing(_by(golden, weights)), standing(_by(golden, new))
        now, used_now = standing(_by(team, new)), standing(_by(team, in_use))
        tried = replace(
            result,
            team=(before, after),
            golden=(golden_before, golden_after),
            changed=_changed(team, weights, new),
        )
        if golden_after.worse_than(golden_before, slack=GOLDEN_SLACK):
            refused = replace(tried, why="golden")
        elif after.worse_than(before) or now.worse_than(used_now):
            refused = replace(tried, why="team")
        elif _explained(team, folds, new) < EXPLAINED:
            refused = replace(tried, why="unexplained")
        elif not made or after.share < before.share + MIN_GAIN:
            refused = replace(tried, why="no_gain")
        else:
            return replace(tried, learned=learned)
    return refused


def _explained(team: Sequence[LearningSample], folds: Mapping[str, Weights], new: Weights) -> float:
    """Of the incidents with words that are learned of, the share that is right, held out.

    A word that is a sign of its cause makes nearly all of them right; a word of the site that
    stands in incidents of any cause tips those alone whose logs leave everything open.
    """
    with_words = [one for one in team if any(f"{TERM}{word}" in new.learned for word in one.words)]
    tally = standing((one, folds[one.origin]) for one in with_words)
    return tally.first / tally.count if tally.count else 1.0


def _held_out(
    team: Sequence[LearningSample],
    held: Sequence[LearningSample],
    weights: Weights,
    *,
    signals: bool,
) -> dict[str, Weights]:
    """For each sample, by id, weights that were learned without its fold."""
    folds = min(FOLDS, len(team))
    by_origin: dict[str, Weights] = {}
    for fold in range(folds):
        others = [one for number, one in enumerate(team) if number % folds != fold]
        made = fit_corrections(others, held, weights, signals=signals)
        learned = LearnedWeights(base="", corrections=made).added_to(weights)
        by_origin |= {
            one.origin: learned for number, one in enumerate(team) if number % folds == fold
        }
    return by_origin


def _changed(
    team: Sequence[LearningSample], before: Weights, after: Weights
) -> dict[str, tuple[int, int]]:
    """How many of the team's incidents have a cause first, before and after, where that changed."""
    counts = [
        Counter(rank_with(one, weights).causes[0].cause for one in team)
        for weights in (before, after)
    ]
    causes = sorted(counts[0].keys() | counts[1].keys())
    pairs = {cause: (counts[0][cause], counts[1][cause]) for cause in causes}
    return {cause: pair for cause, pair in pairs.items() if pair[0] != pair[1]}
