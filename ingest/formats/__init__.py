"""The formats that can be imported.

A new one is a file here with a `Format` (`ingest.types`: how it reads a file to entries, its
suffixes, how it recognises a text) and a line in `FORMATS`.
"""

from __future__ import annotations

from pathlib import Path

from ingest.files import head_text
from ingest.formats import html, logs, markdown, text, threads
from ingest.types import Format
from ingest.wordlists import WordLists

COMPRESSED = (".gz", ".zst", ".xz")
# In the order in which they are tried on a file whose name says nothing; a log is anything.
FORMATS: dict[str, Format] = {
    "case": markdown.CASE,
    "markdown": markdown.MARKDOWN,
    "html": html.HTML,
    "json": threads.JSON,
    "jsonl": threads.JSON_LINES,
    "text": text.TEXT,
    "log": logs.LOG,
}


def format_of(path: Path, words: WordLists) -> Format:
    """The format of a file: by its ending where one format alone has it, else by its first lines.

    A reviewed case ends in `.md`: a page saved as text may start with the same fields.

    Raises:
        InputError: it cannot be read, is binary or empty.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    named = [
        format_
        for format_ in FORMATS.values()
        if suffixes[-1:] and suffixes[-1] in format_.suffixes
    ]
    if len(named) == 1:
        return named[0]
    unnamed = [format_ for format_ in FORMATS.values() if format_ is not markdown.CASE]
    return recognised(head_text(path), words, named or unnamed)


def recognised(head: str, words: WordLists, formats: list[Format]) -> Format:
    """The first of `formats` that recognises a text by its head, else the last."""
    return next((item for item in formats if item.recognises(head, words)), formats[-1])
