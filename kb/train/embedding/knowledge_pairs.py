"""Mine translations from the knowledge: ``python -m kb.train.embedding.knowledge_pairs``.

Causes, patterns, settings and cases say everything in both languages. Their pairs are few beside
the parallel documentation, but they are the very words incidents are described in.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

from kb.knowledge.load import Knowledge, read_knowledge
from kb.settings import shipped_data
from kb.text.tokenizer import Tokenizer
from kb.train.embedding.corpus import Pair
from kb.train.embedding.translations import mine
from kb.types.entries import Entry
from kb.types.knowledge import Bilingual

FILE = "mined-knowledge.tsv"
_CHINESE_END = re.compile(r"(?<=[。；！？])|\n")
_ENGLISH_END = re.compile(r"(?<=[.;!?])\s+(?=[A-Z`])|\n")


def knowledge_pairs(knowledge: Knowledge) -> list[Pair]:
    """Every bilingual text, then the cases' sections, sentence by sentence where they align."""
    parts = (knowledge.causes, knowledge.patterns, knowledge.cues, knowledge.facts)
    texts = [*_bilinguals((*parts, knowledge.advice, knowledge.cases))]
    pairs = [Pair(text.zh, text.en) for text in texts]
    for case in knowledge.cases:
        pairs += _section_pairs(case)
    return pairs


def _bilinguals(value: object) -> Iterator[Bilingual]:
    """All bilingual texts inside a value, in the order of its fields."""
    if isinstance(value, Bilingual):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _bilinguals(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _bilinguals(getattr(value, field.name))


def _section_pairs(case: Entry) -> list[Pair]:
    english = {part.role: part.text for part in case.sections if part.language == "en"}
    pairs: list[Pair] = []
    for part in case.sections:
        if part.language != "zh":
            continue
        left = _sentences(_CHINESE_END, part.text)
        right = _sentences(_ENGLISH_END, english[part.role])
        if len(left) == len(right):
            pairs += [Pair(*both) for both in zip(left, right, strict=True)]
        else:
            pairs.append(Pair(part.text, english[part.role]))
    return pairs


def _sentences(end: re.Pattern[str], text: str) -> list[str]:
    return [piece.strip() for piece in end.split(text) if piece.strip()]


def without(mined: str, others: Sequence[str]) -> str:
    """The lines of `mined` whose word and translation stand in none of `others`."""
    known = {tuple(line.split("\t")[:2]) for text in others for line in text.splitlines()}
    lines = mined.splitlines(keepends=True)
    return "".join(line for line in lines if tuple(line.split("\t")[:2]) not in known)


def main() -> int:
    """Write ``mined-knowledge.tsv``: what the documentation's words do not already say."""
    parser = argparse.ArgumentParser(prog="python -m kb.train.embedding.knowledge_pairs")
    parser.add_argument("--data", type=Path, default=shipped_data())
    lexicon = parser.parse_args().data / "lexicon"
    tokenizer = Tokenizer(lexicon)
    pairs = knowledge_pairs(read_knowledge(lexicon.parent))
    known = (lexicon / "mined.tsv").read_text("utf-8").partition("\n")[2]
    text = without(mine(pairs, tokenizer), [known])
    (lexicon / FILE).write_text(text, "utf-8")
    sys.stderr.write(f"{len(pairs)} pairs, {text.count(chr(10)) - 1} words\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
