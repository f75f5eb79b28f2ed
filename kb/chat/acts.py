"""What a message does in a conversation: it asks why, states a fact, says what fixed it.

A multinomial linear model over words, runs of characters and the meaning of the message, fitted by
`kb.train.messages` on messages written for it. Fitted, because people put the same thing in ever
other words; linear, so it costs little and is stored as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import get_args

from kb.chat.types import Act
from kb.diagnose.text_scorer import TextScorer, softmax
from kb.errors import DataError

FOLDER = "chat/acts"  # of data/: the fitted model
ACTS: tuple[Act, ...] = get_args(Act)
CACHED = 256  # sentences read last


class ActReader:
    """Reads what messages do; made once, used from any thread."""

    def __init__(self, scorer: TextScorer) -> None:
        """Read with `scorer`.

        Raises:
            DataError: it was fitted for other acts.
        """
        if scorer.classes != ACTS:
            raise DataError(
                f"{FOLDER}: made for other acts", todo="run python -m kb.train.messages"
            )
        self._scorer = scorer
        self.read = lru_cache(CACHED)(self._read)

    def _read(self, text: str) -> Mapping[Act, float]:
        """The probability of each act; a sentence is looked at from several sides."""
        nats = self._scorer.nats(self._scorer.vector(text))
        return MappingProxyType(dict(zip(ACTS, softmax(nats), strict=True)))
