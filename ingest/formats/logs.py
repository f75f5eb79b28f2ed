"""A log to an open incident: what the reader of logs saw in it, to be found again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ingest.files import file_digest, source_key
from ingest.sections import section_of
from ingest.tags import tags_of
from ingest.types import Format, ImportTools
from ingest.wordlists import ImportPhrases, WordLists
from ingest.writeups import entry_id, shortened, signature_of, with_chunks
from kb.errors import InputError
from kb.files.log_source import from_path
from kb.logs.excerpt import LINE_CHARS
from kb.logs.incident.hosts import culprit_places
from kb.logs.incident.merge import DATED_S
from kb.logs.transcript import transcript, transcript_digest
from kb.text.language import detect_language
from kb.text.redact import redact, redact_name
from kb.types.answer import LogSummary
from kb.types.entries import CauseClaim, Entry, RankPlace, Section
from kb.types.incident import LogReading
from kb.types.knowledge import Bilingual

INPUT_BYTES = 64 * 1024  # of a log that is stored as it stands; what people paste is shorter
_ERROR_KINDS = frozenset({"timeout", "root"})


def _entries(path: Path, tools: ImportTools) -> Iterator[Entry]:
    digest = file_digest(path)
    reading = tools.reader.read_paths([path])
    entry = incident_entry(
        reading,
        path.name,
        tools.words,
        digest=digest,
        key=source_key(path),
        summary=tools.summarise(reading) if tools.summarise else None,
        text=_whole_text(path),
    )
    yield replace(entry, log_name=redact_name(path.name))


def _whole_text(path: Path) -> str:
    """The text of a log of bounded size; empty for a longer one."""
    data = b""
    for chunk in from_path(path).chunks():
        data += chunk
        if len(data) > INPUT_BYTES:
            return ""
    return data.decode("utf-8", "replace")


def incident_entry(
    reading: LogReading,
    name: str,
    words: WordLists,
    *,
    digest: str,
    key: str,
    summary: LogSummary | None = None,
    text: str = "",
) -> Entry:
    """The entry of a log; without a `summary` it is named by its file and has no cause.

    `key` says where it came from. `text` is the log where it is short; of any other the lines are
    stored that the reading knows.

    Raises:
        InputError: the log tells of no timeout and no error.
    """
    if not any(event.kind in _ERROR_KINDS for event in reading.events):
        raise InputError(
            "tells of no timeout and no error",
            todo="import the log of the rank that failed",
            reason="no_trouble",
        )
    phrases = words.phrases
    title = summary.title if summary else _title(reading, redact_name(name), phrases)
    cause = summary.cause if summary else ""
    handed_in = redact(text)[0] if 0 < len(text) <= INPUT_BYTES else transcript(reading)
    sections = tuple(
        section_of("symptoms", heading, lines)
        for heading, lines in (
            ("", reading.words.splitlines()),
            (phrases.log.en, ["```", *_log(reading), "```"]),
        )
        if any(line.strip(" `") for line in lines)
    )
    language = detect_language(reading.words or reading.excerpt)
    whole = Section(role="input", title=phrases.input.en, text=handed_in, language=language)
    entry = Entry(
        id=entry_id("incident", digest),
        kind="incident",
        language=language,
        title=title,
        project="",
        url="",
        date=day_of(reading),
        status="unverified",
        causes=(CauseClaim(id=cause, status="unverified"),) if cause else (),
        fixes=(),
        tags=tags_of(name, f"{reading.words}\n{reading.excerpt}", words, reading.incident),
        signature=signature_of(reading),
        sections=(*sections, whole),
        chunks=(),
        source_key=key,
        digest=digest,
        reading_digests=(transcript_digest(reading),),
        resolved=False,
        culprits=tuple(map(_redacted, culprit_places(reading))),
    )
    return with_chunks(entry)


def _redacted(place: RankPlace) -> RankPlace:
    return replace(place, host=redact(place.host)[0])


def day_of(reading: LogReading) -> str:
    """The day of the first failure by the log's clock, empty where it prints no date."""
    times = (
        event.time_s
        for event in reading.events
        if event.kind in _ERROR_KINDS and event.time_s is not None and event.time_s > DATED_S
    )
    first = next(times, None)
    return "" if first is None else datetime.fromtimestamp(first, UTC).date().isoformat()


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
