"""What is observed of each labelled incident and of each case's symptoms, its own case aside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kb.diagnose.fit import Sample
from kb.diagnose.signals import Signal
from kb.evaluation.incidents import Incident
from kb.evaluation.nearness import linked, near_duplicates
from kb.service import Service
from kb.types import UNKNOWN, Entry, Hit

CASE_WEIGHT = 0.3  # of a case's symptoms beside a thread: two languages, and written knowingly


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything one text gives: signals, votes of similar cases, the cases themselves."""

    signals: tuple[Signal, ...]
    votes: dict[str, float]
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinships:
    """Which cases stand on which incident, and which projects must not be parted by folds.

    Attributes:
        own: ids of the cases that stand on an incident's thread, by incident id.
        aside: `own` and the cases of the incident's near-duplicates: what must not vote.
        groups: name of the group of a project, in lower case; projects not named are their own.
    """

    own: Mapping[str, tuple[str, ...]]
    aside: Mapping[str, tuple[str, ...]]
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


def kinships(incidents: Sequence[Incident], service: Service) -> Kinships:
    """How incidents and the shipped cases hang together."""
    cases_at: dict[str, list[Entry]] = defaultdict(list)
    for case in service.knowledge.cases:
        for address in sorted(addresses(case)):
            cases_at[address].append(case)
    near = near_duplicates(incidents)
    by_id = {incident.id: incident for incident in incidents}
    own: dict[str, tuple[str, ...]] = {}
    pairs: list[tuple[str, str]] = []
    for incident in incidents:
        cases = cases_at.get(thread_address(incident.url), [])
        own[incident.id] = tuple(sorted(case.id for case in cases))
        alike = [by_id[other].repo for other in near.get(incident.id, ())]
        projects = (*alike, *(case.project for case in cases))
        pairs.extend((incident.repo.lower(), project.lower()) for project in projects)
    aside = {
        name: {*cases, *(case for other in near.get(name, ()) for case in own[other])}
        for name, cases in own.items()
    }
    return Kinships(
        own=own,
        aside={name: tuple(sorted(cases)) for name, cases in aside.items()},
        groups=linked(pairs),
    )


def observe(text: str, service: Service, exclude: Sequence[str] = ()) -> Observation:
    """Read a text and search for cases like it; `exclude` are cases that must not be used."""
    reading = service.reader.read_text(text)
    found = service.similar(reading, exclude=exclude)
    entries = service.entries_of(found)
    return Observation(
        signals=(*service.engine.signals(reading), *service.engine.kin(reading, found, entries)),
        votes=service.engine.votes(found, entries),
        hits=found.hits,
    )


def sample_of(incident: Incident, seen: Observation, kin: Kinships) -> Sample:
    """An incident as a sample to learn from or to be judged."""
    return Sample(
        signals=seen.signals,
        votes=seen.votes,
        cause=incident.cause,
        also=incident.also,
        group=kin.group(incident.repo),
    )


def samples_of(incidents: Sequence[Incident], service: Service) -> list[Sample]:
    """A sample of each incident; its own cases and those of its near-duplicates do not vote."""
    kin = kinships(incidents, service)
    return [
        sample_of(incident, observe(incident.text, service, kin.aside[incident.id]), kin)
        for incident in incidents
    ]


def case_samples(service: Service, incidents: Sequence[Incident] = ()) -> list[Sample]:
    """The symptoms of every shipped case as further samples, one a language; it does not vote.

    `incidents` are those judged beside them: cases standing on one fall into its group.
    """
    kin = kinships(incidents, service)
    return [
        Sample(
            signals=seen.signals,
            votes=seen.votes,
            cause=case.causes[0].id,
            also=tuple(claim.id for claim in case.causes[1:]),
            group=kin.group(case.project),
            weight=CASE_WEIGHT,
        )
        for case in service.knowledge.cases
        if case.causes[0].id != UNKNOWN
        for section in case.sections
        if section.role == "symptoms"
        for seen in [observe(section.text, service, (case.id,))]
    ]
