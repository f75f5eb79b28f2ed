"""The whole evaluation of the diagnosis, as one value: held out, known, in two languages, healthy.

Twins are the symptoms of a shipped case in both languages. The case itself does not vote, and the
weights never saw its project; both languages should get the same first cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kb.diagnose.evidence_model import Ranking
from kb.diagnose.verdict import UNKNOWN_BELOW, Verdict
from kb.errors import InputError
from kb.evaluation.figures import Prediction, macro, quality
from kb.evaluation.intervals import share
from kb.evaluation.published import Interval, LearningPoint
from kb.evaluation.stages import Stages, pastes, time_stages
from kb.service import Service
from kb.train.reports import FOLDER as REPORTS
from kb.train.reports import load_reports
from kb.train.samples import (
    HeldOutReader,
    Relations,
    addresses,
    case_sample,
    case_samples,
    causes_of,
    described_reports,
    judge,
    relate,
    thread_address,
    thread_sample,
    thread_samples,
)
from kb.train.threads import LabelledThread
from kb.train.weights import CrossFit, Sample
from kb.types.entries import Entry
from kb.types.vocabulary import EvidenceKind, Language

QUOTED = 100  # characters of what set off an alarm
STEPS = 8  # of which a share of the reports is taken
SHARES = (0.0, 0.125, 0.25, 0.5, 1.0)
Rank = Callable[[Sample], Ranking]  # by weights and a reader that never saw the project


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownThread:
    """A thread with a case of its own: where the case stands, and the ranking of causes.

    `place` counts from 1; 0 where the case was not found. `first` is the case found first.
    """

    prediction: Prediction
    own: tuple[str, ...]
    place: int
    first: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthyLog:
    """A log in which nothing timed out or hung; `alarm` says that it was called a timeout.

    `triggers` are the patterns and cues that made it one.
    """

    name: str
    alarm: bool
    cause: str = ""
    triggers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """A part of the evidence: kinds of signals, whether similar cases vote, and what it runs."""

    name: str
    kinds: tuple[EvidenceKind, ...]
    votes: bool
    stages: tuple[str, ...]


_LOGS = ("read", "patterns and facts", "rank")
_WORDS = ("read", "patterns and facts", "description", "rank")
_ALL = ("read", "patterns and facts", "description", "search", "rank")
VARIANTS = (
    Variant("priors only", (), False, ("rank",)),
    Variant("similar cases only", ("case",), True, ("read", "search", "rank")),
    Variant("log patterns only", ("log",), False, _LOGS),
    Variant("+ ranks and facts", ("log", "rank"), False, _LOGS),
    Variant("+ description", ("log", "rank", "text"), False, _WORDS),
    Variant("+ votes of similar cases", ("log", "rank", "text"), True, _ALL),
    Variant("+ same project", ("log", "rank", "text", "case"), True, _ALL),
    Variant("learned reader only", ("reader",), False, _WORDS),
    Variant("all (+ learned reader)", ("log", "rank", "text", "case", "reader"), True, _ALL),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFigures:
    """What a variant reaches and what it costs a paste, in ms.

    Figures are of the measurable threads, those ending in `_all` of all.
    """

    variant: str
    top1: Interval
    top3: Interval
    macro_top3: float
    top1_all: Interval
    top3_all: Interval
    p50_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything the report says.

    `figures` go by name: those of `kb.evaluation.figures.quality` over measurable threads, with
    ``_all`` over all of them, ``known_…`` over known incidents, ``parity…`` and ``…_right`` over
    twins (``_with_lines``: with the case's log lines), ``false_alarms``. `predictions` are those of
    all threads in their order, `unknown_below` is the threshold of the product.
    """

    predictions: tuple[Prediction, ...]
    figures: dict[str, Interval]
    known: tuple[KnownThread, ...]
    twins: tuple[Twin, ...]
    variants: tuple[VariantFigures, ...]
    stages: Stages
    healthy: tuple[HealthyLog, ...]
    cases: int
    learning: tuple[LearningPoint, ...] = ()
    unknown_below: float = UNKNOWN_BELOW

    @property
    def measurable(self) -> list[Prediction]:
        """The predictions of measurable threads."""
        return measurable(self.predictions)


