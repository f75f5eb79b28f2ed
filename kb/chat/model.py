"""The seam to a language model: what it is asked, and how it fails.

A model only words the engine's statements anew. It gets them numbered, with the person's message,
both as data between fences that cannot occur in them; `kb.chat.grounding` checks what comes back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from kb.errors import KBError
from kb.types import Language

FENCE_DIGITS = 16  # of a digest over the data: data cannot hold a digest of itself


class ModelError(KBError):
    """The language model gave no usable answer; the engine's own answer takes its place."""

    code = "language-model"
    http_status = 502


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What a model is asked.

    `system` are the rules, `evidence` the statements numbered from 1, `question` the person's
    message; both are untrusted. `reminder` repeats the rules after the data, where a model has
    just read whatever a log says.
    """

    system: str
    evidence: tuple[str, ...]
    question: str
    reminder: str
    language: Language


class LanguageModel(Protocol):
    """Something that words an answer."""

    def stream(self, request: ModelRequest) -> Iterator[str]:
        """The answer's text, piece by piece as it comes. Closing the iterator ends the work.

        Raises:
            ModelError: no answer, or half of one; in bounded time.
        """
        ...


def fenced(request: ModelRequest) -> str:
    """Evidence and question as the text of one message, between fences made for this data."""
    numbered = [f"[{number}] {text}" for number, text in enumerate(request.evidence, start=1)]
    data = "\n".join(numbered)
    digest = hashlib.sha256(f"{data}\0{request.question}".encode("utf-8", "replace")).hexdigest()
    fence = digest[:FENCE_DIGITS]
    return (
        f"<evidence-{fence}>\n{data}\n</evidence-{fence}>\n"
        f"<question-{fence}>\n{request.question}\n</question-{fence}>\n"
        f"{request.reminder}"
    )
