"""Which word of one language stands for which of the other: IBM model 1, and the lexicon mined.

p(target | source) by expectation maximisation over sentence pairs: each target word is generated
by one source word of its sentence or by the empty word.
Source: Brown et al. 1993, https://aclanthology.org/J93-2003/
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kb.text.language import has_han
from kb.text.tokenizer import Tokenizer
from kb.train.embedding.corpus import Pair

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ITERATIONS = 5
MAX_WORDS = 60  # of a sentence; longer pairs align badly and cost the square
EMPTY = 0  # source id of the empty word
MIN_COUNT = 5  # sentences with the word; below that a translation is chance
MIN_MEAN = 0.15  # geometric mean of both probabilities
TRANSLATIONS = 3  # of a word
HEADER = "# Chinese word, English word, p(English | Chinese), p(Chinese | English)\n"


Sentences = Sequence[Sequence[int]]
"""Word ids of sentences; ids start at 1."""


def translate(
    source_side: Sentences,
    target_side: Sentences,
    sources: int,
    targets: int,
    *,
    iterations: int = ITERATIONS,
) -> csr_matrix:
    """p(target | source) as a sparse matrix of shape (sources, targets); row 0: the empty word.

    Both sides have as many sentences, in the same order.
    """
    from scipy.sparse import csr_matrix

    source, target, group = _links(source_side, target_side)
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
    source_side: Sentences, target_side: Sentences
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Every possible link: source word, target word, and the number of its target occurrence."""
    sources, targets, groups = [], [], []
    first = 0
    for source_words, target_words in zip(source_side, target_side, strict=True):
        source = np.unique(np.array([EMPTY, *source_words], dtype=np.int64))
        target = np.unique(np.array(target_words, dtype=np.int64))
        if not 1 < len(source) <= MAX_WORDS or not 0 < len(target) <= MAX_WORDS:
            continue
        sources.append(np.tile(source, len(target)))
        targets.append(np.repeat(target, len(source)))
        groups.append(np.repeat(np.arange(first, first + len(target), dtype=np.int32), len(source)))
        first += len(target)
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(groups)


# --- the mined lexicon, for the lexical route ----------------------------------------------------


def mine(pairs: Sequence[Pair], tokenizer: Tokenizer) -> str:
    """The text of ``mined.tsv``: translations both directions agree on."""
    chinese = [[word for word in tokenizer.tokens(pair.left) if has_han(word)] for pair in pairs]
    english = [
        [word for word in tokenizer.tokens(pair.right) if re.fullmatch(r"[a-z]{2,}", word)]
        for pair in pairs
    ]
    left, right = _frequent(chinese), _frequent(english)
    chinese_ids = [[left[word] for word in sentence if word in left] for sentence in chinese]
    english_ids = [[right[word] for word in sentence if word in right] for sentence in english]
    sizes = len(left) + 1, len(right) + 1
    forward = translate(chinese_ids, english_ids, *sizes)
    backward = translate(english_ids, chinese_ids, *sizes[::-1])
    mean = forward.multiply(backward.T).sqrt().tocsr()
    names = ["", *right]
    lines = []
    for word, number in sorted(left.items()):
        row = mean[number]
        best = sorted(zip(-row.data, row.indices, strict=True))[:TRANSLATIONS]
        for negative, other in best:
            if -negative >= MIN_MEAN:
                to, back = forward[number, other], backward[other, number]
                lines.append(f"{word}\t{names[other]}\t{to:.3f}\t{back:.3f}\n")
    return HEADER + "".join(lines)


def _frequent(sentences: Sequence[Sequence[str]]) -> dict[str, int]:
    """Number of every word of at least `MIN_COUNT` sentences, from 1 in order of spelling."""
    counts = Counter(word for sentence in sentences for word in set(sentence))
    frequent = sorted(word for word, count in counts.items() if count >= MIN_COUNT)
    return {word: number for number, word in enumerate(frequent, start=1)}
