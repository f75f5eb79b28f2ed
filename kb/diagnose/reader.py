"""The learned reader: what descriptions like this one were, by its words and by their meaning.

A multinomial linear model over the words of a description and over the embedding of its sentences,
fitted on thousands of reports (`kb.train.reader`). Linear, so each sentence has a share in every
cause, and the shares add up to the whole: what moved a cause can be quoted. What any sentence says
by chance is taken off its share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kb.diagnose.linear_model import REPAIR, ROWS, Floats, LinearModel
from kb.diagnose.signals import Signal
from kb.errors import DataError
from kb.text.polarity import Sentences
from kb.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from kb.embed import Embedder

FOLDER = "reader"  # of data/
MEANING = 2.0  # length of the embedding beside the words', which is 1
FEW_WORDS = 8.0  # length of words that says half as much as many would: two or three words
FEW_CHARS = 60  # the same of the meaning
MAX_SENTENCES = 120
FLOOR = 0.35  # nats that any sentence has by chance; a greeting has .31 in the median, others .63
TELLING = 0.6  # of what the most telling sentence says alone: one that says less is left out
QUOTED = 3  # sentences that are signals of their own; the others are one together
MAX_QUOTE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceShare:
    """A sentence, its line from 1, and what it adds to each cause, in nats around their mean."""

    text: str
    line: int
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A description as the model sees it.

    Attributes:
        places: text and line of every sentence.
        tokens: the words of each sentence that stand in none before it.
        meaning: embedding of each sentence, shape (sentences, dimension); the length of their sum
            is 1 for a long description, less for a short one.
    """

    places: tuple[tuple[str, int], ...]
    tokens: tuple[tuple[str, ...], ...]
    meaning: Floats

    @classmethod
    def whole(
        cls,
        places: tuple[tuple[str, int], ...],
        tokens: tuple[tuple[str, ...], ...],
        meaning: Floats,
    ) -> Description:
        """A description of these sentences, whatever the length of `meaning`."""
        described = cls(places=places, tokens=tokens, meaning=meaning)
        scale = described.meaning_scale(range(len(places)))
        return cls(places=places, tokens=tokens, meaning=meaning * scale)

    def meaning_scale(self, numbers: Sequence[int]) -> float:
        """What `meaning` is multiplied with where only the sentences `numbers` are there."""
        chosen = list(numbers)
        norm = float(np.linalg.norm(self.meaning[chosen].sum(axis=0)))
        chars = sum(len(self.places[number][0]) for number in chosen)
        return math.sqrt(chars / (chars + FEW_CHARS)) / norm if norm else 1.0


def describe(words: str, embedder: Embedder, tokenizer: Tokenizer) -> Description:
    """Cut a person's words into sentences, tokens and vectors."""
    sentences = Sentences(words)
    places: list[tuple[str, int]] = []
    tokens: list[tuple[str, ...]] = []
    known: set[str] = set()
    for number in range(min(len(sentences), MAX_SENTENCES)):
        start, end = sentences.span(number)
        text = words[start:end].strip()
        if not text:
            continue
        new = [token for token in dict.fromkeys(tokenizer.tokens(text)) if token not in known]
        known.update(new)
        places.append((text, words.count("\n", 0, start) + 1))
        tokens.append(tuple(new))
    vectors = embedder.encode_passages([text for text, _ in places])
    lengths = np.sqrt([[len(text)] for text, _ in places]).reshape(-1, 1).astype(np.float32)
    return Description.whole(tuple(places), tuple(tokens), vectors * lengths)


def words_norm(squares: float) -> float:
    """What the words of a description are divided by, from the sum of their squared weights.

    Few words say less than many.
    """
    return math.sqrt(squares + FEW_WORDS**2)


