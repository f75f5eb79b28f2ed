"""A message cut into sentences, and a sentence into clauses."""

from __future__ import annotations

import re

from kb.types.vocabulary import Language

MAX_SENTENCES = 12  # of a message; what comes after them is read as part of a report only
SWITCH_WORDS = 3  # English words after which a Chinese conversation goes on in English
MAX_CLAUSES = 12  # of a sentence; a person's has fewer
# Not behind an ellipsis, nor between “no.” and its number. Chinese is also written with the marks
# of English and no space behind them.
_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\.\.)(?!(?<=\b[Nn][or]\.)\s+[0-9])\s+|(?<=[。！？])(?![”」』])|(?<=……)|\n+"
    r"|(?<=[!?])(?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff][.!?])(?=[A-Za-z0-9\u4e00-\u9fff])"
)
HAN = re.compile(r"[\u4e00-\u9fff]")
LATIN = re.compile(r"[A-Za-z][a-z']+")
SETTING_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,40}(?:[._][A-Za-z0-9]{1,40}){1,12}")
_CLAUSE = re.compile(
    r"[,;]\s+|[，；]|\s[-–—]+\s|[,;](?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff])[,;]"
    r"|(?<=[\u4e00-\u9fff])[^\S\n]+(?=[\u4e00-\u9fff])"
)


def sentences(text: str) -> list[str]:
    """The first sentences of a text."""
    parts = [part.strip() for part in _SENTENCE.split(text) if part.strip()]
    return parts[:MAX_SENTENCES] if len(parts) > 1 else [text] if text.strip() else []


def clauses(sentence: str) -> list[str]:
    """The first clauses of a sentence."""
    parts = _CLAUSE.split(sentence, maxsplit=MAX_CLAUSES)
    return [part.strip() for part in parts if part.strip()]


def word_count(text: str) -> int:
    """English words and Chinese characters."""
    return len(LATIN.findall(text)) + len(HAN.findall(text))


def message_language(text: str, current: Language | None) -> Language | None:
    """The language of a person's words; the current one where they are too few to tell."""
    if HAN.search(text):
        return "zh"
    latin = len(LATIN.findall(SETTING_NAME.sub(" ", text)))
    if current == "zh" and latin < SWITCH_WORDS:
        return current
    return "en" if latin else current