def measurable(predictions: Sequence[Prediction]) -> list[Prediction]:
    """The predictions of measurable threads."""
    return [item for item in predictions if item.thread.measurable]


def held_out(service: Service, threads: Sequence[LabelledThread]) -> dict[str, Interval]:
    """Figures of the measurable threads, each judged by weights and cases that never saw it."""
    samples, more, _ = held_out_samples(threads, service, relate(threads, service))
    fitted = CrossFit(samples, causes_of(service), more)
    return quality(measurable(predict(threads, samples, fitted)))


def held_out_samples(
    threads: Sequence[LabelledThread], service: Service, relations: Relations
) -> tuple[list[Sample], list[Sample], HeldOutReader]:
    """Threads and cases as samples, and the reader of them that has not seen their projects."""
    samples, more = thread_samples(threads, service, relations), case_samples(service, relations)
    reports = described_reports(service, relations, load_reports(service.settings.data / REPORTS))
    reader = HeldOutReader([*samples, *more, *reports], service)
    return [reader.read(one) for one in samples], [reader.read(one) for one in more], reader


def held_out_verdicts(
    service: Service, threads: Sequence[LabelledThread], relations: Relations
) -> Callable[[LabelledThread], Verdict]:
    """What judges a thread by weights that never saw its project, and without its own cases."""
    samples, more, _ = held_out_samples(threads, service, relations)
    fitted = CrossFit(samples, causes_of(service), more)
    by_thread = {thread.id: sample for thread, sample in zip(threads, samples, strict=True)}

    def verdict_of(thread: LabelledThread) -> Verdict:
        verdict = judge(thread.text, service, relations.excluded[thread.id])
        return replace(verdict, ranking=fitted.rank(by_thread[thread.id]))

    return verdict_of


def measure(
    service: Service, threads: Sequence[LabelledThread], healthy: Path | None = None
) -> Measured:
    """Evaluate the diagnosis of `service`.

    Args:
        service: built from the shipped data alone, so that two runs see the same cases.
        threads: labelled threads.
        healthy: folder of logs without a timeout; None leaves them out.

    Raises:
        InputError: the folder holds no logs.
    """
    relations = relate(threads, service)
    samples, more, reader = held_out_samples(threads, service, relations)
    causes = causes_of(service)
    fitted = CrossFit(samples, causes, more)
    predictions = tuple(predict(threads, samples, fitted))

    def rank(sample: Sample) -> Ranking:
        return fitted.rank(reader.read(sample))

    known = tuple(known_threads(threads, relations, service, rank))
    stages = time_stages(service, pastes(threads))
    twins = case_twins(threads, relations, service, rank, lines=False)
    with_lines = case_twins(threads, relations, service, rank, lines=True)
    logs = tuple(judge_healthy(service, healthy)) if healthy else ()
    figures = {
        **quality(measurable(predictions)),
        **_suffixed(quality(predictions), "_all"),
        **known_figures(known),
        **twin_figures(twins),
        **_suffixed(twin_figures(with_lines), "_with_lines"),
        "false_alarms": share(logs, lambda log: log.alarm),
    }
    return Measured(
        predictions=predictions,
        figures=figures,
        known=known,
        twins=tuple(twins),
        variants=tuple(worth_of_evidence(threads, samples, causes, more, stages)),
        stages=stages,
        healthy=logs,
        cases=len(service.knowledge.cases),
        learning=tuple(learning_curve(threads, service, relations)),
    )


def _suffixed(figures: dict[str, Interval], suffix: str) -> dict[str, Interval]:
    return {f"{name}{suffix}": figure for name, figure in figures.items()}


