"""Documents to entries: lines to sections, points to fixes and claims, words to tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ingest.chunks import chunks_of
from ingest.clean import drop_furniture
from ingest.files import file_digest, source_key
from ingest.plain_text import has_titles, to_markdown
from ingest.sections import items_of, split_sections
from ingest.tags import causes_anywhere, causes_in, project_of, tags_of
from ingest.types import Document, ImportTools, ListItem, OutputReader
from ingest.wordlists import WordLists
from kb.errors import InputError
from kb.text.language import detect_language
from kb.text.redact import redact, redact_name
from kb.types.entries import CauseClaim, Claim, Entry, Section
from kb.types.incident import LogReading
from kb.types.knowledge import Bilingual, Fix, Source
from kb.types.vocabulary import ClaimStatus, EntryKind

MIN_TEXT = 40  # characters; less is a login page or an empty shell
MAX_FIX_TITLE = 100  # characters of a fix's title
MAX_FIXES = 12  # of one entry; pages list three to six
MAX_SCANNED = 200_000  # characters searched for tags and causes; write-ups have 5,000
MAX_SIGNATURE = 8  # lines of output an entry is found by
MAX_SIGNATURE_LINE = 240  # characters
_SENTENCE = re.compile(r"(?<=[。!?;])|(?<=[.!?;])\s+|\n")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_FENCE_END = re.compile(r"\s*(?:```|~~~)[ \t]*\Z")


def both(text: str) -> Bilingual:
    """A text of one language where two are asked for: a page's words are shown as they are."""
    return Bilingual(zh=text, en=text)


def entry_id(kind: EntryKind, digest: str) -> str:
    """The id of an imported entry."""
    return f"{kind}-{digest[:16]}"


def writeup_entry(
    document: Document, path: Path, tools: ImportTools, *, plain: bool = False
) -> Entry:
    """The entry of a page or write-up; all its claims are unverified.

    `plain` says that titles, points and code have to be recognised by how the lines look.

    Raises:
        InputError: there is hardly any text in it.
    """
    document = _cleaned(document, path, tools.words, plain=plain)
    sections = split_sections(document.lines, words=tools.words, default="symptoms")
    text = "\n".join(section.text for section in sections)
    if len("".join(text.split())) < MIN_TEXT:
        raise InputError(
            f"holds {len(''.join(text.split()))} characters besides the site's own text",
            todo="save the page after it has loaded",
            reason="no_text",
        )
    key, digest = source_key(path), file_digest(path)
    return document_entry(document, sections, tools, kind="writeup", key=key, digest=digest)


def _cleaned(document: Document, path: Path, words: WordLists, *, plain: bool) -> Document:
    """`document` without what the site put around it and without secrets."""
    body = drop_furniture(document.lines, words)
    if plain or not has_titles(body, words):
        body = to_markdown(body, words)
    return replace(
        document,
        title=redact(document.title or name_title(path))[0],
        author=redact(document.author)[0],
        url=redact(document.url)[0],
        lines=tuple(redact("\n".join(body))[0].split("\n")),
    )


def name_title(path: Path) -> str:
    """A title out of a file's name, for documents that have none."""
    return re.sub(r"[_-]+", " ", redact_name(path.name).split(".")[0]).strip() or path.name


def document_entry(
    document: Document,
    sections: Sequence[Section],
    tools: ImportTools,
    *,
    kind: EntryKind,
    key: str,
    digest: str,
) -> Entry:
    """An entry of a document whose sections are known."""
    identifier = entry_id(kind, digest)
    text = "\n".join(section.text for section in sections)[:MAX_SCANNED]
    symptoms = "\n".join(item.text for item in sections if item.role == "symptoms")[:MAX_SCANNED]
    reading = read_output(text, tools.reader)
    claims, causes = claimed_causes(sections, document, tools.words)
    tags = tags_of(
        document.title, text, tools.words, reading.incident if reading else None, moment=symptoms
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
        fixes=fixes_of(sections, identifier, document.url),
        tags=tags,
        signature=signature_of(reading),
        sections=tuple(sections),
        chunks=(),
        source_key=key,
        digest=digest,
        claims=claims,
        sources=(Source(url=document.url),) if document.url else (),
        author=document.author,
    )
    return with_chunks(entry)


