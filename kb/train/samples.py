"""What is observed of each labelled thread and of each case's symptoms, its own case left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kb.diagnose.verdict import Verdict
from kb.service import Service
from kb.train.threads import LabelledThread, linked, near_duplicates
from kb.train.weights import Sample
from kb.types.entries import Entry
from kb.types.vocabulary import UNKNOWN

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
    """A thread as a sample to learn from or to be judged."""
    return Sample(
        signals=verdict.signals,
        votes=verdict.votes,
        cause=thread.cause,
        also=thread.also,
        group=relations.group(thread.repo),
    )


def case_sample(case: Entry, verdict: Verdict, relations: Relations) -> Sample:
    """The symptoms of a case as a sample."""
    return Sample(
        signals=verdict.signals,
        votes=verdict.votes,
        cause=case.causes[0].id,
        also=tuple(claim.id for claim in case.causes[1:]),
        group=relations.group(case.project),
        weight=CASE_WEIGHT,
    )


def thread_samples(
    threads: Sequence[LabelledThread], service: Service, relations: Relations
) -> list[Sample]:
    """A sample of each thread; its own cases and those of its near-duplicates do not vote."""
    return [
        thread_sample(thread, judge(thread.text, service, relations.excluded[thread.id]), relations)
        for thread in threads
    ]


def case_samples(service: Service, relations: Relations) -> list[Sample]:
    """The symptoms of every shipped case, a sample a language; the case itself does not vote."""
    return [
        case_sample(case, judge(section.text, service, (case.id,)), relations)
        for case in service.knowledge.cases
        if case.causes[0].id != UNKNOWN
        for section in case.sections
        if section.role == "symptoms"
    ]


def causes_of(service: Service) -> list[str]:
    """Ids of all causes a ranking holds."""
    return [cause.id for cause in service.knowledge.causes if cause.id != UNKNOWN]
