"""The rows before training: the teacher's meaning for English, aligned means for Chinese.

English piece: the teacher's vector of the piece, on the main axes of the teacher's sentence
vectors. Chinese piece: mean of the English pieces by translation probability. Both times the SIF
weight a / (a + p), which keeps common words small.
Source: Arora, Liang, Ma 2017, https://openreview.net/forum?id=SyK00v5xx
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kb.embed.training.alignment import SentencePair, translate
from kb.text import has_han

SIF = 1e-3  # a


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
    both = list(zip(chinese_of, english_of, strict=True))
    forward = translate([SentencePair(z, e) for z, e in both], size, size)
    backward = translate([SentencePair(e, z) for z, e in both], size, size)
    agreed = forward.multiply(backward.T).tocsr()
    means = agreed @ english
    rows[is_chinese] = _unit(means[is_chinese])
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
                rows[i] = _unit(rows[characters].mean(axis=0, keepdims=True))[0]


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
