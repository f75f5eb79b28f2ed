"""The knowledge of `data/`: causes, patterns, advice, cases, notes and labels, loaded and checked.

Reading the YAML takes most of a second, so what was checked once is kept as one JSON file in the
state folder under the digest of the files it came from; any change to a file makes a new one.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kb.errors import DataError
from kb.files.checked import read_checked, write_checked
from kb.files.state_folder import make_state_folder
from kb.knowledge.paraphrases import FOLDER as PARAPHRASES
from kb.knowledge.paraphrases import load_paraphrases, with_paraphrases
from kb.knowledge.schema import Decode, nearest, parse_yaml
from kb.knowledge.versions import is_specifier
from kb.types.entries import Entry
from kb.types.knowledge import (
    Advice,
    BadHost,
    Bilingual,
    Cause,
    Collect,
    Contradiction,
    EventType,
    FactMeaning,
    Framework,
    FrameworkName,
    InputEvidence,
    JobSetting,
    Launcher,
    Note,
    Pattern,
    PolarityMark,
    TeamNotice,
    Topic,
)
from kb.types.vocabulary import CUE_GROUPS, Polarity

KNOWLEDGE_FORMAT = 16  # raise it when the values change shape: older caches are then ignored
FILES: dict[str, Any] = {  # what each file of data/ is read into
    "causes.yaml": tuple[Cause, ...],
    "events.yaml": tuple[EventType, ...],
    "patterns.yaml": tuple[Pattern, ...],
    "cues.yaml": tuple[Pattern, ...],
    "topics.yaml": tuple[Topic, ...],
    "polarity.yaml": tuple[PolarityMark, ...],
    "frameworks.yaml": tuple[Framework, ...],
    "framework_names.yaml": tuple[FrameworkName, ...],
    "facts.yaml": tuple[FactMeaning, ...],
    "dump_facts.yaml": tuple[FactMeaning, ...],
    "advice.yaml": tuple[Advice, ...],
    "job_settings.yaml": tuple[JobSetting, ...],
    "contradictions.yaml": tuple[Contradiction, ...],
    "input_evidence.yaml": tuple[InputEvidence, ...],
    "missing_evidence.yaml": tuple[Collect, ...],
    "launchers.yaml": tuple[Launcher, ...],
}

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """All checked knowledge. `digest` is the SHA-256 over the files it was read from.

    `events` are the kinds of events that `patterns` make. `patterns` read program output, `cues` a
    person's description; both have the same shape.
    `missing_evidence` is what to ask for first where the input lacks it.
    `labels` are the words faces show, by name. `hosts` and `notices` are the team's alone.
    """

    digest: str
    causes: tuple[Cause, ...]
    events: tuple[EventType, ...]
    patterns: tuple[Pattern, ...]
    cues: tuple[Pattern, ...]
    frameworks: tuple[Framework, ...]
    facts: tuple[FactMeaning, ...]
    advice: tuple[Advice, ...]
    cases: tuple[Entry, ...]
    labels: dict[str, Bilingual] = field(default_factory=dict)
    input_evidence: tuple[InputEvidence, ...] = ()
    missing_evidence: tuple[Collect, ...] = ()
    launchers: tuple[Launcher, ...] = ()
    job_settings: tuple[JobSetting, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    topics: tuple[Topic, ...] = ()
    polarity: tuple[PolarityMark, ...] = ()
    hosts: tuple[BadHost, ...] = ()
    notices: tuple[TeamNotice, ...] = ()
    notes: tuple[Note, ...] = ()
    framework_names: tuple[FrameworkName, ...] = ()

    @cached_property
    def cause_by_id(self) -> dict[str, Cause]:
        """Causes by id, in the order of the file."""
        return {cause.id: cause for cause in self.causes}

    @cached_property
    def case_by_id(self) -> dict[str, Entry]:
        """Cases by id."""
        return {case.id: case for case in self.cases}

    @cached_property
    def note_by_id(self) -> dict[str, Note]:
        """Notes by id."""
        return {note.id: note for note in self.notes}

    def notes_naming(self, name: str) -> tuple[Note, ...]:
        """The notes that are about a cause or a setting, in the order of their ids."""
        return tuple(note for note in self.notes if name in note.causes or name in note.settings)

    @cached_property
    def advice_by_id(self) -> dict[str, Advice]:
        """Advice by the setting's name."""
        return {advice.id: advice for advice in self.advice}

    @cached_property
    def fact_by_id(self) -> dict[str, FactMeaning]:
        """What each derived fact means, by its name."""
        return {fact.id: fact for fact in self.facts}

    @cached_property
    def event_by_id(self) -> dict[str, EventType]:
        """Kinds of events by id."""
        return {kind.id: kind for kind in self.events}

    @cached_property
    def pattern_by_id(self) -> dict[str, Pattern]:
        """Patterns and cues by id."""
        return {pattern.id: pattern for pattern in (*self.patterns, *self.cues)}


