"""Markdown write-ups and HTML pages as documents."""

from __future__ import annotations

import pytest

from ingest.clean import byline, iso_date
from ingest.formats.html_article import read_html
from ingest.formats.markdown import read_markdown
from ingest.wordlists import WordLists
from kb.errors import InputError


def test_front_matter_names_the_document(words: WordLists) -> None:
    """Title, author, date and address come from the front matter where there is one."""
    text = (
        "---\ntitle: Hang\nauthor: Jane\ndate: 2024-05-06\nurl: https://x.org/a\n---\n## Fix\nit\n"
    )
    document = read_markdown(text, words)
    assert (document.title, document.author, document.date, document.url, document.lines) == (
        "Hang",
        "Jane",
        "2024-05-06",
        "https://x.org/a",
        ("## Fix", "it"),
    )


def test_first_heading_and_byline(words: WordLists) -> None:
    """Without front matter the first heading is the title and a byline below it is taken."""
    document = read_markdown("# Hang\n\nAuthor: Jane | 2024-05-06\n\nIt hung.\n", words)
    assert (document.title, document.author, document.date) == ("Hang", "Jane", "2024-05-06")
    assert [line for line in document.lines if line] == ["It hung."]


def test_underlined_headings(words: WordLists) -> None:
    """Headings underlined with = and - are headings; a rule between paragraphs is none."""
    text = "Hang\n====\n\nRoot cause\n----------\nwhy\n\n---\n\nend\n"
    document = read_markdown(text, words)
    assert (document.title, document.lines) == (
        "Hang",
        ("", "## Root cause", "why", "", "---", "", "end"),
    )


UNENDED = ("<a ", "<a href='", '<a href="x', "<a b=c ", "</", "<?")


@pytest.mark.parametrize("tag", UNENDED)
def test_tags_the_end_cuts_off_are_dropped(tag: str, words: WordLists) -> None:
    """However many there are: a parser that looked for each one's end would not come back."""
    page = "<h1>Hang</h1><p>It hung.</p>" + tag * (1 << 20)
    assert [line for line in read_html(page, words).lines if line] == ["# Hang", "It hung."]


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("<h1>T</h1>\n<p>Memory < 2 GB.\nSet it.", ["# T", "Memory < 2 GB. Set it."]),
        (
            "<h1>T</h1><p>It is <nan here:\nmemory < 2 GB.",
            ["# T", "It is <nan here: memory < 2 GB."],
        ),
        ("<pre>loss <nan\nWatchdog\n", ["```", "loss <nan", "Watchdog", "```"]),
        ("<pre>loss <nan\nWatchdog</pr", ["```", "loss <nan", "Watchdog", "```"]),
        ("<pre>" + "loss <nan\n" * 20_000, ["```", *["loss <nan"] * 20_000, "```"]),
    ],
    ids=["below", "both", "log", "log-and-tag", "many"],
)
def test_what_only_begins_like_a_tag_is_text(page: str, lines: list[str], words: WordLists) -> None:
    """Behind the last tag all that cannot be one is kept, and read in a line's time each."""
    assert [line for line in read_html(page, words).lines if line] == lines


@pytest.mark.parametrize("begin", ["<!--x>", "<![CDATA[x]>", "<![if>"])
def test_what_begins_again_and_again_is_damage(begin: str, words: WordLists) -> None:
    """Few that never end are read, many are refused before the parser looks for their ends."""
    page = f"<h1>Hang</h1><p>It hung.</p>{begin}"
    assert "It hung." in read_html(page, words).lines
    with pytest.raises(InputError, match="without"):
        read_html(page + begin * 200_000 + "</p>", words)


def test_html_structure(words: WordLists) -> None:
    """Lists nest, code keeps its lines, tables are rows, inline tags vanish."""
    page = """<body><h1>T</h1><h2>Fix <em>it</em></h2><p>One <b>bold</b>
    word<br>next</p><ol><li>a<ul><li>b</li></ul></li><li><pre>x = 1
  y = 2</pre></li></ol><table><tr><th>k</th><td>v</td></tr></table></body>"""
    lines = [line for line in read_html(page, words).lines if line]
    assert lines == [
        "# T", "## Fix it", "One bold word", "next",
        "1. a", "  - b", "  ```", "  x = 1", "    y = 2", "  ```", "| k | v |",
    ]  # fmt: skip


def test_html_byline_in_the_text(words: WordLists) -> None:
    """Where the head names no author and date, the byline in the text does and is taken out."""
    document = read_html("<h1>T</h1><p>By Jane Roe</p><p>Nov 3, 2024</p><p>It hung.</p>", words)
    assert (document.author, document.date) == ("Jane Roe", "2024-11-03")
    assert [line for line in document.lines if line] == ["# T", "It hung."]


def test_link_lists_go_and_linked_prose_stays(words: WordLists) -> None:
    """A block that is mostly links is a menu; a paragraph with links is the author's."""
    menu = "".join(f'<a href="/{n}">Page number {n}</a> ' for n in range(6))
    prose = "".join(f'we read <a href="/{n}">this</a> and went on with it, ' for n in range(6))
    document = read_html(f"<body><div>{menu}</div><div><p>{prose}</p></div></body>", words)
    text = "\n".join(document.lines)
    assert ("Page number" in text, text.count("went on")) == (False, 6)


def test_bold_titles_become_sections(words: WordLists) -> None:
    """Pages that print their section titles bold are divided like those with headings."""
    from ingest.plain_text import has_titles, to_markdown

    page = "<h1>T</h1><p><b>Root cause</b></p><p>A seed.</p><p><b>Solution</b></p><p>Set it.</p>"
    lines = [line for line in read_html(page, words).lines if line]
    assert not has_titles(lines, words)
    assert to_markdown(lines, words) == [
        "# T", "## Root cause", "A seed.", "## Solution", "Set it.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2025-05-20 12:44:14", "2025-05-20"),
        ("2025/5/2", "2025-05-02"),
        ("2025年5月20日", "2025-05-20"),
        ("May 20, 2025", "2025-05-20"),
        ("20 May 2025", "2025-05-20"),
        ("2025-05-20T10:00:00+08:00", "2025-05-20"),
        ("2025-05", "2025-05"),
        ("2025", "2025"),
        ("2025-13-45", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_dates(text: str, date: str) -> None:
    """Dates in the usual forms become ISO dates, anything else nothing."""
    assert iso_date(text) == date


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("2025-05-20 12:44:14作者:滕某某", ("滕某某", "2025-05-20")),
        ("作者:李四", ("李四", "")),
        ("By Jane Roe", ("Jane Roe", "")),
        ("by Jane Roe on May 20, 2025", ("Jane Roe", "2025-05-20")),
        ("发布于 2025-05-20", ("", "2025-05-20")),
        ("Jane 于 2025-05-20 10:00:00 发布", ("Jane", "2025-05-20")),
        ("AUTHOR: Jane Roe", ("Jane Roe", "")),
        ("By the time it hung, nobody looked", None),
        ("by accident we found", None),
        ("训练开始于去年", None),
        ("[rank0]: 2025-05-20 hang", None),
    ],
)
def test_bylines(line: str, found: tuple[str, str] | None, words: WordLists) -> None:
    """Bylines of both languages give author and date; sentences are none."""
    assert byline(line, words) == found
