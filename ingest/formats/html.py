"""Saved HTML pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ingest.files import read_page
from ingest.types import Format, ImportTools
from ingest.wordlists import WordLists
from ingest.writeups import writeup_entry
from kb.types.entries import Entry


def _entries(path: Path, tools: ImportTools) -> Iterator[Entry]:
    from ingest.formats.html_article import read_html  # six megabytes a server may never need

    document = read_html(read_page(path, tools.notes), tools.words)
    yield writeup_entry(document, path, tools)


def is_html(head: str, _words: WordLists) -> bool:
    """Whether a text begins as pages do."""
    start = head.lstrip("\ufeff \t\r\n")[:512].lower()
    return start.startswith(("<!doctype html", "<html")) or "<body" in start or "<head>" in start


HTML = Format(read=_entries, suffixes=frozenset({".html", ".htm", ".xhtml"}), recognises=is_html)
