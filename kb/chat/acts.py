"""What a message does in a conversation, and how far it says the incident is.

It asks why, states a fact, says what fixed it; the job is running again, still fails. Multinomial
linear models over words, runs of characters and the meaning of the message, fitted by
`kb.train.messages` on messages written for it. Fitted, because people put the same thing in ever
other words; linear, so it costs little and is stored as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Generic, TypeVar, get_args

from kb.chat.types import Act, Progress
from kb.diagnose.text_scorer import TextScorer, softmax
from kb.errors import DataError

FOLDER, PROGRESS_FOLDER = "chat/acts", "chat/progress"  # of data/: the fitted models
ACTS: tuple[Act, ...] = get_args(Act)
PROGRESSES: tuple[Progress, ...] = get_args(Progress)
CACHED = 256  # texts read last

Class = TypeVar("Class", bound=str)


class ClassReader(Generic[Class]):
    """Reads which of some classes a text is of; made once, used from any thread."""

    def __init__(self, scorer: TextScorer, classes: Sequence[Class], folder: str) -> None:
        """Read with `scorer`, fitted for `classes` and kept in `folder`.

        Raises:
            DataError: it was fitted for other classes.
        """
        if scorer.classes != tuple(classes):
            raise DataError(
                f"{folder}: made for other classes", todo="run python -m kb.train.messages"
            )
        self._scorer = scorer
        self._classes = classes
        self.read = lru_cache(CACHED)(self._read)

    def _read(self, text: str) -> Mapping[Class, float]:
        """The probability of each class; a sentence is looked at from several sides."""
        nats = self._scorer.nats(self._scorer.vector(text))
        return MappingProxyType(dict(zip(self._classes, softmax(nats), strict=True)))


ActReader = ClassReader[Act]
ProgressReader = ClassReader[Progress]
