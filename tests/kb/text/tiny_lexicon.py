"""A lexicon folder of a few rows, for tests."""

from __future__ import annotations

from pathlib import Path


def tiny_lexicon(folder: Path, **files: str) -> Path:
    """A lexicon of these rows and nothing else; `_` of a name stands for ``-``."""
    names = ("words.tsv", "glossary.tsv", "everyday.tsv", "mined.tsv", "mined-knowledge.tsv")
    names += ("traditional.tsv", "regional.tsv", "compounds.txt", "stopwords.txt")
    for name in names:
        key = name.partition(".")[0].replace("-", "_")
        (folder / name).write_text(files.get(key, ""), encoding="utf-8")
    return folder