def with_chunks(entry: Entry) -> Entry:
    """`entry` with the chunks of its sections; what was handed in is searched by its excerpt."""
    title = entry.title.zh if entry.language == "zh" else entry.title.en
    sections = [section for section in entry.sections if section.role != "input"]
    return replace(entry, chunks=chunks_of(entry.id, title, sections))


def read_output(text: str, reader: OutputReader) -> LogReading | None:
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
    sections: Sequence[Section], document: Document, words: WordLists
) -> tuple[tuple[Claim, ...], tuple[CauseClaim, ...]]:
    """What a document says the cause is, in its words and as ids; all unverified."""
    units: list[str] = []
    claims: list[Claim] = []
    for section in sections:
        if section.role != "causes":
            continue
        intro, items = items_of(section.text)
        statements = [_whole(item) for item in items] or [p for p in intro.split("\n") if p.strip()]
        units += [intro, *statements] if items else statements
        claims += [
            Claim(about="cause", text=both(text), status="unverified", source=document.url)
            for text in statements
        ]
    text = "\n".join((document.title, *(section.text for section in sections)))[:MAX_SCANNED]
    ids = causes_in(units, words) if units else causes_anywhere(text, words)
    return tuple(claims), cause_claims(ids, "unverified", document.url)


def cause_claims(ids: Sequence[str], status: ClaimStatus, source: str) -> tuple[CauseClaim, ...]:
    """Claims of one standing for cause ids."""
    return tuple(CauseClaim(id=cause, status=status, source=source) for cause in ids)


def _whole(item: ListItem) -> str:
    """A point in one text."""
    parts = [f"{item.title}: {item.text}" if item.text else item.title]
    return "\n".join([*parts, *(f"- {step}" for step in item.steps)])


def fixes_of(
    sections: Sequence[Section], identifier: str, url: str, *, status: ClaimStatus = "unverified"
) -> tuple[Fix, ...]:
    """The fixes a document lists, a point each; prose without points is one fix a section."""
    fixes: list[Fix] = []
    for section in sections:
        if section.role != "fixes":
            continue
        intro, items = items_of(section.text)
        chosen = list(items)
        if not items or "```" in intro:
            chosen.insert(0, _prose_item(intro))
        fixes += [
            _fix(item, f"{identifier}/fix-{len(fixes) + number}", url, status)
            for number, item in enumerate(chosen, start=1)
            if item.title
        ]
    return tuple(fixes[:MAX_FIXES])


def _prose_item(text: str) -> ListItem:
    prose, code = _without_blocks(text)
    sentences = [part.strip() for part in _SENTENCE.split(prose) if part.strip()]
    if not sentences:
        return ListItem(title=code[0].split("\n")[0] if code else "", code=code)
    return ListItem(title=sentences[0], text="\n".join(sentences[1:]), code=code)


def _without_blocks(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without its fenced blocks, and what is in them; one that never closes is text."""
    prose: list[str] = []
    code: list[str] = []
    block: list[str] | None = None
    for line in text.split("\n"):
        if block is None and not _FENCE.match(line):
            prose.append(line)
        elif block is None:
            block = [line]
        elif _FENCE_END.match(line):
            code.append("\n".join(block[1:]))
            block = None
        else:
            block.append(line)
    return "\n".join([*prose, *(block or ())]), tuple(code)


def _fix(item: ListItem, identifier: str, url: str, status: ClaimStatus) -> Fix:
    title = item.title.rstrip(" :。.\uff1a")
    lines = [line for line in (*item.text.split("\n"), *item.steps) if line.strip(" :\uff1a")]
    # "ensure the following:" leads into the steps below it and is none itself
    steps = [line for line in lines if not line.endswith((":", ":")) or len(lines) == 1]
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
