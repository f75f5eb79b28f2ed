"""Answers given lately: when a job dies, hundreds of ranks' hooks send the same log at once.

Kept are finished responses, in which secrets are redacted already; of what was asked only a digest.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from app.observe import Metrics
from kb.types import Language

ANSWERS_BYTES = 8 * 1024 * 1024  # of all answers kept: some 250 in JSON
ANSWER_BYTES = 1024 * 1024  # a larger one is not kept: it would push out hundreds
OVERHEAD_BYTES = 1024  # of one answer, beside its body


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer as it went out; `status` and `cause` are for the count of diagnoses."""

    body: bytes
    language: Language
    status: str
    cause: str


class Answers:
    """The last answers by the digest of what was asked; used by the event loop's thread alone."""

    def __init__(self, metrics: Metrics, *, limit: int = ANSWERS_BYTES) -> None:
        """Keep at most `limit` bytes, those of the longest unused answers first to go."""
        self._metrics = metrics
        self._limit = limit
        self._kept: OrderedDict[bytes, Given] = OrderedDict()
        self._working: dict[bytes, anyio.Event] = {}
        self.size = 0

    async def get(self, key: bytes, make: Callable[[], Awaitable[Given]]) -> tuple[Given, bool]:
        """The answer under `key`, and whether it was there; who asks meanwhile waits for it.

        What `make` raises is raised; the next one who waits then tries by itself.
        """
        while True:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                self._metrics.answers.labels("kept").inc()
                return found, True
            working = self._working.get(key)
            if working is None:
                break
            await working.wait()
        done = self._working[key] = anyio.Event()
        try:
            made = await make()
            self._keep(key, made)
        finally:
            del self._working[key]
            done.set()
        self._metrics.answers.labels("made").inc()
        return made, False

    def _keep(self, key: bytes, made: Given) -> None:
        if len(made.body) > min(ANSWER_BYTES, self._limit - OVERHEAD_BYTES):
            return
        self._kept[key] = made
        self.size += _cost(made)
        while self.size > self._limit:
            _, gone = self._kept.popitem(last=False)
            self.size -= _cost(gone)
        self._metrics.answers_bytes.set(self.size)


def _cost(given: Given) -> int:
    return len(given.body) + OVERHEAD_BYTES


def answer_key(body: bytes, *, version: str, asked: tuple[object, ...]) -> bytes:
    """The digest of a body, of how it is to be answered, and of what it is answered from.

    Args:
        body: what was sent.
        version: of knowledge, entries and index (`Service.version`).
        asked: all else the answer depends on.
    """
    digest = hashlib.sha256(repr((version, asked)).encode())
    digest.update(body)
    return digest.digest()
