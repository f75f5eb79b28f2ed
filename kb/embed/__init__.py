"""Embedding models: the embedded bilingual one, or any sentence-transformers model by setting."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from kb.embed.base import Embedder
from kb.settings import Settings

__all__ = ["Embedder", "embedded_model", "load_embedder"]


def load_embedder(settings: Settings) -> Embedder:
    """The model the settings name; without a name the embedded one of ``<data>/model``.

    Raises:
        DataError: the embedded model is missing, damaged or of another format.
        MissingExtraError: a model is named and sentence-transformers is not installed.
        SettingsError: the named model cannot be loaded.
    """
    if settings.model:
        from kb.embed.sentence import SentenceTransformerEmbedder

        return SentenceTransformerEmbedder(
            settings.model,
            query_prefix=settings.model_query_prefix,
            passage_prefix=settings.model_passage_prefix,
            batch_size=settings.model_batch_size,
            device=settings.model_device,
        )
    return embedded_model(settings.data)


@lru_cache(maxsize=4)
def embedded_model(data: Path) -> Embedder:
    """The embedded model of ``<data>/model``, read once.

    Raises:
        DataError: it is missing, damaged or of another format.
    """
    from kb.embed.static import StaticEmbedder

    return StaticEmbedder.load(data / "model")
