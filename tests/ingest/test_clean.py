"""Whole pages: what a site adds goes, what the author wrote stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest import Ingestor
from ingest.clean import web_address
from kb.types.entries import Entry
from tests.ingest.fakes import MemorySink, WatchdogReader
from tests.ingest.pages import (
    ARTICLES,
    HTML_FURNITURE,
    SITES,
    Article,
    furniture_lines,
    html_page,
    text_page,
)


def imported(path: Path, data_dir: Path) -> Entry:
    """The one entry of a file."""
    sink = MemorySink()
    report = Ingestor(sink, WatchdogReader(), data=data_dir).ingest_paths([path])
    assert report.refused == ()
    assert (report.added, len(sink.entries)) == (1, 1)
    return next(iter(sink.entries.values()))


def check_article(entry: Entry, article: Article) -> None:
    """The entry says what the article says, no more."""
    chunks = "\n".join(chunk.text for chunk in entry.chunks)
    assert [s for s in article.sentences if s not in chunks] == []
    assert (entry.title.zh, entry.author, entry.date) == (
        article.title,
        article.author,
        article.date,
    )
    assert tuple(section.role for section in entry.sections) == article.roles
    assert tuple(claim.id for claim in entry.causes) == article.causes
    assert {claim.status for claim in entry.causes} == {"unverified"}
    assert tuple(fix.title.zh for fix in entry.fixes) == article.fixes
    assert entry.fixes[0].commands == (article.command,)
    assert len(entry.fixes[1].steps) == 3
    assert entry.signature == (next(x for x in article.flat.split("\n") if "WorkNCCL" in x),)


@pytest.mark.parametrize("layout", ["spaced", "flat"])
@pytest.mark.parametrize("language", sorted(ARTICLES))
@pytest.mark.parametrize("site", sorted(SITES))
def test_article_stays_and_furniture_goes(
    site: str, language: str, layout: str, tmp_path: Path, data_dir: Path
) -> None:
    """Every sentence of the author is in a chunk, no line the site added is in any."""
    article = ARTICLES[language]
    path = tmp_path / "page.txt"
    path.write_text(text_page(SITES[site], article, layout), encoding="utf-8")
    entry = imported(path, data_dir)
    check_article(entry, article)
    lines = {line.strip() for chunk in entry.chunks for line in chunk.text.splitlines()}
    chunks = "\n".join(lines)
    assert [line for line in furniture_lines(SITES[site], article) if line in lines] == []
    assert [w for w in ("烤面包", "toaster", "登录", "icp") if w in chunks.lower()] == []


@pytest.mark.parametrize("language", sorted(ARTICLES))
def test_html_page(language: str, tmp_path: Path, data_dir: Path) -> None:
    """Menus, boxes, comments, scripts and footers of an HTML page are in no chunk."""
    article = ARTICLES[language]
    path = tmp_path / "page.html"
    path.write_text(html_page(article), encoding="utf-8")
    entry = imported(path, data_dir)
    check_article(entry, article)
    assert entry.url == "https://blog.example.org/p/17"
    chunks = "\n".join(chunk.text for chunk in entry.chunks)
    assert [word for word in HTML_FURNITURE if word in chunks] == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param("https://example.org/a", True, id="https"),
        pytest.param("HTTP://example.org", True, id="capitals"),
        pytest.param("javascript:alert(1)", False, id="script"),
        pytest.param("data:text/html,x", False, id="data"),
        pytest.param("file:///etc/passwd", False, id="file"),
        pytest.param("notes.md", False, id="no-address"),
    ],
)
def test_only_web_addresses_are_kept(text: str, kept: bool) -> None:
    """An address of a write-up is one a browser may be sent to, or none."""
    assert web_address(text) == (text if kept else "")
