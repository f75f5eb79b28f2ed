"""The few words ingest writes by itself, from `data/ingest/phrases.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ingest.wordlists import FOLDER
from kb.knowledge import read_yaml
from kb.types import Bilingual


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """Titles of what has none; ``{what}`` and ``{name}`` are filled in."""

    incident_timeout: Bilingual
    incident_error: Bilingual
    log: Bilingual
    comment: Bilingual


def load_phrases(data: Path) -> Phrases:
    """Read `data/ingest/phrases.yaml`.

    Raises:
        DataError: it is missing or breaks its schema.
    """
    return read_yaml(data / FOLDER / "phrases.yaml", Phrases)
