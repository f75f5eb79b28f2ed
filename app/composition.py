"""Where the faces get their parts: the only module of `app` that builds real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.pipeline import Ingestor
    from kb.chat.chat import Chat
    from kb.service import Service
    from kb.settings import Settings


def open_service(
    settings: Settings, *, notify: Callable[[str], None] | None = None, rebuild: bool = False
) -> Service:
    """Open the knowledge base, building it first where it is missing (told through `notify`)."""
    from kb import bootstrap

    return bootstrap.open_service(settings, notify=notify, rebuild=rebuild)


def open_chat(service: Service) -> Chat:
    """The chat over an open knowledge base, worded by a language model where one is set.

    Raises:
        SettingsError: what the settings say of the language model is wrong.
    """
    from kb.chat.chat import Chat

    if not service.settings.llm_base_url:
        return Chat(service)
    from app.llm import OpenAIModel

    return Chat(service, model=OpenAIModel(service.settings))


def ingestor_for(service: Service) -> Ingestor:
    """What imports files into an open knowledge base."""
    from ingest import pipeline

    return pipeline.ingestor_for(service)
