"""Which topics a sentence states something of, and how: what the fitted models make of it.

The expressions of data/topics.yaml and the rules of `kb.text.sentence` know the words somebody
thought of. Two linear models, fitted by `kb.train.statements` on thousands of labelled sentences,
see what these find as features beside the words and the meaning of the sentence, and decide: one
which topics are spoken of, the other how each is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.linear_model import load_model
from kb.diagnose.text_scorer import TextScorer, text_features
from kb.errors import DataError
from kb.types.vocabulary import Polarity

if TYPE_CHECKING:
    from kb.embed import Embedder

TOPICS, POLARITIES = "statements/topics", "statements/polarities"  # of data/: the fitted models
# Nats from which a topic is spoken of: where the rules hear something of it, and where no words of
# it are known. Where they hear nothing of its name it is only named: most sentences of a report
# describe the set-up. Chosen on sentences left out of the fit (`kb.train.statements`).
HEARD, UNNAMED = -0.8, 0.8
FEW_CHARS = 2  # a sentence of so few says nothing
NOTHING = "none"  # what the rules make of a name of which they hear nothing
_CLAUSE = re.compile(
    r"[,;:，；：。.!?！？]|\b(?:but|though|while|yet|and)\b|但|而|不过|可是|却", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The first words of a sentence that name a topic, and what the rules make of them.

    `start` and `end` count from the beginning of the sentence.
    """

    start: int
    end: int
    standing: str
    polarity: str = NOTHING


Namings = Mapping[str, Naming]
"""By the id of the topic."""


def topic_features(text: str, namings: Namings) -> Iterator[str]:
    """What the model of topics sees of a sentence."""
    yield from text_features(text)
    for topic, naming in namings.items():
        yield f"N:{topic}"
        yield f"N:{topic}:{naming.standing}"
        yield f"R:{topic}:{naming.polarity != NOTHING}"


def polarity_features(text: str, topic: str, namings: Namings) -> Iterator[str]:
    """What the model of polarities sees of a sentence that speaks of `topic`."""
    yield from text_features(text)
    yield f"T:{topic}"
    if topic not in namings:
        yield "R:absent"
    else:
        naming = namings[topic]
        yield f"R:{naming.polarity}"
        yield f"R:{naming.polarity}:{naming.standing}"
        yield f"S:{naming.standing}"
        left, right = _clause(text, naming.start, naming.end)
        around = f"{text[left : naming.start]} @ {text[naming.end : right]}"
        yield from (f"c:{feature}" for feature in text_features(around))
        yield from (f"m:{word}" for word in text[naming.start : naming.end].lower().split())
    others = [naming.polarity for other, naming in namings.items() if other != topic]
    yield f"o:{min(len(others), 3)}"
    yield from (f"O:{polarity}" for polarity in others)


def _clause(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the clause around ``text[start:end]`` begins and ends."""
    left = 0
    for mark in _CLAUSE.finditer(text, 0, start):
        left = mark.end()
    after = _CLAUSE.search(text, end)
    return left, after.start() if after else len(text)


def as_seen(text: str, normalise: Callable[[str], str]) -> str:
    """A sentence as the features see it; as long as it was, so that places stay."""
    plain = normalise(text)
    return plain if len(plain) == len(text) else text


def _is_heard(naming: Naming | None, nats: float) -> bool:
    """Whether the rules and the model together hear something of a topic."""
    if naming is None:
        return nats >= UNNAMED
    return naming.polarity != NOTHING and nats >= HEARD


class StatementModel:
    """The fitted models; made once, used from any thread."""

    def __init__(
        self, topics: TextScorer, polarities: TextScorer, normalise: Callable[[str], str]
    ) -> None:
        """Read with both models.

        Raises:
            DataError: a polarity is unknown.
        """
        try:
            self._polarities = tuple(Polarity(name) for name in polarities.classes)
        except ValueError as error:
            raise DataError(
                f"{POLARITIES}: {error}",
                todo="run python -m kb.train.statements, or reinstall the package",
            ) from error
        self._topics, self._how = topics, polarities
        self._normalise = normalise

    @classmethod
    def load(
        cls, data: Path, embedder: Embedder, normalise: Callable[[str], str]
    ) -> StatementModel:
        """The models of ``<data>/statements``.

        Raises:
            DataError: a file is missing or damaged, or was fitted for another embedding.
        """
        topics, polarities = (
            TextScorer(load_model(data / folder), embedder, normalise, folder)
            for folder in (TOPICS, POLARITIES)
        )
        return cls(topics, polarities, normalise)

    def read(self, sentences: Sequence[str], named: Sequence[Namings]) -> list[dict[str, Polarity]]:
        """What each sentence states, by topic; `named` are the topics its words name."""
        meanings = self._topics.embedder.encode_passages(sentences)
        return [
            self._stated(as_seen(text, self._normalise), meaning, namings)
            for text, meaning, namings in zip(sentences, meanings, named, strict=True)
        ]

    def _stated(
        self, text: str, meaning: NDArray[np.float32], namings: Namings
    ) -> dict[str, Polarity]:
        if len(text.strip()) <= FEW_CHARS:
            return {}
        nats = self._topics.score(topic_features(text, namings), meaning)
        read = {}
        for number in np.flatnonzero(nats >= min(HEARD, UNNAMED)):
            topic = self._topics.classes[number]
            if not _is_heard(namings.get(topic), float(nats[number])):
                continue
            how = self._how.score(polarity_features(text, topic, namings), meaning)
            read[topic] = self._polarities[int(how.argmax())]
        return read
