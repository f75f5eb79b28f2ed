"""The mined lexicon: words and their translations, for the lexical route."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from kb.embed.training.alignment import SentencePair, translate
from kb.embed.training.corpus import Pair
from kb.text import Tokenizer, has_han

MIN_COUNT = 5  # sentences with the word; below that a translation is chance
MIN_MEAN = 0.15  # geometric mean of both probabilities
TRANSLATIONS = 3  # kept of a word
HEADER = "# Chinese word, English word, p(English | Chinese), p(Chinese | English)\n"


def mine(pairs: Sequence[Pair], tokenizer: Tokenizer) -> str:
    """The text of ``mined.tsv``: translations both directions agree on."""
    chinese = [[word for word in tokenizer.tokens(pair.left) if has_han(word)] for pair in pairs]
    english = [
        [word for word in tokenizer.tokens(pair.right) if re.fullmatch(r"[a-z]{2,}", word)]
        for pair in pairs
    ]
    left, right = _frequent(chinese), _frequent(english)
    sentences = [
        ([left[w] for w in one if w in left], [right[w] for w in other if w in right])
        for one, other in zip(chinese, english, strict=True)
    ]
    sizes = len(left) + 1, len(right) + 1
    forward = translate([SentencePair(z, e) for z, e in sentences], *sizes)
    backward = translate([SentencePair(e, z) for z, e in sentences], *sizes[::-1])
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
    kept = sorted(word for word, count in counts.items() if count >= MIN_COUNT)
    return {word: number for number, word in enumerate(kept, start=1)}
