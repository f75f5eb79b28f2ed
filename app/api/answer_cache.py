"""Recent answers: when a job dies, hundreds of ranks' hooks send the same log at once.

Stored are finished responses, in which secrets are redacted already, and of requests a digest.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from app.server.observability import Metrics
from kb.types.vocabulary import Language

ANSWERS_BYTES = 8 * 1024 * 1024  # of all stored answers: some 250 in JSON
ANSWER_BYTES = 1024 * 1024  # a larger one is not stored: it would push out hundreds
OVERHEAD_BYTES = 1024  # of one answer, beside its body


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedAnswer:
    """An answer as it went out; `status` and `cause` are for the count of diagnoses."""

    body: bytes
    language: Language
    status: str
    cause: str


class AnswerCache:
    """The last answers by the digest of what was asked; used by the event loop's thread alone."""

    def __init__(self, metrics: Metrics, *, limit: int = ANSWERS_BYTES) -> None:
        """Keep at most `limit` bytes, those of the longest unused answers first to go."""
        self._metrics = metrics
        self._limit = limit
        self._answers: OrderedDict[bytes, CachedAnswer] = OrderedDict()
        self._pending: dict[bytes, anyio.Event] = {}
        self.size = 0

    async def get(
        self, key: bytes, make: Callable[[], Awaitable[CachedAnswer]]
    ) -> tuple[CachedAnswer, bool]:
        """The answer under `key`, and whether it was there; who asks meanwhile waits for it.

        What `make` raises is raised; the next one who waits then tries by itself.
        """
        while True:
            answer = self._answers.get(key)
            if answer is not None:
                self._answers.move_to_end(key)
                self._metrics.answers.labels("kept").inc()
                return answer, True
            if key not in self._pending:
                break
            await self._pending[key].wait()
        done = self._pending[key] = anyio.Event()
        try:
            answer = await make()
            self._store(key, answer)
        finally:
            del self._pending[key]
            done.set()
        self._metrics.answers.labels("made").inc()
        return answer, False

    def _store(self, key: bytes, answer: CachedAnswer) -> None:
        if len(answer.body) > min(ANSWER_BYTES, self._limit - OVERHEAD_BYTES):
            return
        self._answers[key] = answer
        self.size += len(answer.body) + OVERHEAD_BYTES
        while self.size > self._limit:
            _, oldest = self._answers.popitem(last=False)
            self.size -= len(oldest.body) + OVERHEAD_BYTES
        self._metrics.answers_bytes.set(self.size)


def answer_key(body: bytes, *, version: str, options: tuple[object, ...]) -> bytes:
    """The digest of a body, of how it is to be answered, and of what it is answered from.

    Args:
        body: what was sent.
        version: of knowledge, entries and index (`Service.version`).
        options: all else the answer depends on.
    """
    digest = hashlib.sha256(repr((version, options)).encode())
    digest.update(body)
    return digest.digest()
