"""Scores short texts with a linear model over words, runs of characters, and the meaning.

Fitted models of what a message does, which outcome it reports, and what a sentence states
are tables of nats (`LinearModel`), one row a feature and one a dimension of the embedding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.linear_model import LinearModel
from kb.errors import DataError

if TYPE_CHECKING:
    from kb.embed import Embedder

ALWAYS = "<always>"  # a feature every text has: how frequent a class is
MEANING = 2.0  # length of the embedding beside the words', which is 1
MAX_CHARS = 600  # of a text that are read; what it does stands in less
HAN_RUN = 3  # characters of the longest run of Chinese that is a feature
RECENT_TEXTS = 8  # whose features are cached, about 20 kB each
PIECE = 4  # letters of a piece of a word: "restarting", "resart"
_PART = re.compile(
    r"(?P<han>[\u4e00-\u9fff]+)|(?P<name>[A-Za-z0-9]+(?:[_.=/-]+[A-Za-z0-9]+)+)"
    r"|(?P<number>[0-9]+)|(?P<word>[A-Za-z]+(?:['’][A-Za-z]+)*)|(?P<mark>[?？!！])"
)
_CLASSES = {"name": "<name>", "number": "<number>"}
_MARKS = {"?": "?", "？": "?", "!": "!", "！": "!"}


@lru_cache(RECENT_TEXTS)  # of a sentence each topic and each polarity is asked
def text_features(text: str) -> tuple[str, ...]:
    """What a model sees of a text: words, pairs and pieces of them, runs of characters.

    Names with digits or underscores and numbers are one word each, whichever they are.
    """
    return tuple(_features(text))


def _features(text: str) -> Iterator[str]:
    yield ALWAYS
    before = "^"
    text = text[:MAX_CHARS].lower()
    for match in _PART.finditer(text):
        part, kind = match[0], match.lastgroup or ""
        if kind == "han":
            framed = f"{before if before == '^' else ''}{part}{'$' * (match.end() == len(text))}"
            for size in range(1, HAN_RUN + 1):
                yield from (framed[at : at + size] for at in range(len(framed) - size + 1))
            before = part[-1]
            continue
        word = _CLASSES.get(kind) or _MARKS.get(part) or part.replace("’", "'")
        yield f"{before} {word}"
        yield word
        if kind == "word":
            framed = f"_{word}_"
            yield from (f"~{framed[at : at + PIECE]}" for at in range(len(framed) - PIECE + 1))
        before = word
    yield f"{before} $"


class TextScorer:
    """Gives a message nats for each class of a fitted model; used from any thread."""

    def __init__(
        self, model: LinearModel, embedder: Embedder, normalise: Callable[[str], str], folder: str
    ) -> None:
        """Score with `model` of `folder`, whose meaning is that of `embedder`.

        Raises:
            DataError: the model was fitted for another embedding.
        """
        if len(model.rows) != len(model.tokens) + embedder.dimension:
            raise DataError(
                f"{folder}: made for another embedding",
                todo="run python -m kb.train.messages, or reinstall the package",
            )
        self.classes = model.causes
        self.idf = model.idf
        self.row = {token: number for number, token in enumerate(model.tokens)}
        self.embedder = embedder
        self._rows = model.rows
        self._normalise = normalise

    def vector(self, text: str) -> NDArray[np.float32]:
        """A message as the model sees it, shape (features + dimension,)."""
        meaning = self.embedder.encode_passages([text])[0]
        return vectorise(text_features(self._normalise(text)), meaning, self.row, self.idf)

    def nats(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Nats of each class for the message of that `vector`, shape (classes,)."""
        nats: NDArray[np.float32] = vector @ self._rows
        return nats

    def score(self, features: Iterable[str], meaning: NDArray[np.float32]) -> NDArray[np.float32]:
        """Nats of each class for a text with these features and that embedding, shape (classes,).

        As `nats` of its vector, at a tenth of the time: few features are present.
        """
        known, weights = weigh(features, self.row, self.idf)
        words = weights @ self._rows[known]
        nats: NDArray[np.float32] = words + (meaning @ self._rows[len(self.row) :]) * MEANING
        return nats


def softmax(nats: NDArray[np.float32]) -> Sequence[float]:
    """Probabilities from nats."""
    shares = np.exp(nats - nats.max())
    found: list[float] = (shares / shares.sum()).tolist()
    return found


def vectorise(
    features: Iterable[str],
    meaning: NDArray[np.float32],
    row: Mapping[str, int],
    idf: NDArray[np.float32],
) -> NDArray[np.float32]:
    """A text as a model sees it, shape (features + dimension,)."""
    values = np.zeros(len(row) + len(meaning), dtype=np.float32)
    known, weights = weigh(features, row, idf)
    values[known] = weights
    values[len(row) :] = MEANING * meaning
    return values


def weigh(
    features: Iterable[str], row: Mapping[str, int], idf: NDArray[np.float32]
) -> tuple[list[int], NDArray[np.float32]]:
    """The rows of the known features of a text and their weights, as long as 1 together.

    `ALWAYS` weighs 1 beside them.
    """
    known = [row[feature] for feature in dict.fromkeys(features) if feature in row]
    weights = idf[known]
    norm = float(np.linalg.norm(weights))
    if norm:
        weights = weights / norm
    if ALWAYS in row and row[ALWAYS] in known:
        weights[known.index(row[ALWAYS])] = 1.0
    return known, weights
