"""Finds the notes that answer a question, or none.

A score says how much of the question a note speaks of, in [0, 1]: the mean of meaning and wording.
Meaning is the cosine of the question and the nearest way of asking of the note, in either language.
Wording is the mean of how large a part of the question's words, by their rarity among the notes,
stands in the note, and of how much that is in all: of three words two may do so by chance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.embed.base import Embedder
from kb.index.base import Tokens
from kb.text.line_kind import read_lines
from kb.text.translations import GLOSSARY_WEIGHT
from kb.types.entries import NoteHit
from kb.types.knowledge import Note
from kb.types.vocabulary import Language, LineKind

# Set on half of data/golden/note_questions.jsonl, where 85 % of those that have a note reach it.
MIN_SCORE = 0.42  # below it a note does not answer
NEAR = 0.75  # of the best score: what comes behind it is shown from here on
MAX_NOTES = 3  # a person reads
MAX_CHARS = 2000  # of a question; what is longer is a log or a story
ASKED = 1.0  # weight of a word in a title, a way of asking, a setting or a framework
TOLD = 0.5  # of a word that stands in the body alone
UNKNOWN = 1.0  # rarity of a word of no note; a word of one note has 4.3, one of half of them 0.7
MUCH = 8.0  # summed rarity of which a note has told much: two rare words and a common one

_NUMBER = re.compile(r"[0-9.]+")


@dataclass(frozen=True, slots=True)
class _NoteWords:
    """What the notes are compared by.

    `phrases` are vectors of titles and ways of asking, `owners` the notes they are of, by place;
    `weights` tells for every token the weight it has in each note that has it.
    """

    phrases: NDArray[np.float32]
    owners: NDArray[np.int64]
    weights: Mapping[str, Mapping[int, float]]


class NoteFinder:
    """Compares questions with notes; what it needs of them is made on first use."""

    def __init__(self, notes: Sequence[Note], embedder: Embedder, tokenizer: Tokens) -> None:
        self._notes = tuple(notes)
        self._embedder = embedder
        self._tokenizer = tokenizer

    def find(self, text: str, *, language: Language, limit: int = MAX_NOTES) -> tuple[NoteHit, ...]:
        """The notes that answer `text`, best first, ties by id; empty where none does.

        Of several lines those count that a person wrote. `language` is the reader's.
        """
        ranked = self.rank(question_of(text))
        if not ranked or ranked[0][1] < MIN_SCORE:
            return ()
        least = NEAR * ranked[0][1]
        return tuple(
            NoteHit(note=note, score=score, language=language)
            for note, score in ranked[:limit]
            if score >= least
        )

    def rank(self, question: str) -> list[tuple[Note, float]]:
        """All notes with their scores in [0, 1], best first, ties by id."""
        if not self._notes or not question.strip():
            return []
        scores = (self._meaning(question) + self._wording(question)) / 2
        ranked = zip(self._notes, scores.tolist(), strict=True)
        return sorted(ranked, key=lambda pair: (-pair[1], pair[0].id))

    def _meaning(self, question: str) -> NDArray[np.float64]:
        """Cosine with the nearest phrase of each note, at least 0."""
        words = self._words
        best = np.zeros(len(self._notes))
        # as a text: the rows of questions were fitted to lead to cases
        vector = self._embedder.encode_passages([question])[0]
        np.maximum.at(best, words.owners, words.phrases @ vector)
        return best

    def _wording(self, question: str) -> NDArray[np.float64]:
        """How much of the question's words stands in each note, in [0, 1]."""
        common = np.zeros(len(self._notes))
        whole = 0.0
        for token in dict.fromkeys(self._tokenizer.tokens(question)):
            there = self._notes_with(token)
            if there:
                rarity = math.log(1 + (len(self._notes) - len(there) + 0.5) / (len(there) + 0.5))
                for place, weight in there.items():
                    common[place] += rarity * weight
            else:
                rarity = 0.0 if _NUMBER.fullmatch(token) else UNKNOWN
            whole += rarity
        share = common / whole if whole else common
        return (share + 1 - np.exp(-common / MUCH)) / 2

    def _notes_with(self, token: str) -> dict[int, float]:
        """The notes that have a token or a translation of it, by place, with its weight there."""
        there: dict[int, float] = {}
        for form, trust in self._tokenizer.expand([token]):
            for place, weight in self._words.weights.get(form, {}).items():
                there[place] = max(
                    there.get(place, 0.0), weight * min(1.0, trust / GLOSSARY_WEIGHT)
                )
        return there

    @cached_property
    def _words(self) -> _NoteWords:
        phrases: list[str] = []
        owners: list[int] = []
        weights: dict[str, dict[int, float]] = {}
        for place, note in enumerate(self._notes):
            asked = [note.title.zh, note.title.en, *note.questions.zh, *note.questions.en]
            phrases += asked
            owners += [place] * len(asked)
            told = [note.body.zh, note.body.en]
            names = [*note.settings, *note.frameworks]
            for texts, weight in ((told, TOLD), ([*asked, *names], ASKED)):
                for token in self._tokenizer.tokens("\n".join(texts)):
                    weights.setdefault(token, {})[place] = weight
        return _NoteWords(
            self._embedder.encode_passages(phrases), np.array(owners, dtype=np.int64), weights
        )


def question_of(text: str) -> str:
    """What a person asks in `text`: the lines that are no program's output, or all of one line."""
    if "\n" not in text.strip():
        return text[:MAX_CHARS]
    lines = read_lines(text)
    own = [line.text for line in lines if line.kind in (LineKind.PROSE, LineKind.MARKUP)]
    return "\n".join(own)[:MAX_CHARS]
