"""Files to entries: saved pages, Markdown write-ups, threads and logs into the knowledge base."""

from __future__ import annotations

from ingest.pipeline import Ingestor, ingestor_for
from ingest.progress import progress_for
from ingest.types import NearDuplicate, Progress, Refusal, Report, Sink

__all__ = [
    "Ingestor",
    "NearDuplicate",
    "Progress",
    "Refusal",
    "Report",
    "Sink",
    "ingestor_for",
    "progress_for",
]
