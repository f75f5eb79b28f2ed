"""Diagnoses saved under an id, for a link: one verdict with its answer in both languages."""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from kb.errors import NotFoundError, StoreError
from kb.text.language import answer_language
from kb.types.answer import Diagnosis
from kb.types.incident import LogReading
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.diagnose.verdict import Verdict
    from kb.service import Service

SAVED_FORMAT = 2
DAY_S = 86_400.0
ID_BYTES = 12  # 96 random bits: nobody guesses the link of another's log


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDiagnosis:
    """A diagnosis somebody may come back to. `created_s` is seconds since the epoch.

    Reading and answers are those of one verdict: `save_diagnosis` takes nothing else.
    """

    id: str
    format: int = SAVED_FORMAT
    created_s: float
    language: Language  # of the input
    reading: LogReading
    zh: Diagnosis
    en: Diagnosis

    def answer(self, language: Language) -> Diagnosis:
        """The answer in one language, as it was given then."""
        return self.zh if language == "zh" else self.en


def save_diagnosis(service: Service, verdict: Verdict) -> SavedDiagnosis:
    """Save a verdict (of a redacted reading) for a link; on the disk on return.

    Those that have expired by now go.
    """
    reading = verdict.reading
    saved = SavedDiagnosis(
        id=secrets.token_urlsafe(ID_BYTES),
        created_s=time.time(),
        language=answer_language(None, service.settings.lang, reading.words),
        reading=reading,
        zh=service.render(verdict, language="zh"),
        en=service.render(verdict, language="en"),
    )
    service.store.records.put_diagnosis(
        saved.id,
        msgspec.json.encode(saved),
        created_s=saved.created_s,
        forget_before_s=_oldest_s(service),
    )
    return saved


def _oldest_s(service: Service) -> float:
    """Diagnoses saved before this time (seconds since the epoch) have expired."""
    days = service.settings.kept_days
    return time.time() - days * DAY_S if days else -math.inf


def load_diagnosis(service: Service, diagnosis_id: str) -> SavedDiagnosis:
    """The saved diagnosis of that id.

    Raises:
        NotFoundError: there is none, it has expired, or a program of another format saved it.
        StoreError: it cannot be read.
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
        saved = msgspec.json.decode(record.body, type=SavedDiagnosis)
    except msgspec.DecodeError as error:
        raise StoreError(
            f"diagnosis {diagnosis_id} cannot be read: {error}",
            todo="diagnose the log again",
            reason="diagnosis_unreadable",
            values={"id": diagnosis_id, "why": str(error)},
        ) from error
    if saved.format != SAVED_FORMAT:
        raise NotFoundError(
            f"diagnosis {diagnosis_id} is of format {saved.format}, this program reads "
            f"{SAVED_FORMAT}",
            todo="diagnose the log again",
            reason="diagnosis_format",
            values={"id": diagnosis_id, "format": str(saved.format)},
        )
    return saved


def delete_diagnosis(service: Service, diagnosis_id: str) -> None:
    """Delete a saved diagnosis; its link leads nowhere from now on.

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
