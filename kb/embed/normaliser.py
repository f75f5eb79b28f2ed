"""The text a model's vocabulary was made for: the steps its `normaliser.json` lists, in order.

Read without the package tokenizers, which brings 40 MB: both make the same of every text, a test
says, but for the newest characters of Unicode, of which each has its own tables.
Format: https://huggingface.co/docs/tokenizers/api/normalizers
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from kb.errors import DataError

Step = Callable[[str], str]

_LITERAL = re.compile(r"\\b([a-z ]+)\\b\Z")
# Python's `re` has no classes of Unicode; \w is letters, numbers and the underscore.
_NOT_LETTER_OR_NUMBER = (r"[^\p{L}\p{N}]", r"[\W_]")


class Normaliser:
    """Applies the steps of a normaliser file."""

    def __init__(self, path: Path) -> None:
        """Read `path`.

        Raises:
            DataError: it cannot be read, or lists a step that is not known here.
        """
        try:
            content = msgspec.json.decode(path.read_bytes())
            rows = content["normalizer"]["normalizers"]
            self._steps = [_step(row) for row in rows]
        except (msgspec.DecodeError, KeyError, TypeError, re.error) as error:
            raise DataError(f"{path} cannot be read: {error}", todo="restore data/model") from error

    def __call__(self, text: str) -> str:
        """`text` normalised."""
        for step in self._steps:
            text = step(text)
        return text


def _step(row: dict[str, Any]) -> Step:
    kind = row["type"]
    if kind == "NFKC":
        return partial(unicodedata.normalize, "NFKC")
    if kind == "Lowercase":
        return _lower
    if kind == "Replace":
        pattern, content = row["pattern"]["Regex"], row["content"]
        literal = _LITERAL.match(pattern)
        expression = re.compile(pattern.replace(*_NOT_LETTER_OR_NUMBER))
        if literal:
            return partial(_replace_word, literal[1], expression, content)
        return partial(expression.sub, content)
    raise KeyError(kind)


def _lower(text: str) -> str:
    """Lower case, letter by letter: a sigma at a word's end is like any other."""
    return text.replace("Σ", "σ").lower()


def _replace_word(word: str, expression: re.Pattern[str], content: str, text: str) -> str:
    """Replace whole words; most texts hold none, which a plain search tells fastest."""
    return expression.sub(content, text) if word in text else text
