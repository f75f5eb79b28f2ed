"""Files to entries: saved pages, Markdown write-ups, threads and logs into the knowledge base."""

from __future__ import annotations

from ingest.pipeline import Ingestor
from ingest.types import ImportReport, NearDuplicate, Refusal, Sink

__all__ = ["ImportReport", "Ingestor", "NearDuplicate", "Refusal", "Sink"]
