"""The knowledge of `data/`: causes, patterns, advice, cases and labels, loaded and checked.

Reading the YAML takes most of a second, so what was checked once is kept as one JSON file in the
state folder under the digest of the files it came from; any change to a file makes a new one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kb.errors import DataError
from kb.home import make_home
from kb.schema import unknown_fields
from kb.types import Advice, Bilingual, Cause, Entry, FactMeaning, Given, Pattern

KNOWLEDGE_FORMAT = 2  # raise it when the values change shape: older caches are then ignored
YAML_FILES = (
    "causes.yaml",
    "patterns.yaml",
    "cues.yaml",
    "facts.yaml",
    "dump_facts.yaml",
    "advice.yaml",
    "given.yaml",
    "wording.yaml",
)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """All checked knowledge. `digest` is the SHA-256 over the files it was read from.

    `patterns` read program output, `cues` a person's description; both have the same shape.
    `labels` are the words faces show, by name.
    """

    digest: str
    causes: tuple[Cause, ...]
    patterns: tuple[Pattern, ...]
    cues: tuple[Pattern, ...]
    facts: tuple[FactMeaning, ...]
    advice: tuple[Advice, ...]
    cases: tuple[Entry, ...]
    labels: dict[str, Bilingual] = field(default_factory=dict)
    given: tuple[Given, ...] = ()

    @cached_property
    def cause_by_id(self) -> dict[str, Cause]:
        """Causes by id, in the order of the file."""
        return {cause.id: cause for cause in self.causes}

    @cached_property
    def case_by_id(self) -> dict[str, Entry]:
        """Cases by id."""
        return {case.id: case for case in self.cases}

    @cached_property
    def advice_by_id(self) -> dict[str, Advice]:
        """Advice by the setting's name."""
        return {advice.id: advice for advice in self.advice}

    @cached_property
    def fact_by_id(self) -> dict[str, FactMeaning]:
        """What each derived fact means, by its name."""
        return {fact.id: fact for fact in self.facts}

    @cached_property
    def pattern_by_id(self) -> dict[str, Pattern]:
        """Patterns and cues by id."""
        return {pattern.id: pattern for pattern in (*self.patterns, *self.cues)}


def knowledge_files(data: Path) -> list[Path]:
    """The files the knowledge is read from, in a fixed order."""
    return [
        *(data / name for name in YAML_FILES),
        *sorted((data / "labels").glob("*.yaml")),
        *sorted((data / "cases").glob("*.md")),
    ]


