"""A log to an open incident: what the reader of logs saw in it, to be found again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ingest.files import file_digest, source_key
from ingest.sections import section_of
from ingest.tags import tags_of
from ingest.types import Format, ImportTools
from ingest.wordlists import ImportPhrases, WordLists
from ingest.writeups import entry_id, shortened, signature_of, with_chunks
from kb.errors import InputError
from kb.logs.excerpt import LINE_CHARS
from kb.text.language import detect_language
from kb.types.entries import Entry
from kb.types.incident import LogReading
from kb.types.knowledge import Bilingual

_ERROR_KINDS = frozenset({"timeout", "root"})


def _entries(path: Path, tools: ImportTools) -> Iterator[Entry]:
    digest = file_digest(path)
    reading = tools.reader.read_paths([path])
    title = tools.headline(reading) if tools.headline else None
    yield incident_entry(reading, path, tools.words, digest=digest, title=title)


def incident_entry(
    reading: LogReading,
    path: Path,
    words: WordLists,
    *,
    digest: str,
    title: Bilingual | None = None,
) -> Entry:
    """The entry of a log; without a `title` it is named by its file.

    Raises:
        InputError: the log tells of no timeout and no error.
    """
    if not any(event.kind in _ERROR_KINDS for event in reading.events):
        raise InputError(
            "tells of no timeout and no error",
            todo="import the log of the rank that failed",
            reason="no_trouble",
        )
    name, phrases = path.name, words.phrases
    title = title or _title(reading, name, phrases)
    text = f"{reading.words}\n{reading.excerpt}"
    sections = tuple(
        section_of("symptoms", heading, lines)
        for heading, lines in (
            ("", reading.words.splitlines()),
            (phrases.log.en, ["```", *_log(reading), "```"]),
        )
        if any(line.strip(" `") for line in lines)
    )
    entry = Entry(
        id=entry_id("incident", digest),
        kind="incident",
        language=detect_language(reading.words or reading.excerpt),
        title=title,
        project="",
        url="",
        date="",
        status="unverified",
        causes=(),
        fixes=(),
        tags=tags_of(name, text, words, reading.incident),
        signature=signature_of(reading),
        sections=sections,
        chunks=(),
        source_key=source_key(path),
        digest=digest,
        resolved=False,
    )
    return with_chunks(entry)


def _log(reading: LogReading) -> list[str]:
    """The lines of the excerpt; it cuts long ones anywhere, which is told by their length."""
    return [shortened(line, LINE_CHARS - 1) for line in reading.excerpt.splitlines()]


def _title(reading: LogReading, name: str, phrases: ImportPhrases) -> Bilingual:
    incident = reading.incident
    what = " ".join(part for part in (incident.backend.upper(), incident.op) if part)
    phrase = phrases.incident_timeout if incident.has_timeout and what else phrases.incident_error
    return Bilingual(
        zh=phrase.zh.format(what=what, name=name), en=phrase.en.format(what=what, name=name)
    )


LOG = Format(
    read=_entries,
    suffixes=frozenset({".log", ".out", ".err", ".stdout", ".stderr"}),
    recognises=lambda _head, _words: True,  # what is nothing else
)
