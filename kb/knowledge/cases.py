"""Case files: `data/cases/<slug>.md`, YAML front matter and a body in both languages.

The front matter is checked against `CaseMeta`; the body holds ``# zh`` and ``# en``, each with the
same ``##`` sections (`SECTION_ROLES`). One language is enough: where only one of them is there, its
texts stand for both, and the entry's `language` tells. One file is one entry of kind `case`.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

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
# stands before a claim wherever it is shown, so that what was disproved is never read as a fact
CLAIM_STANDING: dict[Language, dict[ClaimStatus, str]] = {
    "zh": {
        "confirmed": "已证实",
        "reported": "有人报告",
        "unverified": "未核实",
        "contradicted": "已被否定",
    },
    "en": {
        "confirmed": "Confirmed",
        "reported": "Reported",
        "unverified": "Not verified",
        "contradicted": "Contradicted",
    },
}
CLAIMS_ROLE = "claims"  # of the chunk that tells what was claimed elsewhere
CASES_KEY = "data/cases/"  # source keys of the shipped cases begin with it
SITE_CASES_KEY = "site/cases/"  # and those of the team's own site folder with this
TODO = "TODO"  # stands in a case file where somebody has to write
_TO_DO = re.compile(rf"^ *(?:- )?(?:([a-z_]+): +)?[\"']?{TODO}\b", re.MULTILINE)
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
    for error in places_to_do(text, name):
        raise error
    front, body = split_front_matter(text, name)
    languages = _languages(body, name)
    only = languages[0] if len(languages) == 1 else None
    meta = _meta(front, name, only)
    sections = _sections(body, languages, name)
    # a store that has the case without its claims takes it anew
    marked = f"{CLAIMS_ROLE}\n{text}" if meta.claims else text
    entry = _entry(meta, sections, digest=hashlib.sha256(marked.encode()).hexdigest(), name=name)
    return replace(entry, language=only) if only else entry


def places_to_do(text: str, name: str) -> Iterator[DataError]:
    """Where in a text something is still to be written."""
    for place in _TO_DO.finditer(text):
        line = text.count("\n", 0, place.end()) + 1
        field = f"{place[1]} " if place[1] else ""
        what = f"{name} line {line}: {field}still says {TODO}"
        yield DataError(what, todo="write it, or leave out what may be left out")


def _languages(body: str, name: str) -> tuple[Language, ...]:
    """The languages a body is written in, at least one."""
    parts = [part.strip() for part in re.findall(r"^# +(\S[^\n]*)$", body, re.MULTILINE)]
    for part in parts:
        if part not in SECTION_ROLES:
            raise DataError(f"{name}: unknown part '# {part}'", todo="use '# zh' and '# en'")
    if not parts:
        raise DataError(f"{name}: no '# zh' and no '# en' part", todo="write one of them, or both")
    return tuple(language for language in SECTION_ROLES if language in parts)


def _fill_in(raw: object, only: Language) -> None:
    """Let a text that is there in one language alone stand for both."""
    parts, seen = [raw], set[int]()
    while parts:
        part = parts.pop()
        if id(part) in seen:
            continue  # the same part again, by an alias
        seen.add(id(part))
        if isinstance(part, dict):
            if part.keys() == {only}:
                part.update(dict.fromkeys(SECTION_ROLES, part[only]))
            parts += part.values()
        elif isinstance(part, list):
            parts += part


def _meta(front: str, name: str, only: Language | None) -> CaseMeta:
    complete = partial(_fill_in, only=only) if only else None
    meta = parse_yaml(front, CaseMeta, name=name, first_line=FRONT_LINE, complete=complete)
    check_id(meta.id, name)
    if not meta.sources:
        raise DataError(f"{name}: no sources", todo="name the page that confirms the case")
    return meta


def _sections(body: str, languages: Sequence[Language], name: str) -> tuple[Section, ...]:
    sections: list[Section] = []
    roles_there = []
    for language in languages:
        part = re.search(rf"^# +{language} *$(.*?)(?=^# |\Z)", body, re.MULTILINE | re.DOTALL)
        own = _language_sections(part[1], language, name) if part else []
        there = {section.role for section in own}
        for title, role in SECTION_ROLES[language].items():
            if role in REQUIRED_ROLES and role not in there:
                raise DataError(f"{name}: '## {title}' is missing or empty under '# {language}'")
        sections += own
        roles_there.append(there)
    if any(there != roles_there[0] for there in roles_there):
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
    """One chunk a section, its title in front, and one of the claims a language.

    The symptoms also carry the signature. Claims are what people bring from elsewhere ("would an
    older release help?"), so they are found, each behind its standing.
    """
    texts: list[tuple[str, Language, list[str]]] = []
    for section in entry.sections:
        pieces = [entry.title.get(section.language), section.text]
        if section.role == "symptoms":
            pieces.append("\n".join(entry.signature))
        texts.append((section.role, section.language, pieces))
    if entry.claims:
        languages = dict.fromkeys(section.language for section in entry.sections)
        texts += [(CLAIMS_ROLE, language, _claims(entry, language)) for language in languages]
    return tuple(
        Chunk(
            id=f"{entry.id}#{number}",
            entry_id=entry.id,
            role=role,
            language=language,
            text="\n".join(piece for piece in pieces if piece),
        )
        for number, (role, language, pieces) in enumerate(texts)
    )


def _claims(entry: Entry, language: Language) -> list[str]:
    """The title, then a line a claim with its standing."""
    colon = "：" if language == "zh" else ": "
    standing = CLAIM_STANDING[language]
    lines = [f"{standing[claim.status]}{colon}{claim.text.get(language)}" for claim in entry.claims]
    return [entry.title.get(language), *lines]
