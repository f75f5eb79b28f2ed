"""Documents to entries: parts to sections, points to fixes and claims, words to tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ingest.chunks import chunks_of
from ingest.claims import causes_anywhere, causes_in
from ingest.sections import items_of, split_parts
from ingest.tags import project_of, tags_of
from ingest.types import Document, Item, LogReader, Part
from ingest.wordlists import WordLists
from kb.errors import InputError
from kb.text import detect_language
from kb.types import (
    Bilingual,
    CauseClaim,
    Claim,
    ClaimStatus,
    Entry,
    EntryKind,
    Fix,
    LogReading,
    Section,
    Source,
)

MIN_TEXT = 40  # characters; less is a login page or an empty shell
MAX_FIX_TITLE = 100  # characters of a fix's title
MAX_FIXES = 12  # of one entry; pages list three to six
MAX_SCANNED = 200_000  # characters searched for tags and causes; write-ups have 5,000
MAX_SIGNATURE = 8  # lines of output an entry is found by
MAX_SIGNATURE_LINE = 240  # characters
_SENTENCE = re.compile(r"(?<=[。!?;])|(?<=[.!?;])\s+|\n")
_FENCE_BLOCK = re.compile(r"^\s*(?:```|~~~).*?^\s*(?:```|~~~)[ \t]*$", re.MULTILINE | re.DOTALL)


def both(text: str) -> Bilingual:
    """A text of one language where two are asked for: a page's words are shown as they are."""
    return Bilingual(zh=text, en=text)


def entry_id(kind: EntryKind, digest: str) -> str:
    """The id of an imported entry."""
    return f"{kind}-{digest[:16]}"


def writeup_entry(
    document: Document, *, key: str, digest: str, words: WordLists, reader: LogReader
) -> Entry:
    """The entry of a page or write-up; all its claims are unverified.

    Raises:
        InputError: there is hardly any text in it.
    """
    parts = split_parts(document.lines, words=words, default="symptoms")
    text = "\n".join(line for part in parts for line in part.lines)
    if len("".join(text.split())) < MIN_TEXT:
        raise InputError(
            f"holds {len(''.join(text.split()))} characters besides the site's own text",
            todo="save the page after it has loaded",
            reason="no_text",
        )
    return document_entry(
        document, parts, kind="writeup", key=key, digest=digest, words=words, reader=reader
    )


def document_entry(
    document: Document,
    parts: Sequence[Part],
    *,
    kind: EntryKind,
    key: str,
    digest: str,
    words: WordLists,
    reader: LogReader,
) -> Entry:
    """An entry of a document whose parts are known."""
    identifier = entry_id(kind, digest)
    text = "\n".join(line for part in parts for line in part.lines)[:MAX_SCANNED]
    symptoms = "\n".join(line for part in parts if part.role == "symptoms" for line in part.lines)
    symptoms = symptoms[:MAX_SCANNED]
    reading = read_output(text, reader)
    claims, causes = claimed_causes(parts, document, words)
    tags = tags_of(
        document.title, text, words, reading.incident if reading else None, moment=symptoms
    )
    entry = Entry(
        id=identifier,
        kind=kind,
        language=detect_language(f"{document.title}\n{text}"),
        title=both(document.title),
        project=document.project or project_of(document.title, document.url),
        url=document.url,
        date=document.date,
        status="unverified",
        causes=causes,
        fixes=fixes_of(parts, identifier, document.url),
        tags=tags,
        signature=signature_of(reading),
        sections=sections_of(parts),
        chunks=(),
        source_key=key,
        digest=digest,
        claims=claims,
        sources=(Source(url=document.url),) if document.url else (),
        author=document.author,
    )
    return with_chunks(entry)


def with_chunks(entry: Entry) -> Entry:
    """`entry` with the chunks of its sections."""
    title = entry.title.zh if entry.language == "zh" else entry.title.en
    return replace(entry, chunks=chunks_of(entry.id, title, entry.sections))


def sections_of(parts: Sequence[Part]) -> tuple[Section, ...]:
    """Parts as sections; each knows its own language."""
    return tuple(
        Section(
            role=part.role,
            title=part.title,
            text="\n".join(part.lines),
            language=detect_language("\n".join((part.title, *part.lines))),
        )
        for part in parts
    )


