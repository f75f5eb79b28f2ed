"""What kind of source a file is."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingest import Ingestor
from ingest.files import read_page
from ingest.formats import FORMATS, format_of, recognised
from ingest.types import Document, Format, ImportTools
from ingest.wordlists import WordLists
from ingest.writeups import writeup_entry
from kb.types.entries import Entry
from tests.ingest.fakes import MemorySink
from tests.ingest.pages import ARTICLES, SITES, text_page

LOG = """2024-05-01 10:00:00 INFO epoch 1
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 3, in <module>
[E ProcessGroupNCCL.cpp:563] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(
host1:12:34 [0] NCCL INFO Channel 00
"""


def kind_of(text: str, words: WordLists, *among: str) -> str:
    """The name of the format a text is recognised as."""
    chosen = recognised(text, words, [FORMATS[name] for name in among or FORMATS])
    return next(name for name, format_ in FORMATS.items() if format_ is chosen)


@pytest.mark.parametrize("site", sorted(SITES))
@pytest.mark.parametrize("language", sorted(ARTICLES))
def test_articles_are_pages(site: str, language: str, words: WordLists) -> None:
    """An article is a page although it quotes output, on any site."""
    text = text_page(SITES[site], ARTICLES[language], "flat")
    assert kind_of(text, words) == "text"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (LOG, "log"),
        ("It hangs, please help\n" + LOG, "log"),
        ("Some words of a person.\nAnd more words.\nNo output at all.\n", "text"),
        ("<!DOCTYPE html><html><body>x", "html"),
        ("\ufeff\n<html>", "html"),
        ('{"title": "x", "body": "y"}', "jsonl"),
        ("", "text"),
    ],
    ids=["log", "words-and-log", "words", "html", "html-bom", "json", "empty"],
)
def test_text_files_are_told_apart(text: str, kind: str, words: WordLists) -> None:
    """Logs, pages, HTML and JSON are told apart by how they look."""
    assert kind_of(text, words) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("---\nid: x\nproject: y\ncause: z\n---\n# zh\n", "case"),
        ("---\ntitle: x\ncause: z\n---\ntext\n", "markdown"),
        ("# Title\n", "markdown"),
    ],
)
def test_cases_are_told_from_write_ups(text: str, kind: str, words: WordLists) -> None:
    """A case file has id, project and cause in its front matter."""
    assert kind_of(text, words, "case", "markdown") == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [("page.txt", "text"), ("page", "text"), ("page.md", "case"), ("page.md.gz", "case")],
)
def test_a_case_ends_in_md(
    name: str, kind: str, words: WordLists, write: Callable[[str, str | bytes], Path]
) -> None:
    """A page saved as text is a page, also where it starts with the fields of a case."""
    text = b"---\nid: x\nproject: y\ncause: z\n---\nIt hung. The disk was slow.\n"
    path = write(name, gzip.compress(text) if name.endswith(".gz") else text)
    assert format_of(path, words) is FORMATS[kind]


def test_a_new_format_is_a_line_in_the_dict(
    write: Callable[[str, str], Path],
    ingestor: Ingestor,
    sink: MemorySink,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reader of another ending is all it takes: its files are found, cleaned and stored."""

    def read_rst(path: Path, tools: ImportTools) -> Iterator[Entry]:
        title, _, *lines = read_page(path, tools.notes).splitlines()
        yield writeup_entry(Document(title=title, lines=tuple(lines)), path, tools)

    monkeypatch.setitem(FORMATS, "rst", Format(read=read_rst, suffixes=frozenset({".rst"})))
    lines = [
        "Hang at save",
        "====",
        "",
        "## Solution",
        "",
        "Every rank saves its own shard of the model, and nothing is gathered.",
    ]
    report = ingestor.ingest_paths([write("notes.rst", "\n".join(lines))])
    assert report.refused == ()
    (entry,) = sink.iter_entries()
    assert (report.added, entry.title.en, entry.kind) == (1, "Hang at save", "writeup")
    assert [section.role for section in entry.sections] == ["fixes"]
