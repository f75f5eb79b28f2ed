"""HTML elements as lines of simple Markdown: headings, points, code and tables keep their shape."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bs4 import Tag
from bs4.element import Comment, NavigableString

BLOCKS = re.compile(
    "address|article|blockquote|body|center|dd|details|div|dl|dt|fieldset|figcaption|figure|header"
    "|hr|main|p|section|summary|table|tbody|td|tfoot|th|thead"
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
MAX_DEPTH = 200  # of nested elements; pages have 30, a deeper one is damaged


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
