"""Fits the learned reader (`kb.diagnose.reader`): multinomial regression on described incidents.

Deterministic: the same samples give the same model. What judges it is always held out by group: the
threads of a project, near-duplicates, a report and its other voices. Half of the samples are taught
with sentences beside them that tell nothing (``data/reports/neutral.txt``), so that these weigh
nothing.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.linear_model import LinearModel
from kb.diagnose.reader import (
    MEANING,
    Description,
    Reader,
    describe,
    words_norm,
)
from kb.embed import Embedder
from kb.text.tokenizer import Tokenizer

MIN_COUNT = 5  # descriptions a word must stand in
PENALTY = 2.0  # half of it times the squared weights is added to the loss
ROUNDS = 60
NEUTRAL_WEIGHT = 6.0  # of a sentence that tells nothing: as much as four confirmed threads
FOLDS = 5
STEP = 1 / 256  # weights are whole multiples of it: the last bits differ between processors
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSample:
    """A description with its label: `target` has a share per cause; groups are never parted."""

    words: str
    target: Mapping[str, float]
    group: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """Samples as the model sees them; `targets` has shape (n, causes)."""

    taught: list[Description]
    targets: Floats
    weights: Floats
    folds: NDArray[np.int64]


class ReaderFit:
    """Fits models of samples that are described once."""

    def __init__(
        self,
        samples: Sequence[ReaderSample],
        causes: Sequence[str],
        embedder: Embedder,
        tokenizer: Tokenizer,
        neutral: Sequence[str] = (),
    ) -> None:
        """Describe `samples`; of what a `neutral` sentence alone is, base rates are taught."""
        self._causes = tuple(causes)
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._readers: dict[int, Reader] = {}  # by the fold each has not seen
        targets = np.array([[item.target.get(cause, 0.0) for cause in causes] for item in samples])
        weights = np.array([item.weight for item in samples])
        rates = weights @ targets / weights.sum()
        self._samples = _Described(
            taught=[
                *(
                    describe(_beside(item.words, neutral, number), embedder, tokenizer)
                    for number, item in enumerate(samples)
                ),
                *(describe(sentence, embedder, tokenizer) for sentence in neutral),
            ],
            targets=np.vstack([targets, *[rates] * len(neutral)]),
            weights=np.concatenate([weights, np.full(len(neutral), NEUTRAL_WEIGHT)]),
            folds=np.array([*(_fold(item.group) for item in samples), *[-1] * len(neutral)]),
        )

    def model(self, *, fitted_on: str = "", without: int | None = None) -> LinearModel:
        """The model of all samples, or of those outside the fold `without`."""
        folds = self._samples.folds
        rows = [
            row
            for row, described in enumerate(self._samples.taught)
            if described.places and folds[row] != without
        ]
        taught = [self._samples.taught[row] for row in rows]
        counts = Counter(token for described in taught for own in described.tokens for token in own)
        tokens = tuple(sorted(token for token, count in counts.items() if count >= MIN_COUNT))
        idf = _idf(tokens, counts, len(rows))
        weights = self._fit(_matrix(taught, tokens, idf), rows)
        return LinearModel(
            causes=self._causes,
            tokens=tokens,
            idf=idf.astype(np.float32),
            rows=(np.round(weights / STEP) * STEP).astype(np.float32),
            fitted_on=fitted_on,
        )

    def held_out(self, words: str, group: str) -> dict[str, float]:
        """Nats per cause of a description, by a model that saw nothing of `group`."""
        fold = _fold(group)
        if fold not in self._readers:
            model = self.model(without=fold)
            self._readers[fold] = Reader(model, self._embedder, self._tokenizer)
        nats = dict.fromkeys(self._causes, 0.0)
        for share in self._readers[fold].read(words):
            for cause, weight in share.weights.items():
                nats[cause] += weight
        return nats

    def _fit(self, matrix: Any, rows: Sequence[int]) -> Floats:  # noqa: ANN401
        from scipy.optimize import minimize

        features = matrix.shape[1]
        causes = len(self._causes)
        transposed = matrix.T.tocsr()
        target, weight = self._samples.targets[rows], self._samples.weights[rows][:, None]

        def loss(values: Floats) -> tuple[float, Floats]:
            table = values[:-causes].reshape(features, causes)
            logits = matrix @ table + values[-causes:]
            logits -= logits.max(axis=1, keepdims=True)
            logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
            error = weight * (np.exp(logits) * target.sum(axis=1, keepdims=True) - target)
            value = -float((weight * target * logits).sum())
            value += 0.5 * PENALTY * float((table * table).sum())
            gradient = transposed @ error + PENALTY * table
            return value, np.concatenate([gradient.ravel(), error.sum(axis=0)])

        start = np.zeros(features * causes + causes)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
        # How frequent causes are is the evidence model's to know: the constant is left out.
        return np.asarray(found.x[:-causes], dtype=np.float64).reshape(features, causes)


def _fold(group: str) -> int:
    return zlib.crc32(group.encode()) % FOLDS


def _matrix(descriptions: Sequence[Description], tokens: Sequence[str], idf: Floats) -> Any:  # noqa: ANN401
    """Words and meaning of samples, sparse, shape (n, tokens + dimension)."""
    from scipy.sparse import csr_matrix, hstack

    place = {token: number for number, token in enumerate(tokens)}
    values: list[float] = []
    columns: list[int] = []
    ends = [0]
    for described in descriptions:
        own = [place[t] for sentence in described.tokens for t in sentence if t in place]
        norm = words_norm(float((idf[own] ** 2).sum()))
        columns += own
        values += [idf[number] / norm for number in own]
        ends.append(len(columns))
    words = csr_matrix((values, columns, ends), shape=(len(descriptions), len(tokens)))
    meaning = np.array([described.meaning.sum(axis=0) for described in descriptions])
    return hstack([words, csr_matrix(MEANING * meaning)]).tocsr()


def _idf(tokens: Sequence[str], counts: Mapping[str, int], size: int) -> Floats:
    """The rarer a word, the more it counts; shape (tokens,)."""
    return np.round([math.log((1 + size) / (1 + counts[token])) + 1 for token in tokens], 2)


def _beside(words: str, neutral: Sequence[str], number: int) -> str:
    """Every other description with one to three neutral sentences before or behind it."""
    if not neutral or number % 2 or not words.strip():
        return words
    chosen = [neutral[(7 * number + 11 * place) % len(neutral)] for place in range(number % 3 + 1)]
    added = "\n".join(chosen)
    return f"{added}\n{words}" if number % 4 else f"{words}\n{added}"
