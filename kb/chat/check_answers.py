"""Which outcome of an open check a message reports, in whatever words: “same with random data”.

Three things are added up: what a linear model fitted on answers to that very check says
(`kb.train.messages`), whether the message reports trouble as the outcome does, and how alike the
message and the outcome's own words are. A check nobody wrote answers for is read by the last two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kb.diagnose.text_scorer import TextScorer, softmax
from kb.types.knowledge import Check, CheckOutcome

FOLDER = "chat/answers"  # of data/: the fitted model
TROUBLE = "<trouble>"  # the class of messages that report trouble
NONE = 0  # of the outcomes, counted from 1: the message answers nothing
# Fitted on answers the model had not seen, so that of what is said with .8 four of five are right.
FITTED = 0.46  # of what the model says of the very check
TROUBLE_NATS = 0.26  # of a message that reports trouble, for outcomes that are trouble
ALIKE_NATS = 1.53  # of words and meaning that are the same
NONE_NATS = 1.94  # of “none of these” beside outcomes whose words are not alike
UNWRITTEN_NATS = -1.0  # of “none of these” where no answers to the check were written


def answer_class(check: str, outcome: int) -> str:
    """The name of the class of answers that report an outcome, counted from 1 (0: none)."""
    return f"{check}#{outcome}"


class CheckAnswerReader:
    """Reads answers to checks; made once, used from any thread."""

    def __init__(self, scorer: TextScorer) -> None:
        """Read with the fitted model of `scorer`."""
        self._scorer = scorer
        self._column = {name: number for number, name in enumerate(scorer.classes)}
        self._outcome = lru_cache(512)(self._vectors)

    def read(self, text: str, check: Check) -> Sequence[float]:
        """The probabilities that `text` reports none of the outcomes, the first, and so on."""
        message = self._scorer.vector(text)
        nats = self._scorer.nats(message)
        trouble = float(nats[self._column[TROUBLE]])
        points = [FITTED * self._fitted(nats, check.id, NONE, UNWRITTEN_NATS) + NONE_NATS]
        for number, outcome in enumerate(check.outcomes, start=1):
            sign = {True: 1.0, False: -1.0, None: 0.0}[outcome.trouble]
            points.append(
                FITTED * self._fitted(nats, check.id, number, 0.0)
                + sign * TROUBLE_NATS * trouble
                + ALIKE_NATS * self._alike(message, outcome)
            )
        return softmax(np.array(points, dtype=np.float32))

    def _fitted(
        self, nats: NDArray[np.float32], check: str, outcome: int, unwritten: float
    ) -> float:
        column = self._column.get(answer_class(check, outcome))
        return unwritten if column is None else float(nats[column])

    def _alike(self, message: NDArray[np.float32], outcome: CheckOutcome) -> float:
        """Sum of the cosines of features and of meaning, of the likelier language."""
        size = len(self._scorer.row)
        shown = (outcome.observation.zh, outcome.observation.en)
        others = [self._outcome(text) for text in shown]
        words = max(float(message[:size] @ other[:size]) for other in others)
        meaning = max(cosine(message[size:], other[size:]) for other in others)
        return words + meaning

    def _vectors(self, text: str) -> NDArray[np.float32]:
        return self._scorer.vector(text)


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """The cosine of two vectors; 0 where one has no length."""
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if length else 0.0
