"""A message cut into sentences, and a sentence into clauses."""

from __future__ import annotations

import re

MAX_SENTENCES = 12  # of a message; what comes after them is read as part of a report only
MAX_CLAUSES = 12  # of a sentence; a person's has fewer
# Not behind an ellipsis, nor between “no.” and its number.
_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\.\.)(?!(?<=\b[Nn][or]\.)\s+[0-9])\s+|(?<=[。！？])|(?<=……)|\n+"
)
HAN = re.compile(r"[\u4e00-\u9fff]")
LATIN = re.compile(r"[A-Za-z][a-z']+")
_CLAUSE = re.compile(r"[,;]\s+|[，；]|\s[-–—]+\s")
# A clause that states something has a verb, and no “if” or “I guess” before it.
_SUPPOSED = re.compile(
    r"(?i)\s*(?:if|in case|assuming|suppose|given|when|as for|about|maybe|perhaps|"
    r"(?:i|we) (?:think|guess|suspect|believe|suppose|bet)|如果|要是|假如|假设|至于|"
    r"(?:我们?|俺)?(?:怀疑|觉得|感觉|猜|估计)|可能|也许)"
)
_ASSERTS = re.compile(
    r"(?i)\b(?:is|are|was|were|has|have|had|we|i|hangs?|uses?|using|shows?|works?|runs?|with)\b"
    r"|['’]s\b|是|有|用|卡|显示|报|没|了|都|在"
)


def sentences(text: str) -> list[str]:
    """The first sentences of a text."""
    parts = [part.strip() for part in _SENTENCE.split(text) if part.strip()]
    return parts[:MAX_SENTENCES] if len(parts) > 1 else [text] if text.strip() else []


def clauses(sentence: str) -> list[str]:
    """The first clauses of a sentence."""
    parts = _CLAUSE.split(sentence, maxsplit=MAX_CLAUSES)
    return [part.strip() for part in parts if part.strip()]


def is_assertion(clause: str) -> bool:
    """Whether a clause says that something is so, instead of naming or supposing it."""
    return not _SUPPOSED.match(clause) and _ASSERTS.search(clause) is not None


def word_count(text: str) -> int:
    """English words and Chinese characters."""
    return len(LATIN.findall(text)) + len(HAN.findall(text))
