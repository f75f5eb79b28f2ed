"""Pages saved as text, and pastes: an article, or a log with a few words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ingest.clean import read_head, tidy
from ingest.files import HEAD_BYTES, file_digest, read_page, source_key
from ingest.formats.logs import incident_entry
from ingest.sections import role_of
from ingest.types import Document, Format, ImportTools
from ingest.wordlists import WordLists
from ingest.writeups import writeup_entry
from kb.text.line_kind import PRINTED, read_lines
from kb.types.entries import Entry

LOG_SHARE = 0.2  # of the lines that are not empty; below it output is quoted inside an article
ARTICLE_ROLES = 2  # section titles of so many roles make an article, however much output it quotes
TITLED = frozenset({"causes", "fixes", "practices", "found", "verify"})  # roles of a write-up


def _entries(path: Path, tools: ImportTools) -> Iterator[Entry]:
    text = read_page(path, tools.notes)
    lines = tidy(text)
    head = read_head(lines, tools.words)
    document = Document(
        title=head.title, lines=tuple(lines[head.start :]), author=head.author, date=head.date
    )
    entry = writeup_entry(document, path, tools, plain=True)
    if not any(section.role in TITLED for section in entry.sections):
        reading = tools.reader.read_text(text)
        if reading.incident.has_timeout:  # a pasted log with a few words
            entry = incident_entry(
                reading,
                path.name,
                tools.words,
                digest=file_digest(path),
                key=source_key(path),
                summary=tools.summarise(reading) if tools.summarise else None,
                text=text,
            )
    yield entry


def is_article(head: str, words: WordLists) -> bool:
    """Whether a text is an article and no log, of which at most `HEAD_BYTES` need be there."""
    kinds = read_lines(head[:HEAD_BYTES])
    lines = [line.text for line in kinds]
    prose = [line.text for line in kinds if line.kind not in PRINTED]
    roles = {role_of(line, words) for line in lines}  # titles are too short to tell their kind
    if len(roles - {""}) >= ARTICLE_ROLES:
        return True
    if any(line.strip().lower().startswith(words.furniture.ends) for line in lines):
        return True
    return not lines or len(lines) - len(prose) < LOG_SHARE * len(lines)


TEXT = Format(read=_entries, recognises=is_article)