def read_output(text: str, reader: LogReader) -> LogReading | None:
    """What the program output quoted in a text says, or None where there is none."""
    if not text.strip():
        return None
    reading = reader.read_text(text)
    return reading if reading.events else None


def signature_of(reading: LogReading | None) -> tuple[str, ...]:
    """Lines of output to find an entry by: first errors before timeouts, each kind once."""
    if reading is None:
        return ()
    lines: dict[str, str] = {}
    for kind in ("root", "timeout"):
        for event in reading.events:
            if event.kind == kind:
                lines.setdefault(event.event, shortened(event.text.strip(), MAX_SIGNATURE_LINE))
    return tuple(dict.fromkeys(lines.values()))[:MAX_SIGNATURE]


def shortened(line: str, most: int) -> str:
    """At most so many characters of a line; where some are left out, it ends between words."""
    if len(line) <= most:
        return line
    head = line[: most - 1]
    return f"{head.rpartition(' ')[0] or head}…"


def claimed_causes(
    parts: Sequence[Part], document: Document, words: WordLists
) -> tuple[tuple[Claim, ...], tuple[CauseClaim, ...]]:
    """What a document says the cause is, in its words and as ids; all unverified."""
    units: list[str] = []
    claims: list[Claim] = []
    for part in parts:
        if part.role != "causes":
            continue
        intro, items = items_of(part.lines)
        said = [_whole(item) for item in items] or [p for p in intro.split("\n") if p.strip()]
        units += [intro, *said] if items else said
        claims += [
            Claim(about="cause", text=both(text), status="unverified", source=document.url)
            for text in said
        ]
    text = "\n".join((document.title, *(line for part in parts for line in part.lines)))
    text = text[:MAX_SCANNED]
    ids = causes_in(units, words) if units else causes_anywhere(text, words)
    return tuple(claims), cause_claims(ids, "unverified", document.url)


def cause_claims(ids: Sequence[str], status: ClaimStatus, source: str) -> tuple[CauseClaim, ...]:
    """Claims of one standing for cause ids."""
    return tuple(CauseClaim(id=cause, status=status, source=source) for cause in ids)


def _whole(item: Item) -> str:
    """A point in one text."""
    parts = [f"{item.title}: {item.text}" if item.text else item.title]
    return "\n".join([*parts, *(f"- {step}" for step in item.steps)])


def fixes_of(
    parts: Sequence[Part], identifier: str, url: str, *, status: ClaimStatus = "unverified"
) -> tuple[Fix, ...]:
    """The fixes a document lists, a point each; prose without points is one fix a part."""
    fixes: list[Fix] = []
    for part in parts:
        if part.role != "fixes":
            continue
        intro, items = items_of(part.lines)
        chosen = list(items)
        if not items or "```" in intro:
            chosen.insert(0, _prose_item(intro))
        fixes += [
            _fix(item, f"{identifier}/fix-{len(fixes) + number}", url, status)
            for number, item in enumerate(chosen, start=1)
            if item.title
        ]
    return tuple(fixes[:MAX_FIXES])


def _prose_item(text: str) -> Item:
    code = tuple(
        "\n".join(block[0].strip().split("\n")[1:-1]) for block in _FENCE_BLOCK.finditer(text)
    )
    prose = _FENCE_BLOCK.sub("", text)
    sentences = [part.strip() for part in _SENTENCE.split(prose) if part.strip()]
    if not sentences:
        return Item(title=code[0].split("\n")[0] if code else "", code=code)
    return Item(title=sentences[0], text="\n".join(sentences[1:]), code=code)


def _fix(item: Item, identifier: str, url: str, status: ClaimStatus) -> Fix:
    title = item.title.rstrip(" :。.\uff1a")
    said = [line for line in (*item.text.split("\n"), *item.steps) if line.strip(" :\uff1a")]
    # "ensure the following:" leads into the steps below it and is none itself
    steps = [line for line in said if not line.endswith((":", ":")) or len(said) == 1]
    if len(title) > MAX_FIX_TITLE:
        steps.insert(0, title)
        title = title[: MAX_FIX_TITLE - 1].rstrip() + "…"
    return Fix(
        id=identifier,
        title=both(title),
        steps=tuple(both(step) for step in steps),
        commands=item.code,
        status=status,
        sources=(url,) if url else (),
    )
