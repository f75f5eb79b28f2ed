"""A saved HTML page to a document: its article as lines of simple Markdown, the rest is left."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bs4 import BeautifulSoup, Tag
from bs4.element import Comment, NavigableString

from ingest.clean import HEAD_LINES, byline, iso_date, tidy, web_address
from ingest.types import Document
from ingest.wordlists import WordLists
from kb.errors import InputError

DROPPED = re.compile(
    "^(?:script|style|noscript|template|svg|iframe|form|button|nav|footer|aside|select|input"
    "|textarea|dialog|object|canvas|video|audio|img)$"
)
MAX_SHARE = 0.5  # of the page's text; an element with more is the article, whatever its class says
LINK_SHARE = 0.6  # of a block's text inside links, from MIN_LINKS links on: a menu or a list
MIN_LINKS = 4
MIN_ARTICLE_SHARE = 0.25  # of the page's text that an <article> must hold to be taken for it
MAX_CANDIDATES = 3  # articles on a page; a thread has one a post, and all are wanted
# What begins and never ends is damage; a page's own text may show a few.
UNENDED = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<![", "]>"))
MAX_UNENDED = 16
BLOCKS = re.compile(
    "address|article|blockquote|body|center|dd|details|div|dl|dt|fieldset|figcaption|figure|header"
    "|hr|main|p|section|summary|table|tbody|td|tfoot|th|thead"
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
MAX_DEPTH = 200  # of nested elements; pages have 30, a deeper one is damaged
_WORD = re.compile(r"[a-z]+")
_TAG = re.compile(r"<[A-Za-z/!?]")  # how one begins


def read_html(text: str, words: WordLists) -> Document:
    """The article of a page.

    Raises:
        InputError: there is no text in it, it is damaged, or nested too deep.
    """
    soup = BeautifulSoup(_ended(text), "html.parser")
    _check_depth(soup)
    title, author, date, url = _meta(soup, words)
    for tag in soup.find_all(DROPPED):
        tag.decompose()
    root = soup.body or soup
    heading = root.find("h1")
    h1 = heading.get_text(" ", strip=True) if isinstance(heading, Tag) else ""
    _drop_furniture(root, words)
    article = _article(root, words)
    lines = tidy("\n".join(html_lines(article)))
    if not any(line.strip() for line in lines):
        raise InputError(
            "holds no text besides menus",
            todo="save the page after it has loaded",
            reason="no_text",
        )
    if not author or not date:
        lines, named_author, named_date = _take_bylines(lines, words)
        author, date = author or named_author, date or named_date
    return Document(title=h1 or title, lines=tuple(lines), author=author, date=date, url=url)


def _ended(text: str) -> str:
    """`text` without a tag that its end cuts off; what else begins like one there is text.

    The parser looks for the end of each thing it finds open to the last character: many of them
    would take it the square of the page's length.

    Raises:
        InputError: comments or sections begin again and again and never end.
    """
    for begin, end in UNENDED:
        if text.count(begin, text.rfind(end) + 1) > MAX_UNENDED:
            raise InputError(
                f"has more than {MAX_UNENDED} {begin} without {end}",
                todo="save the page again, or as text",
                reason="unended",
                values={"count": str(MAX_UNENDED), "begin": begin, "end": end},
            )
    last = text.rfind(">") + 1
    # A log in a page says "loss <nan": only in the last line may it be a tag.
    cut = _TAG.search(text, max(last, text.rfind("\n") + 1))
    return text[:last] + text[last : cut.start() if cut else None].replace("<", "&lt;")


def _check_depth(soup: BeautifulSoup) -> None:
    depths = {id(soup): 0}
    for node in soup.descendants:
        if isinstance(node, Tag):
            depth = depths[id(node.parent)] + 1
            if depth > MAX_DEPTH:
                raise InputError(
                    "is nested too deep", todo="save the page again, or as text", reason="too_deep"
                )
            depths[id(node)] = depth


def _take_bylines(lines: list[str], words: WordLists) -> tuple[list[str], str, str]:
    """Lines without the bylines among the first ones, and the author and date these name."""
    author = date = ""
    others: list[str] = []
    for number, line in enumerate(lines):
        by = byline(line, words) if line and number < HEAD_LINES else None
        if by is None:
            others.append(line)
        else:
            author, date = author or by[0], date or by[1]
    return others, author, date


def _meta(soup: BeautifulSoup, words: WordLists) -> tuple[str, str, str, str]:
    """Title, author, ISO date and address as the page's head gives them."""
    title = _content(soup, "og:title") or (soup.title.get_text(strip=True) if soup.title else "")
    title = words.furniture.title_suffixes.sub("", title).strip()
    author = _content(soup, "author", "article:author", "og:article:author")
    date = _content(soup, "article:published_time", "datePublished", "date", "publish_date")
    if not date:
        stamp = soup.find("time", attrs={"datetime": True})
        date = str(stamp["datetime"]) if isinstance(stamp, Tag) else ""
    link = soup.find("link", rel="canonical")
    url = str(link.get("href") or "") if isinstance(link, Tag) else ""
    url = url or _content(soup, "og:url")
    author = "" if author.startswith("http") else author
    return title, author, iso_date(date), web_address(url)