def knowledge_digest(data: Path) -> str:
    """SHA-256 over names and contents of the knowledge files and the format number."""
    digest = hashlib.sha256(f"format {KNOWLEDGE_FORMAT}".encode())
    for path in knowledge_files(data):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(
                f"{path}: {error.strerror}", todo="reinstall, or point TIMEOUT_KB_DATA at data/"
            ) from error
        digest.update(f"\0{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def load_knowledge(data: Path, *, cache: Path | None = None) -> Knowledge:
    """Read and check the knowledge under `data`; with `cache` (a folder) keep and reuse the result.

    Raises:
        DataError: a file is missing or breaks its schema; the message names file and field.
    """
    digest = knowledge_digest(data)
    kept = cache / f"knowledge-{digest[:16]}.json" if cache else None
    if kept is not None and kept.is_file():
        try:
            return msgspec.json.decode(kept.read_bytes(), type=Knowledge)
        except msgspec.DecodeError:
            kept.unlink(missing_ok=True)  # damaged: rebuilt below from the truth
    knowledge = read_knowledge(data, digest=digest)
    if kept is not None:
        _keep(kept, knowledge)
    return knowledge


def _keep(kept: Path, knowledge: Knowledge) -> None:
    aside = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        make_home(kept.parent.parent)
        kept.parent.mkdir(exist_ok=True)
        aside.write_bytes(msgspec.json.encode(knowledge))
        aside.replace(kept)
    except OSError:
        aside.unlink(missing_ok=True)  # a full or read-only disk costs the cache, not the answer
        return
    for other in kept.parent.glob("knowledge-*.json"):
        if other != kept:
            other.unlink(missing_ok=True)


def read_knowledge(data: Path, *, digest: str = "") -> Knowledge:
    """Read and check all files of `data` without a cache.

    Raises:
        DataError: a file is missing or breaks its schema.
    """
    from kb.cases import load_case

    cases = [load_case(path) for path in sorted((data / "cases").glob("*.md"))]
    knowledge = Knowledge(
        digest=digest or knowledge_digest(data),
        causes=read_yaml(data / "causes.yaml", tuple[Cause, ...]),
        patterns=read_yaml(data / "patterns.yaml", tuple[Pattern, ...]),
        cues=read_yaml(data / "cues.yaml", tuple[Pattern, ...]),
        facts=read_yaml(data / "facts.yaml", tuple[FactMeaning, ...])
        + read_yaml(data / "dump_facts.yaml", tuple[FactMeaning, ...]),
        advice=read_yaml(data / "advice.yaml", tuple[Advice, ...]),
        cases=tuple(cases),
        given=read_yaml(data / "given.yaml", tuple[Given, ...]),
        labels=read_labels(data / "labels")
        | read_yaml(data / "wording.yaml", dict[str, Bilingual]),
    )
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
        _unique("labels", (*labels, *own))
        labels |= own
    return labels


def read_yaml(path: Path, kind: type[T]) -> T:
    """Read a YAML file into `kind`, strictly.

    Raises:
        DataError: missing, not YAML, a wrong type, or a field the schema does not know.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C where there is one
        raw: Any = yaml.load(text, Loader=loader)  # noqa: S506 - both are the safe loader
        made = msgspec.convert(raw, kind)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", todo="reinstall the package") from error
    except yaml.YAMLError as error:
        raise DataError(f"{path.name} is not YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise DataError(f"{path.name}: {error}", todo="see data/README.md") from error
    unknown = next(unknown_fields(raw, made), None)
    if unknown:
        raise DataError(f"{path.name}: unknown field {unknown}", todo="check the spelling")
    return made


def check_references(knowledge: Knowledge) -> None:
    """Check that ids are unique and every cause named anywhere exists.

    Raises:
        DataError: an id stands twice or a cause is not known.
    """
    _unique("causes.yaml", (cause.id for cause in knowledge.causes))
    _unique("patterns.yaml and cues.yaml", (p.id for p in (*knowledge.patterns, *knowledge.cues)))
    _unique("facts.yaml and dump_facts.yaml", (fact.id for fact in knowledge.facts))
    _unique("advice.yaml", (advice.id for advice in knowledge.advice))
    _unique("given.yaml", (item.id for item in knowledge.given))
    _unique("fixes of causes.yaml", (fix.id for cause in knowledge.causes for fix in cause.fixes))
    known = {cause.id for cause in knowledge.causes}

    def check(where: str, ids: Iterable[str]) -> None:
        for cause in ids:
            if cause not in known:
                raise DataError(f"{where}: {cause!r} is not a cause", todo="see data/causes.yaml")

    for case in knowledge.cases:
        check(f"case {case.id}", (claim.id for claim in case.causes))
    for pattern in (*knowledge.patterns, *knowledge.cues):
        check(f"pattern {pattern.id}", (*pattern.causes, *pattern.sound))
    for fact in knowledge.facts:
        check(f"fact {fact.id}", fact.causes)
    for cause in knowledge.causes:
        for item in cause.checks:
            for outcome in item.outcomes:
                check(f"check {item.id}", (*outcome.supports, *outcome.refutes))
    _check_evidence(knowledge)


def _check_evidence(knowledge: Knowledge) -> None:
    known = {"", *(item.id for item in knowledge.given)}
    for cause in knowledge.causes:
        gives = [item.gives for item in cause.checks] + [item.gives for item in cause.collect]
        for name in gives:
            if name not in known:
                what = f"{cause.id}: {name!r} is no kind of evidence"
                raise DataError(what, todo="see data/given.yaml")


def _unique(where: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for identifier in ids:
        if identifier in seen:
            raise DataError(f"{where}: {identifier!r} stands twice", todo="rename one of them")
        seen.add(identifier)