class Reader:
    """Reads descriptions with a fitted model; made once, used from any thread."""

    def __init__(self, model: LinearModel, embedder: Embedder, tokenizer: Tokenizer) -> None:
        """Read with `model`, whose meaning is that of `embedder`.

        Raises:
            DataError: the model was fitted for an embedding of another dimension.
        """
        if len(model.rows) != len(model.tokens) + embedder.dimension:
            raise DataError(f"{FOLDER}/{ROWS}: made for another embedding", todo=REPAIR)
        self.model = model
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._row = {token: number for number, token in enumerate(model.tokens)}
        self._meaning = model.rows[len(model.tokens) :] * MEANING

    def read(self, words: str) -> tuple[SentenceShare, ...]:
        """What each sentence adds; none where no word is known."""
        if not words.strip() or not self.model.tokens:
            return ()
        described = describe(words, self._embedder, self._tokenizer)
        parts = _Parts(described, self.model, self._row, self._meaning)
        # What tells little takes no part: a greeting does not weaken what stands beside it.
        alone = [
            float(np.abs(parts.shares([number])).max()) for number in range(len(described.places))
        ]
        most_telling = max(alone, default=0.0)
        telling = [n for n, one in enumerate(alone) if one >= TELLING * most_telling]
        shares = parts.shares(telling)
        most = np.abs(shares).max(axis=1, keepdims=True, initial=0.0)
        shares *= np.maximum(0.0, 1 - FLOOR / np.maximum(most, FLOOR))
        return tuple(
            SentenceShare(
                text=described.places[number][0],
                line=described.places[number][1],
                weights=dict(zip(self.model.causes, map(float, share), strict=True)),
            )
            for number, share in zip(telling, shares, strict=True)
            if share.any()
        )


class _Parts:
    """What the sentences of a description say before it is known how many of them count."""

    def __init__(
        self, described: Description, model: LinearModel, row: Mapping[str, int], meaning: Floats
    ) -> None:
        rows = [[row[token] for token in own if token in row] for own in described.tokens]
        self._described = described
        self._squares = np.array([(model.idf[own].astype(np.float64) ** 2).sum() for own in rows])
        self._words = np.array([model.idf[own] @ model.rows[own] for own in rows])
        self._meaning = described.meaning @ meaning

    def shares(self, numbers: Sequence[int]) -> Floats:
        """What each of the sentences `numbers` adds to each cause where they are all there is.

        Around its mean; shape (sentences, causes). Nothing where no word of theirs is known.
        """
        chosen = list(numbers)
        squares = float(self._squares[chosen].sum())
        if not squares:
            return np.zeros((len(chosen), self._meaning.shape[-1]), dtype=np.float32)
        shares = self._meaning[chosen] * self._described.meaning_scale(chosen)
        shares = shares + self._words[chosen] / words_norm(squares)
        return np.asarray(shares - shares.mean(axis=1, keepdims=True), dtype=np.float32)


def reader_signals(
    shares: Sequence[SentenceShare], places: Sequence[tuple[str, int]] = ()
) -> list[Signal]:
    """The sentences that say most, each a signal, and one of all others; their sum is the whole."""
    if not shares:
        return []
    ranked = sorted(shares, key=lambda share: -max(map(abs, share.weights.values())))
    rest = ranked[QUOTED:]
    signals = [
        Signal(
            name=f"reader:{number}",
            kind="reader",
            quote=share.text[:MAX_QUOTE],
            line=places[share.line - 1][1] if share.line <= len(places) else 0,
            weights=share.weights,
            reason_id="reader",
            source="reader",
            file=places[share.line - 1][0] if share.line <= len(places) else "",
        )
        for number, share in enumerate(ranked[:QUOTED], start=1)
    ]
    if rest:
        total = {cause: sum(share.weights[cause] for share in rest) for cause in rest[0].weights}
        signals.append(
            Signal(
                name="reader:rest",
                kind="reader",
                quote="",
                line=0,
                weights=total,
                reason_id="reader",
                source="reader",
            )
        )
    return signals
