"""The parallel corpus: aligned pairs, and headings with the paragraph below them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kb.errors import InputError
from kb.text.tokenizer import Tokenizer

HELD_OUT = "heldout"  # splits with this prefix are for measuring only
HEADING_CHARACTERS = 60  # longer lines are sentences, not headings
SENTENCE_END = (".", "。", ":", "：", ";", "；", ",", "，", "?", "？", "!", "！")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts that belong together."""

    left: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Everything the training reads, normalised.

    Attributes:
        pairs: Chinese (left) and English (right) of the same sentence or paragraph.
        headings: heading and paragraph, in one language or across.
        documents: documents of both languages, for document frequencies.
        sources: repositories with their licences.
    """

    pairs: tuple[Pair, ...]
    headings: tuple[Pair, ...]
    documents: tuple[str, ...]
    sources: tuple[str, ...]


def read_corpus(folder: Path, tokenizer: Tokenizer) -> Corpus:
    """Read ``parallel.jsonl.gz`` of `folder`; held-out splits are left out.

    Raises:
        InputError: the file cannot be read or a line lacks a field.
    """
    path = folder / "parallel.jsonl.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        rows = [row for row in rows if not row["split"].startswith(HELD_OUT)]
        for row in rows:
            row["zh"], row["en"] = tokenizer.normalise(row["zh"]), tokenizer.normalise(row["en"])
        sources = sorted({f"{row['repo']} ({row['licence']})" for row in rows})
        documents = _documents(rows)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path} is not a parallel corpus: {error!r}",
            todo="give a folder with parallel.jsonl.gz: one JSON object a line with zh, en, "
            "repo, licence, level, doc and split",
        ) from error
    return Corpus(
        pairs=tuple(Pair(row["zh"], row["en"]) for row in rows),
        headings=tuple(_headings(rows)),
        documents=documents,
        sources=tuple(sources),
    )


def read_glossary(lexicon: Path) -> list[Pair]:
    """The terms of ``glossary.tsv`` as pairs of Chinese and English."""
    return [Pair(*line.split("\t")) for line in _lines(lexicon / "glossary.tsv")]


def read_identifiers(lexicon: Path) -> list[str]:
    """The words of ``identifiers.txt``."""
    return _lines(lexicon / "identifiers.txt")


def _lines(path: Path) -> list[str]:
    """Lines that are neither empty nor comments."""
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _is_heading(text: str) -> bool:
    return len(text) <= HEADING_CHARACTERS and not text.rstrip().endswith(SENTENCE_END)


def _headings(rows: list[dict[str, str]]) -> list[Pair]:
    """The heading before a paragraph of the same document; the four language pairs take turns."""
    pairs: list[Pair] = []
    blocks = [row for row in rows if row["level"] == "block"]
    for above, below in pairwise(blocks):
        if above["doc"] != below["doc"] or not _is_heading(above["en"]) or _is_heading(below["en"]):
            continue
        left, right = (("zh", "zh"), ("en", "en"), ("zh", "en"), ("en", "zh"))[len(pairs) % 4]
        pairs.append(Pair(above[left], below[right]))
    return pairs


def _documents(rows: list[dict[str, str]]) -> tuple[str, ...]:
    texts: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        for language in ("zh", "en"):
            texts.setdefault((row["repo"], row["doc"], language), []).append(row[language])
    return tuple("\n".join(parts) for parts in texts.values())
