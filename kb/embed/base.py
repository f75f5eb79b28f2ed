"""What every embedding model promises: unit vectors whose inner product is the cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors of one space, Chinese and English alike.

    Attributes:
        name: identifier of the model with a hash of its content; vectors of two models that
            differ in anything that changes a vector never share a name.
        dimension: length of every vector.
    """

    @property
    def name(self) -> str:
        """Identifier of the model with a hash of its content."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions: shape (n, dimension), rows of length 1.

        A text the model knows no token of gets a row of zeros.
        """

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of stored texts: shape (n, dimension), rows of length 1.

        A text the model knows no token of gets a row of zeros.
        """
