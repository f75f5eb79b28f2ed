"""IBM model 1: which word of one language stands for which of the other.

p(target | source) by expectation maximisation over sentence pairs: each target word is generated
by one source word of its sentence or by the empty word.
Source: Brown et al. 1993, https://aclanthology.org/J93-2003/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

ITERATIONS = 5
MAX_WORDS = 60  # of a sentence; longer pairs align badly and cost the square
EMPTY = 0  # source id of the empty word


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Word ids of a source and a target sentence; ids start at 1."""

    source: Sequence[int]
    target: Sequence[int]


def translate(
    pairs: Sequence[SentencePair], sources: int, targets: int, *, iterations: int = ITERATIONS
) -> csr_matrix:
    """p(target | source) as a sparse matrix of shape (sources, targets); row 0: the empty word."""
    source, target, group = _links(pairs)
    keys, link = np.unique(source * targets + target, return_inverse=True)
    link = link.astype(np.int32)
    key_source = keys // targets
    probability = np.ones(len(keys))
    for _ in range(iterations):
        share = probability[link]
        share /= np.bincount(group, share)[group]
        count = np.bincount(link, share, minlength=len(keys))
        probability = count / np.bincount(key_source, count, minlength=sources)[key_source]
    shape = (sources, targets)
    return csr_matrix((probability.astype(np.float32), (key_source, keys % targets)), shape)


def _links(
    pairs: Sequence[SentencePair],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Every possible link: source word, target word, and the number of its target occurrence."""
    sources, targets, groups = [], [], []
    first = 0
    for pair in pairs:
        source = np.unique(np.array([EMPTY, *pair.source], dtype=np.int64))
        target = np.unique(np.array(pair.target, dtype=np.int64))
        if not 1 < len(source) <= MAX_WORDS or not 0 < len(target) <= MAX_WORDS:
            continue
        sources.append(np.tile(source, len(target)))
        targets.append(np.repeat(target, len(source)))
        groups.append(np.repeat(np.arange(first, first + len(target), dtype=np.int32), len(source)))
        first += len(target)
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(groups)
