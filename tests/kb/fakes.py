"""Stands-in for the model and the tokenizer that keep their contracts, and a maker of entries."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.types.entries import CauseClaim, Chunk, Entry, Tags
from kb.types.knowledge import Bilingual

DIMENSION = 32


class WordEmbedder:
    """Unit rows: the sum of one fixed random direction a word; zeros for a text without words."""

    def __init__(self, name: str = "words@1", dimension: int = DIMENSION) -> None:
        self.name = name
        self.dimension = dimension
        self.encoded = 0

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for number, text in enumerate(texts):
            for word in set(re.findall(r"\w+", text.lower())):
                generator = np.random.default_rng(zlib.crc32(word.encode()))
                rows[number] += generator.standard_normal(self.dimension, dtype=np.float32)
            length = float(np.linalg.norm(rows[number]))
            if length:
                rows[number] /= length
        return rows

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of stored texts."""
        self.encoded += len(texts)
        return self.encode_queries(texts)


class SplitTokenizer:
    """Words in lower case; translations out of a small dictionary, weight a half."""

    def __init__(self, translations: dict[str, str] | None = None) -> None:
        self.translations = translations or {}

    def tokens(self, text: str) -> list[str]:
        """Tokens in order of the text."""
        return re.findall(r"\w+", text.lower())

    def expand(self, tokens: Iterable[str]) -> list[tuple[str, float]]:
        """The distinct tokens with weight 1, then their translations."""
        own = dict.fromkeys(tokens, 1.0)
        more = {
            self.translations[token]: 0.5
            for token in own
            if token in self.translations and self.translations[token] not in own
        }
        return [*own.items(), *more.items()]


def make_entry(entry_id: str, *texts: str, **fields: Any) -> Entry:
    """An entry with one English chunk a text; every other field may be given."""
    values: dict[str, Any] = {
        "id": entry_id,
        "kind": "thread",
        "language": "en",
        "title": Bilingual(zh=f"标题 {entry_id}", en=f"title {entry_id}"),
        "project": "owner/name",
        "url": f"https://example.org/{entry_id}",
        "date": "2024-06-18",
        "status": "reported",
        "causes": (CauseClaim(id="uneven-data", status="reported"),),
        "fixes": (),
        "tags": Tags(backend="nccl", ops=("ALLREDUCE",), stage="train"),
        "signature": (),
        "sections": (),
        "chunks": tuple(
            Chunk(
                id=f"{entry_id}#{number}",
                entry_id=entry_id,
                role="symptoms",
                language="en",
                text=text,
            )
            for number, text in enumerate(texts)
        ),
        "source_key": f"key/{entry_id}",
        "digest": f"digest of {entry_id} {texts}",
    }
    return Entry(**(values | fields))