def predict(
    threads: Sequence[LabelledThread], samples: Sequence[Sample], fitted: CrossFit
) -> list[Prediction]:
    """Held-out predictions of `threads`, whose samples stand in the same order."""
    return [
        Prediction.of(thread, fitted.rank(sample))
        for thread, sample in zip(threads, samples, strict=True)
    ]


# --- known incidents: the thread's own case is there, as it is for a user ------------------------


def known_threads(
    threads: Sequence[LabelledThread], relations: Relations, service: Service, rank: Rank
) -> list[KnownThread]:
    """The threads some case stands on, judged with all cases present.

    The weights are still those that never saw the project: only the case is known.
    """
    known = []
    for thread in threads:
        own = relations.own[thread.id]
        if not own:
            continue
        verdict = judge(thread.text, service)
        ids = [hit.entry_id for hit in verdict.hits]
        ranking = rank(thread_sample(thread, verdict, relations))
        known.append(
            KnownThread(
                prediction=Prediction.of(thread, ranking),
                own=own,
                place=next((place for place, one in enumerate(ids, start=1) if one in own), 0),
                first=ids[0] if ids else "",
            )
        )
    return known


def known_figures(known: Sequence[KnownThread]) -> dict[str, Interval]:
    """Figures of known incidents by name."""
    return {
        "known_recall_at_1": share(known, lambda item: item.place == 1),
        "known_recall_at_5": share(known, lambda item: 1 <= item.place <= 5),
        "known_top1": share(known, lambda item: item.prediction.rank == 1),
        "known_top3": share(known, lambda item: item.prediction.rank <= 3),
    }


# --- twins: the same report in Chinese and in English --------------------------------------------


def case_twins(
    threads: Sequence[LabelledThread],
    relations: Relations,
    service: Service,
    rank: Rank,
    *,
    lines: bool,
    cases: Sequence[Entry] | None = None,
) -> list[Twin]:
    """The first causes of the symptoms of `cases`, by default of all, in their order.

    With `lines` the case's log lines stand below, which both languages share, as people paste them.
    """
    posted = {thread_address(thread.url) for thread in threads}
    twins = []
    for case in service.knowledge.cases if cases is None else cases:
        verdicts: dict[Language, Verdict] = {
            language: judge(_report(case, language, lines), service, (case.id,))
            for language in ("zh", "en")
        }
        first, signals = {}, {}
        for language, verdict in verdicts.items():
            first[language] = rank(case_sample(case, verdict, relations)).causes[0].cause
            signals[language] = {
                one.name for one in verdict.signals if one.kind not in ("case", "reader")
            }
        twins.append(
            Twin(
                case=case.id,
                cause=case.causes[0].id,
                zh=first["zh"],
                en=first["en"],
                from_thread=bool(addresses(case) & posted),
                only_zh=tuple(sorted(signals["zh"] - signals["en"])),
                only_en=tuple(sorted(signals["en"] - signals["zh"])),
            )
        )
    return twins


def _report(case: Entry, language: Language, lines: bool) -> str:
    words = [
        section.text
        for section in case.sections
        if section.role == "symptoms" and section.language == language
    ]
    return "\n".join([*words, *(case.signature if lines else ())])


def twin_figures(twins: Sequence[Twin]) -> dict[str, Interval]:
    """How often both languages agree, also over twins from threads, and how often each is right."""
    return {
        "parity": share(twins, lambda twin: twin.zh == twin.en),
        "parity_threads": share(
            [twin for twin in twins if twin.from_thread], lambda twin: twin.zh == twin.en
        ),
        "zh_right": share(twins, lambda twin: twin.zh == twin.cause),
        "en_right": share(twins, lambda twin: twin.en == twin.cause),
    }


def one_sided(twins: Sequence[Twin]) -> list[tuple[str, int, int]]:
    """Signals with the number of twins they stand in in Chinese alone and in English alone.

    Most lopsided first: a cue at the top reads one of the languages badly.
    """
    zh = Counter(name for twin in twins for name in twin.only_zh)
    en = Counter(name for twin in twins for name in twin.only_en)
    rows = [(name, zh[name], en[name]) for name in zh | en]
    return sorted(rows, key=lambda row: (-row[1] - row[2], row[0]))


