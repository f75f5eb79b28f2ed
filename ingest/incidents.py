"""A log to an open incident: what the reader of logs found in it, kept to be found again."""

from __future__ import annotations

from ingest.phrases import Phrases
from ingest.tags import tags_of
from ingest.types import Part
from ingest.wordlists import WordLists
from ingest.writeups import entry_id, sections_of, shortened, signature_of, with_chunks
from kb.errors import InputError
from kb.logs.excerpt import LINE_CHARS
from kb.text import detect_language
from kb.types import Bilingual, Entry, LogReading

_TELLING = frozenset({"timeout", "root"})


def incident_entry(
    reading: LogReading, *, name: str, key: str, digest: str, words: WordLists, phrases: Phrases
) -> Entry:
    """The entry of a log; `name` is the file's name, for its title.

    Raises:
        InputError: the log tells of no timeout and no error.
    """
    if not any(event.kind in _TELLING for event in reading.events):
        raise InputError(
            "tells of no timeout and no error",
            todo="import the log of the rank that failed",
            reason="no_trouble",
        )
    title = _title(reading, name, phrases)
    text = f"{reading.description}\n{reading.excerpt}"
    parts = [
        Part(role="symptoms", title=heading, lines=tuple(lines))
        for heading, lines in (
            ("", reading.description.splitlines()),
            (phrases.log.en, ["```", *_log(reading), "```"]),
        )
        if any(line.strip(" `") for line in lines)
    ]
    entry = Entry(
        id=entry_id("incident", digest),
        kind="incident",
        language=detect_language(reading.description or reading.excerpt),
        title=title,
        project="",
        url="",
        date="",
        status="unverified",
        causes=(),
        fixes=(),
        tags=tags_of(name, text, words, reading.incident),
        signature=signature_of(reading),
        sections=sections_of(parts),
        chunks=(),
        source_key=key,
        digest=digest,
        resolved=False,
    )
    return with_chunks(entry)


def _log(reading: LogReading) -> list[str]:
    """The lines of the excerpt; it cuts long ones anywhere, which is told by their length."""
    return [shortened(line, LINE_CHARS - 1) for line in reading.excerpt.splitlines()]


def _title(reading: LogReading, name: str, phrases: Phrases) -> Bilingual:
    incident = reading.incident
    what = " ".join(part for part in (incident.backend.upper(), incident.op) if part)
    phrase = phrases.incident_timeout if incident.has_timeout and what else phrases.incident_error
    return Bilingual(
        zh=phrase.zh.format(what=what, name=name), en=phrase.en.format(what=what, name=name)
    )
