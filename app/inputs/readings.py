"""The incident that a reading tells of, as it would be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.logs.transcript import transcript_digest
from kb.types.entries import Entry

if TYPE_CHECKING:
    from kb.service import Service
    from kb.types.incident import LogReading


def incident_of(service: Service, reading: LogReading, *, name: str, text: str = "") -> Entry:
    """The incident of a reading, stored nowhere; `text` is the log where it is at hand.

    Raises:
        InputError: it tells of no timeout and no error.
    """
    from ingest.formats.logs import incident_entry
    from ingest.wordlists import word_lists

    return incident_entry(
        reading,
        name,
        word_lists(service.settings.data),
        digest=transcript_digest(reading),
        key="",
        summary=service.summarise(reading),
        text=text,
    )
