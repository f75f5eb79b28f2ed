"""Where the faces get their parts: the only module of `app` that builds real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.pipeline import Ingestor
    from kb.service import Service
    from kb.settings import Settings


def open_service(
    settings: Settings, *, notify: Callable[[str], None] | None = None, rebuild: bool = False
) -> Service:
    """Open the knowledge base, building it first where it is missing (told through `notify`)."""
    from kb import bootstrap

    return bootstrap.open_service(settings, notify=notify, rebuild=rebuild)


def ingestor_for(service: Service) -> Ingestor:
    """What imports files into an open knowledge base."""
    from ingest import pipeline

    return pipeline.ingestor_for(service)
