"""Passages: the sentences of cases, notes, causes and fixes that answer a free question.

A score says how much of a question a passage speaks of: the mean of meaning and wording, as of the
notes, and a bonus where its source is like the incident. Meaning is the cosine of the embeddings,
wording the share of the question's words, by their rarity, that stand in the passage or the title
of its source.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kb.chat.sentences import sentences
from kb.embed.base import Embedder
from kb.knowledge.load import Knowledge
from kb.text.tokenizer import Tokenizer
from kb.types.knowledge import Fix
from kb.types.vocabulary import Language

ROLES = ("causes", "fixes", "practices", "background")  # sections of a case that explain
MIN_CHARS = 25  # of a passage; shorter ones lean on what stands around them
COMPARED = 200  # passages nearest in meaning whose words are compared
MIN_WORDING = 0.3  # share of the question's words that a passage has
MIN_WORDS = 2  # that a passage shares with the question
TELLING = 6.0  # summed rarity of those words: two rare ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A sentence, and what it stands in: a case, a note or a cause, by `kind` and `source`."""

    kind: str
    source: str
    title: str
    text: str
    cause: str = ""
    frameworks: tuple[str, ...] = ()
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageHit:
    """A passage and how much of a question it speaks of."""

    passage: Passage
    score: float


class PassageFinder:
    """Finds passages; what it needs of them is made with the first question of a language."""

    def __init__(
        self,
        knowledge: Knowledge,
        embedder: Embedder,
        tokenizer: Tokenizer,
        is_filler: Callable[[str], bool],
    ) -> None:
        """Find the passages of `knowledge`; words that are fillers tell nothing of a question."""
        self._knowledge = knowledge
        self._is_filler = is_filler
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._read = lru_cache(maxsize=2)(self._passages)

    def find(
        self, question: str, language: Language, bonus: Callable[[Passage], float]
    ) -> list[PassageHit]:
        """The passages that speak of the question, best first, ties by source and text.

        Args:
            question: the person's words.
            language: of the passages.
            bonus: what is added to the score of a passage for its source; minus infinity: none.
        """
        passages, vectors, words, rarity = self._read(language)
        if not passages or not question.strip():
            return []
        cosines = vectors @ self._embedder.encode_passages([question])[0]
        weights = {
            token: rarity.get(token, max(rarity.values()) / 2)
            for token in dict.fromkeys(self._tokenizer.tokens(question))
            if not self._is_filler(token)
        }
        whole = math.fsum(weights.values()) or 1.0
        hits = []
        for at in np.argsort(-cosines, kind="stable")[:COMPARED].tolist():
            shared = [value for token, value in weights.items() if token in words[at]]
            common = math.fsum(shared)
            if len(shared) < MIN_WORDS or common < max(TELLING, MIN_WORDING * whole):
                continue
            score = (float(cosines[at]) + common / whole) / 2 + bonus(passages[at])
            hits.append(PassageHit(passage=passages[at], score=score))
        hits.sort(key=lambda hit: (-hit.score, hit.passage.source, hit.passage.text))
        return hits

    def _passages(
        self, language: Language
    ) -> tuple[
        Sequence[Passage], np.typing.NDArray[np.float32], list[set[str]], Mapping[str, float]
    ]:
        passages = [one for one in self._all(language) if len(one.text) >= MIN_CHARS]
        vectors = self._embedder.encode_passages([passage.text for passage in passages])
        titles = {p.title: set(self._tokenizer.tokens(p.title)) for p in passages}
        words = [titles[p.title] | set(self._tokenizer.tokens(p.text)) for p in passages]
        having = Counter(token for one in words for token in one)
        number = len(passages)
        rarity = {
            token: math.log(1 + (number - count + 0.5) / (count + 0.5))
            for token, count in having.items()
        }
        return passages, vectors, words, rarity

    def _all(self, language: Language) -> Iterator[Passage]:
        knowledge = self._knowledge
        for case in knowledge.cases:
            for section in case.sections:
                if section.language == language and section.role in ROLES:
                    for text in sentences(" ".join(section.text.split())):
                        yield Passage(
                            kind="case",
                            source=case.id,
                            title=case.title.get(language),
                            text=text,
                            cause=case.causes[0].id if case.causes else "",
                            frameworks=case.tags.frameworks,
                            url=case.url,
                        )
        for note in knowledge.notes:
            prose = "".join(note.body.get(language).split("```")[::2])
            for text in sentences(" ".join(prose.split())):
                yield Passage(
                    kind="note",
                    source=note.id,
                    title=note.title.get(language),
                    text=text,
                    frameworks=note.frameworks,
                )
        for cause in knowledge.causes:
            for text in sentences(cause.definition.get(language)):
                yield Passage(
                    kind="cause",
                    source=cause.id,
                    title=cause.title.get(language),
                    text=text,
                    cause=cause.id,
                )
            for fix in cause.fixes:
                yield from _steps(fix, cause.id, language)


def _steps(fix: Fix, cause: str, language: Language) -> Iterator[Passage]:
    for step in fix.steps:
        yield Passage(
            kind="cause",
            source=cause,
            title=fix.title.get(language),
            text=step.get(language),
            cause=cause,
            frameworks=fix.applies_to.frameworks,
        )
