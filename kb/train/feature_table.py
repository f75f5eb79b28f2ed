"""Texts as the sparse features a linear model is fitted on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.linear_model import LinearModel
from kb.diagnose.text_scorer import MEANING, vectorise

MIN_COUNT = 4  # texts a feature must stand in
STEP = 1 / 64  # weights are whole multiples of it: the last bits differ between processors


class FeatureTable:
    """Texts as features, sparse, and what is needed to see others the same way.

    Attributes:
        tokens: the features that count, in order.
        matrix: shape (texts, features + dimension of the embedding).
    """

    def __init__(
        self,
        features: Sequence[Sequence[str]],
        meanings: NDArray[np.float32],
        *,
        meaning: float = MEANING,
    ) -> None:
        """See `features` of each text and its embedding, one row of `meanings`.

        `meaning` is the length of the embedding in the fit, beside the words', which is 1.
        """
        from scipy.sparse import csr_matrix, vstack

        counts = Counter(feature for own in features for feature in set(own))
        self.tokens = tuple(sorted(name for name, count in counts.items() if count >= MIN_COUNT))
        size = len(features)
        idf = [math.log((1 + size) / (1 + counts[name])) + 1 for name in self.tokens]
        self.idf = np.round(idf, 2).astype(np.float32)
        row = {name: number for number, name in enumerate(self.tokens)}
        seen = (
            vectorise(own, vector * meaning / MEANING, row, self.idf)
            for own, vector in zip(features, meanings, strict=True)
        )
        self._meaning = meaning / MEANING
        self.matrix: Any = vstack([csr_matrix(one) for one in seen]).tocsr()

    def model(
        self, classes: Sequence[str], columns: NDArray[np.float64], fitted_on: str
    ) -> LinearModel:
        """A model whose nats for each class are `columns`, shape (features, classes)."""
        columns = columns.copy()
        columns[len(self.tokens) :] *= self._meaning  # a scorer knows the one length alone
        return LinearModel(
            causes=tuple(classes),
            tokens=self.tokens,
            idf=self.idf,
            rows=(np.round(columns / STEP) * STEP).astype(np.float32),
            fitted_on=fitted_on,
        )