def _content(soup: BeautifulSoup, *names: str) -> str:
    for name in names:
        for attribute in ("property", "name", "itemprop"):
            tag = soup.find("meta", attrs={attribute: name})
            if isinstance(tag, Tag) and tag.get("content"):
                return str(tag["content"]).strip()
    return ""


def _names(tag: Tag) -> str:
    """Class and id of an element as one lower-case text."""
    classes = tag.get("class")
    named = classes if isinstance(classes, list) else [str(classes or "")]
    return " ".join([*named, str(tag.get("id") or "")]).lower()


def _length(tag: Tag) -> int:
    return sum(len(text.strip()) for text in tag.strings)


def _drop_furniture(root: Tag, words: WordLists) -> None:
    """Remove elements whose class says furniture and blocks that are mostly links."""
    whole = _length(root)
    for tag in root.find_all(["div", "section", "ul", "ol", "header", "p", "span", "table", "li"]):
        if tag.decomposed:
            continue
        named = set(_WORD.findall(_names(tag))) & words.furniture.attributes
        # the share guards pages that put "has-sidebar" or "post-with-comments" on everything
        if (named and _length(tag) <= MAX_SHARE * whole and not _holds_title(tag)) or _is_link_list(
            tag
        ):
            tag.decompose()


def _holds_title(tag: Tag) -> bool:
    return tag.find("h1") is not None


def _is_link_list(tag: Tag) -> bool:
    links = tag.find_all("a")
    if len(links) < MIN_LINKS or tag.name in ("p", "span", "li") or tag.find("pre"):
        return False
    linked = sum(_length(link) for link in links)
    return linked > LINK_SHARE * max(1, _length(tag))


def _article(root: Tag, words: WordLists) -> Tag:
    """The element that holds the article, or the whole body where none stands out."""
    whole = max(1, _length(root))

    def largest(candidates: list[Tag]) -> Tag | None:
        best = max(candidates, key=_length, default=None)
        return best if best is not None and _length(best) >= MIN_ARTICLE_SHARE * whole else None

    def named(tag: Tag) -> bool:
        names = _names(tag).split()
        return any(name in words.furniture.containers for name in names)

    for candidates in (
        root.find_all(named),
        root.select('[itemprop="articleBody"]'),
        root.find_all("article"),
        root.find_all("main"),
        root.select('[role="main"]'),
    ):
        best = largest(list(candidates))
        if best is not None and len(candidates) <= MAX_CANDIDATES:
            return best
    return root


def html_lines(root: Tag) -> list[str]:
    """The lines of an element; the caller has checked that it is not deeper than `MAX_DEPTH`."""
    writer = _Writer()
    writer.inside(root)
    writer.flush()
    return writer.lines


class _Writer:
    """Collects lines; text waits in a buffer until a block ends."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._buffer: list[str] = []

    def flush(self) -> None:
        """End the line of text that is being collected."""
        text = re.sub(r"[ \t]+", " ", "".join(self._buffer))
        self._buffer.clear()
        self.lines += [line.strip() for line in text.split("\n") if line.strip()]

    def inside(self, tag: Tag) -> None:
        """Write what stands in an element."""
        for child in tag.children:
            if isinstance(child, Tag):
                self._element(child)
            elif isinstance(child, NavigableString) and not isinstance(child, Comment):
                self._buffer.append(re.sub(r"\s+", " ", str(child)))

    def _element(self, tag: Tag) -> None:
        if tag.name == "br":
            self._buffer.append("\n")
        elif tag.name == "pre":
            self.flush()
            self.lines += ["```", *tag.get_text().strip("\n").split("\n"), "```"]
        elif tag.name in HEADINGS:
            self._heading(tag)
        elif tag.name == "tr":
            self.flush()
            cells = [" ".join(cell.get_text(" ").split()) for cell in tag.find_all(["td", "th"])]
            self.lines.append("| " + " | ".join(cells) + " |")
        elif tag.name in ("ul", "ol"):
            self._points(tag)
        elif BLOCKS.fullmatch(tag.name):
            self.flush()
            self.inside(tag)
            self.flush()
            self.lines.append("")
        else:
            self.inside(tag)

    def _heading(self, tag: Tag) -> None:
        self.flush()
        text = " ".join(tag.get_text(" ", strip=True).split())
        if text:
            self.lines += ["", "#" * HEADINGS[tag.name] + " " + text, ""]

    def _points(self, tag: Tag) -> None:
        self.flush()
        for number, child in enumerate(tag.find_all("li", recursive=False), start=1):
            point = _Writer()
            point.inside(child)
            point.flush()
            mark = f"{number}. " if tag.name == "ol" else "- "
            self.lines += _indented([line for line in point.lines if line.strip()], mark)
        self.lines.append("")


def _indented(lines: list[str], mark: str) -> Iterable[str]:
    """A point's lines: the first after its mark, the others two spaces in.

    A point without words of its own, such as one that is all code, belongs to the one above it.
    """
    if not lines or lines[0].startswith(("- ", "```")):
        return ["  " + line for line in lines]
    return [mark + lines[0], *("  " + line for line in lines[1:])]
