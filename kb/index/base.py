"""What goes into an index and into a question: words with weights, tokens of log lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Scores = NDArray[np.float32]
Ranking = tuple[Numbers, Scores]
"""Chunk numbers and their scores, best first, ties by number."""
Batches = Callable[[], Iterator[tuple[Numbers, Scores]]]
"""Gives numbers and vectors in batches; may be called more than once."""

REPAIR = "run `timeout-kb ingest --rebuild`"
DISK = "free space or make the folder writable; the former index stays in use"
_TOKEN = re.compile(
    r"""
    (?P<file>\w[\w.-]{0,80}\.(?:cpp|cc|cu|cuh|py|hpp|h|go|rs))(?P<line>:[0-9]+)?
    | (?P<size>Numel(?:In|Out)=[0-9]+)              # separates a barrier from a gradient
    | (?P<name>[A-Za-z_][A-Za-z0-9_]{2,})        # words, operations, settings, exceptions
    """,
    re.VERBOSE | re.ASCII,
)


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A word of a question and its weight (1: as asked; below: a translation)."""

    word: str
    weight: float = 1.0


class Tokens(Protocol):
    """What the index and the search need of a tokenizer."""

    def tokens(self, text: str) -> list[str]:
        """Tokens in order of the text."""

    def expand(self, tokens: Sequence[str]) -> list[tuple[str, float]]:
        """The distinct tokens with weight 1, then their translations with weights below 1."""


def signature_tokens(text: str) -> list[str]:
    """What identifies log lines across runs: names, file and line, sizes; no ranks and times.

    Distinct tokens in order of the text, lower case.
    """
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        if match["file"]:
            tokens.append(match["file"].lower())
        if match["line"] or not match["file"]:
            tokens.append(match[0].lower())
    return list(dict.fromkeys(tokens))
