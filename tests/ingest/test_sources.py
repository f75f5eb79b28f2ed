"""What kind of source a file is."""

from __future__ import annotations

import io

import pytest

from ingest.progress import BarProgress, PlainProgress, progress_for
from ingest.sources import sniff
from ingest.types import SourceKind
from ingest.wordlists import WordLists
from tests.ingest.pages import ARTICLES, SITES, text_page

LOG = """2024-05-01 10:00:00 INFO epoch 1
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 3, in <module>
[E ProcessGroupNCCL.cpp:563] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(
host1:12:34 [0] NCCL INFO Channel 00
"""


@pytest.mark.parametrize("site", sorted(SITES))
@pytest.mark.parametrize("language", sorted(ARTICLES))
def test_articles_are_pages(site: str, language: str, words: WordLists) -> None:
    """An article is a page although it quotes output, on any site."""
    assert sniff(text_page(SITES[site], ARTICLES[language], "flat"), words) == "page"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (LOG, "log"),
        ("It hangs, please help\n" + LOG, "log"),
        ("Some words of a person.\nAnd more words.\nNo output at all.\n", "page"),
        ("<!DOCTYPE html><html><body>x", "html"),
        ("\ufeff\n<html>", "html"),
        ('{"title": "x", "body": "y"}', "jsonl"),
        ("", "page"),
    ],
    ids=["log", "words-and-log", "words", "html", "html-bom", "json", "empty"],
)
def test_text_files_are_told_apart(text: str, kind: SourceKind, words: WordLists) -> None:
    """Logs, pages, HTML and JSON are told apart by how they look."""
    assert sniff(text, words) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("---\nid: x\nproject: y\ncause: z\n---\n# zh\n", "case"),
        ("---\ntitle: x\ncause: z\n---\ntext\n", "markdown"),
        ("# Title\n", "markdown"),
    ],
)
def test_cases_are_told_from_write_ups(text: str, kind: SourceKind, words: WordLists) -> None:
    """A case file has id, project and cause in its front matter."""
    assert sniff(text, words, markdown=True) == kind


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def say(name: str, **values: object) -> str:
    """A label that shows its name and values."""
    return " ".join([name, *(f"{key}={value}" for key, value in values.items())])


def test_plain_lines_where_there_is_no_terminal() -> None:
    """A file or pipe gets one line at the start, one every hundred, one at the end."""
    stream = io.StringIO()
    progress = progress_for(stream, say)
    assert isinstance(progress, PlainProgress)
    progress.start(250)
    for number in range(250):
        progress.advance(f"{number}.txt", "stored")
    progress.finish()
    read = [f"import.read done={done} total=250" for done in (100, 200, 250)]
    lines = ["import.reading total=250", *read]
    assert stream.getvalue().splitlines() == lines


def test_bar_on_a_terminal() -> None:
    """A terminal gets a bar that counts, and that is gone at the end."""
    stream = Terminal()
    progress = progress_for(stream, say)
    assert isinstance(progress, BarProgress)
    progress.start(2)
    progress.advance("[bold]a.txt", "stored")
    progress.advance("b.txt", "refused")
    progress.finish()
    assert "2/2" in stream.getvalue()
    assert stream.getvalue().rstrip().endswith("\x1b[2K")