# --- what each kind of evidence is worth ---------------------------------------------------------


def restrict(sample: Sample, variant: Variant) -> Sample:
    """The sample with only the evidence of `variant`."""
    return replace(
        sample,
        signals=tuple(signal for signal in sample.signals if signal.kind in variant.kinds),
        votes=sample.votes if variant.votes else {},
    )


def worth_of_evidence(
    threads: Sequence[LabelledThread],
    samples: Sequence[Sample],
    causes: Sequence[str],
    more: Sequence[Sample],
    stages: Stages,
) -> list[VariantFigures]:
    """Every variant, fitted and judged anew."""
    table = []
    for variant in VARIANTS:
        some, further = ([restrict(one, variant) for one in many] for many in (samples, more))
        every = predict(threads, some, CrossFit(some, causes, further))
        shown = measurable(every)
        table.append(
            VariantFigures(
                variant=variant.name,
                top1=share(shown, lambda item: item.rank == 1),
                top3=share(shown, lambda item: item.rank <= 3),
                macro_top3=macro(shown, 3),
                top1_all=share(every, lambda item: item.rank == 1),
                top3_all=share(every, lambda item: item.rank <= 3),
                p50_ms=sum(stages.percentile_ms(name, 50) for name in variant.stages),
            )
        )
    return table


# --- what the reports teach ----------------------------------------------------------------------


def learning_curve(
    threads: Sequence[LabelledThread], service: Service, relations: Relations
) -> list[LearningPoint]:
    """The measurable threads, judged with readers that learned from more and more reports.

    And from all but those of one source. Weights are fitted anew with each.
    """
    samples, more = thread_samples(threads, service, relations), case_samples(service, relations)
    reports = load_reports(service.settings.data / REPORTS)
    told = described_reports(service, relations, reports)
    parts = {
        f"{part:.0%}": [one for n, one in enumerate(told) if n % STEPS < part * STEPS]
        for part in SHARES
    }
    for source in dict.fromkeys(report.source for report in reports):
        pairs = zip(told, reports, strict=True)
        parts[f"without {source}"] = [one for one, report in pairs if report.source != source]
    curve = []
    for name, part in parts.items():
        reader = HeldOutReader([*samples, *more, *part], service)
        read, others = ([reader.read(one) for one in many] for many in (samples, more))
        fitted = CrossFit(read, causes_of(service), others)
        shown = measurable(predict(threads, read, fitted))
        curve.append(
            LearningPoint(
                name=name,
                reports=len(part),
                top1=share(shown, lambda item: item.rank == 1),
                top3=share(shown, lambda item: item.rank <= 3),
            )
        )
    return curve


# --- healthy logs: each said to be a timeout is a false alarm ------------------------------------


def judge_healthy(service: Service, folder: Path) -> list[HealthyLog]:
    """Every ``*.log`` of `folder`, in the order of names.

    Raises:
        InputError: there is none.
    """
    paths = sorted(folder.glob("*.log"))
    if not paths:
        raise InputError(f"{folder} holds no *.log", todo="give the folder of healthy logs")
    return [_judge_healthy(service, path) for path in paths]


def _judge_healthy(service: Service, path: Path) -> HealthyLog:
    verdict = judge(path.read_text(encoding="utf-8"), service)
    if verdict.status == "no_timeout":
        return HealthyLog(name=path.stem, alarm=False)
    reading = verdict.reading
    triggers = [
        f"{event.pattern_id}: line {event.line}: {event.text.strip()[:QUOTED]}"
        for event in reading.events
        if event.kind == "timeout"
    ]
    triggers += [f"{c.cue.id}: {c.quote[:QUOTED]}" for c in service.engine.report_cues(reading)]
    return HealthyLog(
        name=path.stem,
        alarm=True,
        cause=verdict.ranking.causes[0].cause,
        triggers=tuple(dict.fromkeys(triggers)),
    )
