"""What is observed of each labelled thread and of each case's symptoms, its own case left out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from kb.diagnose.signals import Signal
from kb.diagnose.verdict import Verdict
from kb.embed import embedded_model
from kb.service import Service
from kb.text.tokenizer import Tokenizer
from kb.train.reader import ReaderFit, ReaderSample
from kb.train.reports import FOLDER, Report, load_neutral
from kb.train.threads import LabelledThread, linked, near_duplicates
from kb.train.weights import Sample
from kb.types.entries import Entry
from kb.types.vocabulary import UNKNOWN

JUDGED_WEIGHT = 0.7  # of a thread whose cause is an expert's opinion
# How frequent causes are, first-sight batches tell best: they were drawn whatever the cause.
BATCH_PRIOR, JUDGED_PRIOR = 3.0, 0.3
RETOLD_WEIGHT, WRITTEN_WEIGHT = 0.33, 0.47  # of reports in our own words
READER_FACTOR = 1.5  # on all weights, for the learned reader
REPOSITORY = re.compile(r"https?://github\.com/([^/]+/[^/]+)/")
CASE_WEIGHT = 0.3  # of a case's symptoms beside a thread: two languages, and written knowingly


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """Which cases stand on which thread, and which projects must not be parted by folds.

    Attributes:
        own: ids of the cases that stand on a thread, by the thread's id.
        excluded: `own` and the cases of the thread's near-duplicates: what must not vote.
        groups: name of the group of a project, in lower case; projects not named are their own.
    """

    own: Mapping[str, tuple[str, ...]]
    excluded: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, str]

    def group(self, project: str) -> str:
        """The group of a project."""
        return self.groups.get(project.lower(), project.lower())


def thread_address(url: str) -> str:
    """The address of a thread without the place inside it."""
    return url.split("#", maxsplit=1)[0].rstrip("/").lower()


def addresses(case: Entry) -> set[str]:
    """The threads a case stands on."""
    return {thread_address(url) for url in (case.url, *(source.url for source in case.sources))}


def relate(threads: Sequence[LabelledThread], service: Service) -> Relations:
    """How threads and the shipped cases hang together."""
    cases_at: dict[str, list[Entry]] = defaultdict(list)
    for case in service.knowledge.cases:
        for address in sorted(addresses(case)):
            cases_at[address].append(case)
    near = near_duplicates(threads)
    repo = {thread.id: thread.repo for thread in threads}
    own: dict[str, tuple[str, ...]] = {}
    pairs: list[tuple[str, str]] = []
    for thread in threads:
        cases = cases_at.get(thread_address(thread.url), [])
        own[thread.id] = tuple(sorted(case.id for case in cases))
        projects = (
            *(repo[other] for other in near.get(thread.id, ())),
            *(case.project for case in cases),
        )
        pairs.extend((thread.repo.lower(), project.lower()) for project in projects)
    return Relations(
        own=own,
        excluded={
            name: tuple(sorted({*cases, *(case for o in near.get(name, ()) for case in own[o])}))
            for name, cases in own.items()
        },
        groups=linked(pairs),
    )


def judge(text: str, service: Service, exclude: Sequence[str] = ()) -> Verdict:
    """Read a text and search for cases like it; `exclude` are cases that must not be used."""
    return service.judge(service.read_text(text), exclude=exclude)


def thread_sample(thread: LabelledThread, verdict: Verdict, relations: Relations) -> Sample:
    """A thread as a sample to learn from or to be judged, without what the shipped reader says."""
    return Sample(
        signals=without_reader(verdict.signals),
        votes=verdict.votes,
        cause=thread.cause,
        also=thread.also,
        group=relations.group(thread.repo),
        weight=JUDGED_WEIGHT if thread.p else 1.0,
        prior_weight=BATCH_PRIOR if thread.batch else JUDGED_PRIOR if thread.p else 1.0,
        words=verdict.reading.words,
        p=thread.p,
    )


def case_sample(case: Entry, verdict: Verdict, relations: Relations) -> Sample:
    """The symptoms of a case as a sample, without what the shipped reader says."""
    return Sample(
        signals=without_reader(verdict.signals),
        votes=verdict.votes,
        cause=case.causes[0].id,
        also=tuple(claim.id for claim in case.causes[1:]),
        group=relations.group(case.project),
        weight=CASE_WEIGHT,
        prior_weight=0.0,
        words=verdict.reading.words,
    )


def report_sample(
    report: Report, words: str, relations: Relations, verdict: Verdict | None = None
) -> Sample:
    """A shipped report as a sample, in the group of the project or mechanism it tells of."""
    repository = REPOSITORY.match(report.url)
    project = repository[1] if repository else report.url
    return Sample(
        signals=without_reader(verdict.signals) if verdict else (),
        votes=verdict.votes if verdict else {},
        cause=report.cause,
        also=report.also,
        group=relations.group(project) if project else report.of or report.id,
        weight=RETOLD_WEIGHT if project else WRITTEN_WEIGHT,
        words=words,
        p=report.p,
    )


def thread_samples(
    threads: Sequence[LabelledThread], service: Service, relations: Relations
) -> list[Sample]:
    """A sample of each thread; its own cases and those of its near-duplicates do not vote."""
    return [
        thread_sample(thread, judge(thread.text, service, relations.excluded[thread.id]), relations)
        for thread in threads
    ]


def case_samples(
    service: Service, relations: Relations, cases: Sequence[Entry] | None = None
) -> list[Sample]:
    """The symptoms of `cases`, by default of all shipped ones, a sample a language.

    The case itself does not vote.
    """
    return [
        case_sample(case, judge(section.text, service, (case.id,)), relations)
        for case in (service.knowledge.cases if cases is None else cases)
        if case.causes[0].id != UNKNOWN
        for section in case.sections
        if section.role == "symptoms"
    ]


def described_reports(
    service: Service, relations: Relations, reports: Sequence[Report]
) -> list[Sample]:
    """The words of each report as a sample for the learned reader, without signals."""
    return [
        report_sample(report, service.read_text(report.paste).words, relations)
        for report in reports
    ]


def judged_reports(
    service: Service, relations: Relations, reports: Sequence[Report]
) -> list[Sample]:
    """A sample of each report; cases that stand on the thread it is retold from do not vote."""
    own: dict[str, list[str]] = defaultdict(list)
    for case in service.knowledge.cases:
        for address in addresses(case):
            own[address].append(case.id)
    verdicts = [
        judge(report.paste, service, own[thread_address(report.url)] if report.url else ())
        for report in reports
    ]
    return [
        report_sample(report, verdict.reading.words, relations, verdict)
        for report, verdict in zip(reports, verdicts, strict=True)
    ]


class HeldOutReader:
    """Reads descriptions by models that saw nothing of their groups."""

    def __init__(self, samples: Sequence[Sample], service: Service) -> None:
        """Learn from the descriptions of `samples`."""
        self._description = cache(service.engine.description)  # of the same words more than once
        self._fit = fit_reader(samples, service, self._description)

    def read(self, sample: Sample) -> Sample:
        """The sample with what the reader says of its words."""
        nats = self._fit.held_out(self._description(sample.words), sample.group)
        signal = Signal(
            name="reader:held-out",
            kind="reader",
            quote="",
            line=0,
            weights=nats,
            reason_id="reader",
            source="reader",
        )
        return replace(sample, signals=(*sample.signals, signal))


def fit_reader(
    samples: Sequence[Sample], service: Service, describe: Callable[[str], str] | None = None
) -> ReaderFit:
    """The learned reader's fit on the descriptions of `samples`, which `describe` may remember."""
    describe = describe or service.engine.description
    return ReaderFit(
        [
            ReaderSample(
                words=describe(sample.words),
                target=sample.target,
                group=sample.group,
                weight=READER_FACTOR * sample.weight,
            )
            for sample in samples
        ],
        causes_of(service),
        embedded_model(service.settings.data),
        Tokenizer(service.settings.data / "lexicon"),
        load_neutral(service.settings.data / FOLDER),
    )


def without_reader(signals: Sequence[Signal]) -> tuple[Signal, ...]:
    """The signals but for what the shipped reader says: it has learned from what is measured."""
    return tuple(signal for signal in signals if signal.kind != "reader")


def causes_of(service: Service) -> list[str]:
    """Ids of all causes a ranking holds."""
    return [cause.id for cause in service.knowledge.causes if cause.id != UNKNOWN]
