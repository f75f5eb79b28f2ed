"""What a shown score means, and why an entry is like a question.

A score says how much of what identifies the question is found in the entry, in [0, 1]. It is a
fixed function of the two texts and of how rare their words are in the knowledge base; which other
entries were found does not move it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.index.base import Scores, signature_tokens
from kb.store import EntryHead
from kb.types.entries import Chunk, Entry, Hit, Section
from kb.types.vocabulary import Language

Numeric = NDArray[np.floating[Any]]

# Fitted on 230 real posts and their own causes and fixes: there this order has MRR .66, min-max
# fusion .67, reciprocal ranks .61 (intervals of .05), and only this score keeps its meaning.
COSINE_NONE = 0.3  # median cosine of two texts of this field
COSINE_FULL = 1.0  # the same text
WORDS_SCALE = 0.2  # share of the reachable BM25 that the right entry has in the median
SIGNATURE_COMMON = 3.0  # idf of a name one in twenty entries has: what every watchdog prints
SIGNATURE_RARE = 2.0  # summed idf above the common at which a matched line counts half
SIGNATURE_NAMES = 3  # names of a line that must be asked: one or two are words, not a log line
SIMILAR_ENOUGH = 0.35  # 20 questions of other fields stay below, 20 of this one reach it
SNIPPET_CHARACTERS = 280  # two lines of a terminal
LINES_CACHED = 4096  # signature lines whose tokens are kept, 2 KB each
WHY_TERMS = 5  # matched words named


def text_similarity(cosine: Numeric, words: Numeric) -> Scores:
    """Likeness of question and chunks in [0, 1]: the mean of meaning and wording.

    Args:
        cosine: of question and chunk, in [-1, 1].
        words: BM25 as a share of what the question's rarest words could reach, 0 and more.
    """
    meaning = np.clip((cosine - COSINE_NONE) / (COSINE_FULL - COSINE_NONE), 0, 1)
    wording = 1 - np.exp(-words / WORDS_SCALE)
    mean: Scores = ((meaning + wording) / 2).astype(np.float32)
    return mean


def similarity(text: float, signature: float) -> float:
    """The shown score in [0, 1]: a matched log line closes part of what the text leaves open."""
    return 1 - (1 - text) * (1 - signature)


def signature_strength(
    lines: Sequence[str], names: frozenset[str], idf: Mapping[str, float]
) -> tuple[float, tuple[str, ...]]:
    """How far one of an entry's log lines stands in the question.

    The share of the line's weight that was asked, times how rare that is: a line every log has
    says little even when all of it is there.

    Args:
        lines: the entry's signature.
        names: identifying tokens of the question.
        idf: rarity of every token among signatures; asked for tokens of lines that match alone.

    Returns:
        Strength in [0, 1) of the best line and its matched tokens, the rarest first.
    """
    best: tuple[float, tuple[str, ...]] = (0.0, ())
    for line in lines:
        tokens = names_of(line)
        matched = names & tokens
        if len(matched) < SIGNATURE_NAMES:
            continue
        weight = _uncommon(matched, idf)
        if not weight:
            continue
        whole = _uncommon(tokens, idf)
        strength = weight / whole * weight / (weight + SIGNATURE_RARE)
        if strength > best[0]:
            ranked = sorted(matched, key=lambda token: (-idf[token], token))
            best = (strength, tuple(ranked))
    return best


def _uncommon(tokens: Collection[str], idf: Mapping[str, float]) -> float:
    """Summed rarity of tokens above what every watchdog prints."""
    worth = [idf[token] - SIGNATURE_COMMON for token in tokens]
    return math.fsum([value for value in worth if value > 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionWords:
    """What of a question is compared with an entry.

    Attributes:
        names: identifying tokens of its log lines.
        weights: weight times idf of every token and translation searched for, the largest
            first, ties by token.
        own: the tokens that are its own words, not translations.
        language: the language it was asked in.
    """

    names: frozenset[str]
    weights: Mapping[str, float]
    own: frozenset[str]
    language: Language


def why(
    question: QuestionWords,
    head: EntryHead,
    language: Language,
    matched: Sequence[str],
    words: frozenset[str],
    *,
    salient: Callable[[str], str] = str,
) -> tuple[str, ...]:
    """What entry and question share, as ``kind:value``, the weightiest kinds first.

    Kinds: ``line`` (file and line of the source), ``op``, ``signature`` (rarest name of a matched
    log line), ``term`` (a word of the question), ``translation`` (a word's counterpart), and
    ``language`` with ``same`` or ``cross``.

    Args:
        question: its words.
        head: the entry.
        language: of the chunk that was found.
        matched: tokens of the matched log line, the rarest first.
        words: tokens of the chunk.
        salient: the term shown for a token; empty where it is not worth showing
            (`kb.text.salient_terms`).
    """
    reasons = [f"line:{token}" for token in matched if ":" in token]
    reasons += [f"op:{op}" for op in head.tags.ops if op.lower() in question.names]
    names = (term for token in matched if (term := salient(token)))
    reasons += [f"signature:{term}" for term in itertools.islice(names, 1)]
    shown: list[str] = []
    project = _project_words(head.project)
    for token in question.weights:
        if token not in words:
            continue
        term = token if token in project else salient(token)
        # an identifier says all its parts say
        if term and not any(token in whole for whole in shown):
            shown.append(term)
            reasons.append(f"{'term' if token in question.own else 'translation'}:{term}")
        if len(shown) == WHY_TERMS:
            break
    reasons.append(f"language:{'same' if language == question.language else 'cross'}")
    return tuple(dict.fromkeys(reasons))


def _project_words(project: str) -> list[str]:
    words = project.lower().replace("_", "-").split("/")[-1].split("-")
    return [word for word in words if len(word) > 1]


def snippet(
    text: str, weights: Mapping[str, float], words: Callable[[str], frozenset[str]]
) -> tuple[str, frozenset[str]]:
    """The part of `text` that has most of what was asked, and the tokens of all of it.

    The part begins with the line of the largest weight, the first of equals, and is cut to
    `SNIPPET_CHARACTERS`. `words` gives the tokens of a line.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cut = [words(line) for line in lines]
    if not lines:
        return "", frozenset()
    asked = weights.keys()
    worth = [math.fsum([weights[token] for token in line & asked]) for line in cut]
    start = max(range(len(lines)), key=lambda number: (worth[number], -number))
    return cut_snippet(" ".join(lines[start:])), frozenset().union(*cut)


def cut_snippet(text: str) -> str:
    """A text of at most `SNIPPET_CHARACTERS`."""
    if len(text) <= SNIPPET_CHARACTERS:
        return text
    return text[: SNIPPET_CHARACTERS - 1].rstrip() + "…"


def snippet_for_reader(hit: Hit, entry: Entry | None, language: Language) -> Hit:
    """The hit with the same section in the reader's language, where that of the entry is another.

    Entries of one language keep what matched.
    """
    if entry is None or hit.snippet_language in (None, language):
        return hit
    ours = [part for part in entry.sections if part.language == language and part.text.strip()]
    if not ours:
        return hit
    same: Section | Chunk = next((part for part in ours if part.role == hit.role), ours[0])
    if same.role != hit.role:  # claims are no section of their own
        same = next(
            (c for c in entry.chunks if c.role == hit.role and c.language == language), same
        )
    shown = cut_snippet(" ".join(same.text.split()))
    return replace(hit, snippet=shown, role=same.role, snippet_language=language)


@lru_cache(maxsize=LINES_CACHED)
def names_of(line: str) -> frozenset[str]:
    """The identifying tokens of an entry's log line."""
    return frozenset(signature_tokens(line))
