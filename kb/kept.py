"""Diagnoses kept under an id, for a link: the reading and its answer in both languages."""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kb.errors import NotFoundError, StoreError
from kb.text import detect_language
from kb.types import Diagnosis, Language, LogReading

if TYPE_CHECKING:
    from kb.service import Service

KEPT_FORMAT = 1
DAY_S = 86_400.0
ID_BYTES = 12  # 96 random bits: nobody guesses the link of another's log


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A diagnosis somebody may come back to. `created_s` is seconds since the epoch."""

    id: str
    format: int = KEPT_FORMAT
    created_s: float
    language: Language  # of the input
    reading: LogReading
    zh: Diagnosis
    en: Diagnosis

    def answer(self, language: Language) -> Diagnosis:
        """The answer in one language, as it was given then."""
        return self.zh if language == "zh" else self.en


def keep(
    service: Service,
    reading: LogReading,
    *,
    torch: str | None = None,
    known: Diagnosis | None = None,
) -> Kept:
    """Keep the diagnosis of a reading (which is redacted) for a link; on the disk on return.

    Those that have expired by now go. `known` is the reading's answer in its language, where the
    caller has it already.
    """
    answers = {} if known is None else {known.language: known}

    def answer(language: Language) -> Diagnosis:
        return answers.get(language) or service.answer(reading, language=language, torch=torch)

    kept = Kept(
        id=secrets.token_urlsafe(ID_BYTES),
        created_s=time.time(),
        language=detect_language(reading.description),
        reading=reading,
        zh=answer("zh"),
        en=answer("en"),
    )
    body = msgspec.json.encode(kept)
    service.store.records.put_diagnosis(
        kept.id, body, created_s=kept.created_s, forget_before_s=_oldest_s(service)
    )
    return kept


def _oldest_s(service: Service) -> float:
    """Diagnoses kept before this time (seconds since the epoch) have expired."""
    days = service.settings.kept_days
    return time.time() - days * DAY_S if days else -math.inf


def kept(service: Service, diagnosis_id: str) -> Kept:
    """The kept diagnosis of that id.

    Raises:
        NotFoundError: there is none, or it has expired.
        StoreError: it was kept by a program of another format.
    """
    try:
        record = service.store.records.get_diagnosis(diagnosis_id)
    except NotFoundError as error:
        raise NotFoundError(
            error.what,
            todo="check the link, or diagnose the log again",
            reason="no_diagnosis",
            values={"id": diagnosis_id},
        ) from error
    if record.created_s < _oldest_s(service):
        raise NotFoundError(
            f"diagnosis {diagnosis_id} has expired",
            todo="diagnose the log again",
            reason="diagnosis_expired",
            values={"id": diagnosis_id},
        )
    try:
        found = msgspec.json.decode(record.body, type=Kept)
    except msgspec.DecodeError as error:
        raise StoreError(
            f"diagnosis {diagnosis_id} cannot be read: {error}",
            todo="diagnose the log again",
            reason="diagnosis_unreadable",
            values={"id": diagnosis_id, "why": str(error)},
        ) from error
    if found.format != KEPT_FORMAT:
        raise NotFoundError(
            f"diagnosis {diagnosis_id} is of format {found.format}, this program reads "
            f"{KEPT_FORMAT}",
            todo="diagnose the log again",
            reason="diagnosis_format",
            values={"id": diagnosis_id, "format": str(found.format)},
        )
    return found


def drop(service: Service, diagnosis_id: str) -> None:
    """Delete a kept diagnosis; its link leads nowhere from now on.

    Raises:
        NotFoundError: there is none.
    """
    if not service.store.records.delete_diagnosis(diagnosis_id):
        raise NotFoundError(
            f"there is no diagnosis {diagnosis_id!r}",
            todo="check the link",
            reason="no_diagnosis",
            values={"id": diagnosis_id},
        )
