"""Case files: `data/cases/<slug>.md`, YAML front matter and a body in both languages.

The front matter is checked against `CaseMeta`; the body holds ``# zh`` and ``# en``, each with the
same ``##`` sections (`SECTION_ROLES`). One file is one entry of kind `case`.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from kb.errors import DataError
from kb.knowledge.front_matter import FRONT_LINE, check_id, read_markdown, split_front_matter
from kb.knowledge.schema import parse_yaml
from kb.types.entries import CauseClaim, Chunk, Claim, Entry, Section, Tags
from kb.types.knowledge import AppliesTo, Bilingual, Fix, Source
from kb.types.vocabulary import Backend, ClaimStatus, Language, Level, Stage

SECTION_ROLES: dict[Language, dict[str, str]] = {
    "zh": {
        "现象": "symptoms",
        "定位": "found",
        "根因": "causes",
        "解决": "fixes",
        "验证": "verify",
        "无效的尝试": "not_helped",
    },
    "en": {
        "Symptom": "symptoms",
        "How it was found": "found",
        "Cause": "causes",
        "Fix": "fixes",
        "How to verify": "verify",
        "What did not help": "not_helped",
    },
}
CASES_KEY = "data/cases/"  # source keys of the shipped cases begin with it
SITE_CASES_KEY = "site/cases/"  # and those of the team's own site folder with this
REQUIRED_ROLES = ("symptoms", "causes", "fixes", "verify")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFix:
    """A fix as a case file writes it; its id is made from the case's id and its position."""

    title: Bilingual
    steps: tuple[Bilingual, ...] = ()
    commands: tuple[str, ...] = ()
    applies_to: AppliesTo = field(default_factory=AppliesTo)
    cost: Level = "medium"
    risk: Level = "low"
    caution: Bilingual | None = None
    status: ClaimStatus = "reported"
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseMeta:
    """Front matter of a case file. `status` is the standing of the cause claim."""

    id: str
    title: Bilingual
    project: str
    cause: str
    status: ClaimStatus
    first_seen: dt.date
    sources: tuple[Source, ...]
    backend: Backend
    stage: Stage
    also: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    signature: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    fixes: tuple[CaseFix, ...] = ()


def load_case(path: Path, *, folder: str = CASES_KEY) -> Entry:
    """Read and check one case file; its source key begins with `folder`.

    Raises:
        DataError: the file is unreadable or breaks the schema; the message names file and field.
    """
    case = parse_case(read_markdown(path), name=path.name)
    return replace(case, source_key=f"{folder}{path.name}")


def parse_case(text: str, *, name: str) -> Entry:
    """Turn the text of a case file into an entry; `name` is its file name.

    Raises:
        DataError: the text breaks the schema; the message says what is missing in plain words.
    """
    front, body = split_front_matter(text, name)
    meta = _meta(front, name)
    sections = _sections(body, name)
    return _entry(meta, sections, digest=hashlib.sha256(text.encode()).hexdigest(), name=name)


def _meta(front: str, name: str) -> CaseMeta:
    meta = parse_yaml(front, CaseMeta, name=name, first_line=FRONT_LINE)
    check_id(meta.id, name)
    if not meta.sources:
        raise DataError(f"{name}: no sources", todo="name the page that confirms the case")
    return meta


def _sections(body: str, name: str) -> tuple[Section, ...]:
    sections: list[Section] = []
    for language in cast("tuple[Language, ...]", ("zh", "en")):
        part = re.search(rf"^# {language}\s*$(.*?)(?=^# |\Z)", body, re.MULTILINE | re.DOTALL)
        if part is None:
            raise DataError(f"{name}: no '# {language}' part", todo="write both languages")
        sections += _language_sections(part[1], language, name)
    for language, roles in SECTION_ROLES.items():
        there = {section.role for section in sections if section.language == language}
        for title, role in roles.items():
            if role in REQUIRED_ROLES and role not in there:
                raise DataError(f"{name}: '## {title}' is missing or empty under '# {language}'")
    if {s.role for s in sections if s.language == "zh"} != {
        s.role for s in sections if s.language == "en"
    }:
        raise DataError(f"{name}: zh and en have different sections", todo="make them twins")
    return tuple(sections)


def _language_sections(text: str, language: Language, name: str) -> list[Section]:
    roles = SECTION_ROLES[language]
    pieces = re.split(r"^## +(\S[^\n]*)$", text, flags=re.MULTILINE)
    sections: list[Section] = []
    titles = map(str.rstrip, pieces[1::2])
    for title, content in zip(titles, pieces[2::2], strict=True):
        if title not in roles:
            known = ", ".join(roles)
            raise DataError(f"{name}: unknown section '## {title}'", todo=f"use: {known}")
        if content.strip():
            sections.append(
                Section(role=roles[title], title=title, text=content.strip(), language=language)
            )
    return sections


def _entry(meta: CaseMeta, sections: tuple[Section, ...], *, digest: str, name: str) -> Entry:
    causes = [CauseClaim(id=meta.cause, status=meta.status, source=meta.sources[0].url)]
    causes += [CauseClaim(id=other, status="reported") for other in meta.also]
    fixes = tuple(
        Fix(
            id=f"{meta.id}/fix-{number}",
            **{key: getattr(fix, key) for key in CaseFix.__dataclass_fields__},
        )
        for number, fix in enumerate(meta.fixes, start=1)
    )
    entry = Entry(
        id=meta.id,
        kind="case",
        language="both",
        title=meta.title,
        project=meta.project,
        url=meta.sources[0].url,
        date=meta.first_seen.isoformat(),
        status=meta.status,
        causes=tuple(causes),
        fixes=fixes,
        tags=Tags(
            frameworks=meta.frameworks,
            backend=meta.backend,
            ops=meta.ops,
            stage=meta.stage,
            hardware=meta.hardware,
            versions=meta.versions,
        ),
        signature=meta.signature,
        sections=sections,
        chunks=(),
        source_key=f"{CASES_KEY}{name}",
        digest=digest,
        claims=meta.claims,
        sources=meta.sources,
    )
    return replace(entry, chunks=_chunks(entry))


def _chunks(entry: Entry) -> tuple[Chunk, ...]:
    """One chunk a section, its title in front; the symptoms also carry the signature."""
    chunks: list[Chunk] = []
    for section in entry.sections:
        pieces = [entry.title.get(section.language), section.text]
        if section.role == "symptoms":
            pieces.append("\n".join(entry.signature))
        chunks.append(
            Chunk(
                id=f"{entry.id}#{len(chunks)}",
                entry_id=entry.id,
                role=section.role,
                language=section.language,
                text="\n".join(piece for piece in pieces if piece),
            )
        )
    return tuple(chunks)