def knowledge_files(data: Path) -> list[Path]:
    """The files the knowledge is read from, in a fixed order."""
    return [
        *(data / name for name in FILES),
        *sorted((data / "labels").glob("*.yaml")),
        *sorted((data / "cases").glob("*.md")),
        *sorted((data / "notes").glob("*.md")),
        *sorted((data / PARAPHRASES).glob("*.jsonl")),
    ]


def knowledge_digest(data: Path, site: Path | None = None) -> str:
    """SHA-256 over names and contents of the knowledge files and the format number.

    Raises:
        DataError: a file cannot be read; see also `kb.knowledge.site.site_files`.
    """
    from kb.knowledge.site import site_files

    digest = hashlib.sha256(f"format {KNOWLEDGE_FORMAT}".encode())
    files = [
        (path, "reinstall, or point TIMEOUT_KB_DATA at data/") for path in knowledge_files(data)
    ]
    if site is not None:
        digest.update(f"\0site {site}".encode())
        files += [(path, "make it readable, or remove it") for path in site_files(site)]
    for path, todo in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}", todo=todo) from error
        digest.update(f"\0{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def load_knowledge(data: Path, *, cache: Path | None = None, site: Path | None = None) -> Knowledge:
    """Read and check the knowledge under `data`; with `cache` (a folder) keep and reuse the result.

    `site` is a folder of the team's own knowledge, see `kb.knowledge.site`. The cases are searched
    by their paraphrases, too.

    Raises:
        DataError: a file is missing or breaks its schema; the message names file and field.
    """
    digest = knowledge_digest(data, site)
    cached = cache / f"knowledge-{digest[:16]}.json" if cache else None
    content = read_checked(cached) if cached is not None else None
    if content is not None:  # else there is none, or it is damaged: made below from the truth
        with contextlib.suppress(msgspec.DecodeError):  # of a program with another format
            return msgspec.json.decode(content, type=Knowledge)
    knowledge = read_knowledge(data, digest=digest)
    told = load_paraphrases(data / PARAPHRASES)
    knowledge = replace(knowledge, cases=with_paraphrases(knowledge.cases, told))
    if site is not None:
        from kb.knowledge.site import with_site

        knowledge = with_site(knowledge, site)
    if cached is not None:
        _write_cache(cached, knowledge)
    return knowledge


def _write_cache(cached: Path, knowledge: Knowledge) -> None:
    try:
        make_state_folder(cached.parent.parent)
        cached.parent.mkdir(exist_ok=True)
        write_checked(cached, msgspec.json.encode(knowledge))
    except OSError:
        return  # a full or read-only disk costs the cache, not the answer
    for other in cached.parent.glob("knowledge-*.json"):
        if other != cached:
            other.unlink(missing_ok=True)


def read_knowledge(data: Path, *, digest: str = "", check: bool = True) -> Knowledge:
    """Read all files of `data` without a cache, and `check` the references among them.

    Raises:
        DataError: a file is missing or breaks its schema.
    """
    from kb.knowledge.cases import load_case
    from kb.knowledge.notes import load_note

    values = {name: read_yaml(data / name, kind) for name, kind in FILES.items()}
    knowledge = Knowledge(
        digest=digest or knowledge_digest(data),
        causes=values["causes.yaml"],
        events=values["events.yaml"],
        patterns=values["patterns.yaml"],
        cues=values["cues.yaml"],
        frameworks=values["frameworks.yaml"],
        facts=values["facts.yaml"] + values["dump_facts.yaml"],
        advice=values["advice.yaml"],
        cases=tuple(load_case(path) for path in sorted((data / "cases").glob("*.md"))),
        input_evidence=values["input_evidence.yaml"],
        missing_evidence=values["missing_evidence.yaml"],
        launchers=values["launchers.yaml"],
        job_settings=values["job_settings.yaml"],
        contradictions=values["contradictions.yaml"],
        topics=values["topics.yaml"],
        polarity=values["polarity.yaml"],
        notes=tuple(load_note(path) for path in sorted((data / "notes").glob("*.md"))),
        framework_names=values["framework_names.yaml"],
        labels=read_labels(data / "labels"),
    )
    if check:
        check_references(knowledge)
    return knowledge


def read_labels(folder: Path) -> dict[str, Bilingual]:
    """The words of all faces: the files of `data/labels`, one a face, together.

    Raises:
        DataError: there are none, a file breaks its schema, or a name stands in two of them.
    """
    labels: dict[str, Bilingual] = {}
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise DataError(f"{folder} holds no labels", todo="reinstall the package")
    for path in files:
        own = read_yaml(path, dict[str, Bilingual])
        for error in _twice("labels", (*labels, *own)):
            raise error
        labels |= own
    return labels


def read_yaml(path: Path, kind: type[T], *, decode: Decode | None = None, name: str = "") -> T:
    """Read a YAML file into `kind`, strictly; `decode` makes values of types YAML has not.

    Messages call it by `name`, by default the file's own.

    Raises:
        DataError: missing, or see `kb.knowledge.schema.parse_yaml`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DataError(f"{path}: {error.strerror}", todo="reinstall the package") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}", todo="save the file as readable UTF-8") from error
    return parse_yaml(text, kind, name=name or path.name, decode=decode)


def check_references(knowledge: Knowledge) -> None:
    """Check that ids are unique and that everything named anywhere exists.

    Raises:
        DataError: the first of `wrong_references`.
    """
    for error in wrong_references(knowledge):
        raise error


def wrong_references(knowledge: Knowledge) -> Iterator[DataError]:
    """Ids that stand twice, and names of causes, evidence and observations that nothing has."""
    patterns = (*knowledge.patterns, *knowledge.cues)
    causes = [cause.id for cause in knowledge.causes]
    evidence = [item.id for item in knowledge.input_evidence]
    yield from _twice("causes.yaml", causes)
    yield from _twice("patterns.yaml and cues.yaml", [pattern.id for pattern in patterns])
    yield from _twice("facts.yaml and dump_facts.yaml", [fact.id for fact in knowledge.facts])
    yield from _twice("topics.yaml", [topic.id for topic in knowledge.topics])
    yield from _twice("polarity.yaml", [mark.id for mark in knowledge.polarity])
    yield from _twice("frameworks.yaml", [item.id for item in knowledge.frameworks])
    yield from _wrong_names(knowledge)
    yield from _twice("events.yaml", [item.id for item in knowledge.events])
    yield from _twice("advice.yaml", [advice.id for advice in knowledge.advice])
    yield from _twice("input_evidence.yaml", evidence)
    yield from _twice("launchers.yaml", [item.id for item in knowledge.launchers])
    yield from _twice("job_settings.yaml", [item.id for item in knowledge.job_settings])
    yield from _twice("contradictions.yaml", [item.id for item in knowledge.contradictions])
    yield from _wrong_notes(knowledge)
    fixes = [fix.id for cause in knowledge.causes for fix in cause.fixes]
    yield from _twice("fixes of causes.yaml", fixes)
    for where, names in _causes_named(knowledge):
        yield from _unknown(where, names, "cause", causes)
    for cause in knowledge.causes:
        provided = [item.gives for item in cause.checks] + [item.gives for item in cause.collect]
        where = f"causes.yaml: gives of {cause.id}"
        yield from _unknown(where, filter(None, provided), "kind of evidence", evidence)
    provided = [item.gives for item in knowledge.missing_evidence]
    yield from _unknown("missing_evidence.yaml: gives", provided, "kind of evidence", evidence)
    checks = [check.id for cause in knowledge.causes for check in cause.checks]
    for launcher in knowledge.launchers:
        where = f"launchers.yaml: commands of {launcher.id}"
        known = [*evidence, *checks]
        yield from _unknown(where, launcher.commands, "kind of evidence or check", known)
    yield from _wrong_events(knowledge)
    for where, specifiers in _versions_named(knowledge):
        for text in specifiers:
            if not is_specifier(text):
                yield DataError(f"{where}: {text!r} is no version", todo="write torch>=2.2")
    seen = {
        "event": [item.id for item in knowledge.events],
        "fact": [fact.id for fact in knowledge.facts],
        "pattern": [pattern.id for pattern in knowledge.patterns],
        "cue": [cue.id for cue in knowledge.cues],
        "framework": [item.id for item in knowledge.frameworks],
        "launcher": [item.id for item in knowledge.launchers],
        "topic": [f"{t.id}:{polarity}" for t in knowledge.topics for polarity in Polarity],
    }
    for where, names in _observations_named(knowledge):
        for text in names:
            kind, _, name = text.removeprefix("!").removesuffix("!").partition(":")
            if kind in seen:
                yield from _unknown(where, [name], f"{kind} that can be seen", seen[kind])


def _wrong_names(knowledge: Knowledge) -> Iterator[DataError]:
    known = [item.id for item in knowledge.framework_names]
    yield from _twice("framework_names.yaml", known)
    for item in knowledge.framework_names:
        yield from _unknown(f"framework_names.yaml: {item.id}", item.built_on, "name", known)


def _wrong_notes(knowledge: Knowledge) -> Iterator[DataError]:
    documents = [case.id for case in knowledge.cases] + [note.id for note in knowledge.notes]
    yield from _twice("cases and notes", documents)
    settings = [advice.id for advice in knowledge.advice]
    settings += [name for advice in knowledge.advice for name in advice.related]
    for note in knowledge.notes:
        yield from _unknown(f"{note.id}.md: settings", note.settings, "setting", settings)


def _unknown(
    where: str, names: Iterable[str], what: str, known: Sequence[str]
) -> Iterator[DataError]:
    """The `names` that are none of `known`; ``*`` at the end of either stands for any ending."""
    for name in names:
        if not any(fnmatchcase(other, name) or fnmatchcase(name, other) for other in known):
            yield DataError(f"{where}: {name!r} is no {what}", todo=nearest(name, known))


def _wrong_events(knowledge: Knowledge) -> Iterator[DataError]:
    """Events are a closed list: patterns make those of events.yaml and no others."""
    events = [item.id for item in knowledge.events]
    for item in knowledge.events:
        yield from _unknown(f"events.yaml: {item.id}", item.withdrawn_by, "event", events)
    facts = [fact.id for fact in knowledge.facts]
    made = {pattern.event for pattern in knowledge.patterns}
    for pattern in knowledge.patterns:
        where = f"patterns.yaml: event of {pattern.id}"
        yield from _unknown(where, [pattern.event], "event", events)
    for cue in knowledge.cues:
        groups = (cue.id, *CUE_GROUPS)
        where = f"cues.yaml: event of {cue.id}"
        yield from _unknown(where, [cue.event], "group of cues", groups)
    for item in knowledge.events:
        if item.id not in made:
            what = f"events.yaml: id {item.id!r} is made by no pattern"
            yield DataError(what, todo="remove it, or add a pattern")
        if item.fact:
            yield from _unknown(f"events.yaml: fact of {item.id}", [item.fact], "fact", facts)


def _causes_named(knowledge: Knowledge) -> Iterator[tuple[str, Iterable[str]]]:
    """Where causes are named, and which."""
    for case in knowledge.cases:
        yield f"{case.id}.md: cause", [claim.id for claim in case.causes]
    yield from ((f"{note.id}.md: causes", note.causes) for note in knowledge.notes)
    for pattern in knowledge.patterns:
        yield f"patterns.yaml: causes of {pattern.id}", pattern.causes
    for cue in knowledge.cues:
        yield f"cues.yaml: causes of {cue.id}", (*cue.causes, *cue.sound)
    for topic in knowledge.topics:
        named = (*topic.trouble, *topic.in_order, *topic.cures)
        yield f"topics.yaml: causes of {topic.id}", named
    for fact in knowledge.facts:
        yield f"facts.yaml: causes of {fact.id}", fact.causes
    for item in knowledge.contradictions:
        yield f"contradictions.yaml: causes of {item.id}", item.causes
    for advice in knowledge.advice:
        harm = [cause for rule in advice.rules for cause in rule.causes]
        yield f"advice.yaml: causes of {advice.id}", harm
    for check in (check for cause in knowledge.causes for check in cause.checks):
        for outcome in check.outcomes:
            named = (*outcome.supports, *outcome.refutes)
            yield f"causes.yaml: outcomes of {check.id}", named


def _versions_named(knowledge: Knowledge) -> Iterator[tuple[str, Iterable[str]]]:
    """Where versions are named, and which."""
    for advice in knowledge.advice:
        for rule in advice.rules:
            yield f"advice.yaml: versions of {advice.id}", rule.versions
    for note in knowledge.notes:
        yield f"{note.id}.md: versions", note.versions
    for case in knowledge.cases:
        for fix in case.fixes:
            yield f"{case.id}.md: versions of {fix.id}", fix.applies_to.versions
    for cause in knowledge.causes:
        scopes = [(fix.id, fix.applies_to) for fix in cause.fixes]
        scopes += [(check.id, check.applies_to) for check in cause.checks]
        for name, applies_to in scopes:
            yield f"causes.yaml: versions of {name}", applies_to.versions
        for step in cause.collect:
            yield f"causes.yaml: versions of {cause.id}", step.versions


def _observations_named(knowledge: Knowledge) -> Iterator[tuple[str, Iterable[str]]]:
    """Where events, patterns and cues are named, and which."""
    for item in knowledge.input_evidence:
        yield f"input_evidence.yaml: shown_by of {item.id}", _flat(item.shown_by)
    for cause in knowledge.causes:
        for fix in cause.fixes:
            yield f"causes.yaml: signs of {fix.id}", fix.signs
        for step in cause.collect:
            yield f"causes.yaml: when of {cause.id}", _flat(step.when)
        for check in cause.checks:
            yield f"causes.yaml: when of {check.id}", _flat(check.when)
            for outcome in check.outcomes:
                yield f"causes.yaml: shown_by of {check.id}", _flat(outcome.shown_by)
    for step in knowledge.missing_evidence:
        yield f"missing_evidence.yaml: when of {step.gives}", _flat(step.when)
    for launcher in knowledge.launchers:
        yield f"launchers.yaml: shown_by of {launcher.id}", _flat(launcher.shown_by)


def _flat(any_of: Iterable[Iterable[str]]) -> list[str]:
    return [name for names in any_of for name in names]


def _twice(where: str, ids: Iterable[str]) -> Iterator[DataError]:
    seen: set[str] = set()
    for identifier in ids:
        if identifier in seen:
            yield DataError(f"{where}: {identifier!r} stands twice", todo="rename one of them")
        seen.add(identifier)
