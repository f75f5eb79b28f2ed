"""Markdown: reviewed cases, and write-ups with front matter, title and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ingest.clean import iso_date, read_head, tidy, web_address
from ingest.files import read_page
from ingest.types import Document, Format, ImportTools
from ingest.wordlists import WordLists
from ingest.writeups import writeup_entry
from kb.errors import InputError
from kb.knowledge.cases import load_case
from kb.types.entries import Entry

ADDRESSES = ("url", "source", "link")  # fields of the front matter that may say where it stood
MAX_FRONT = 64 * 1024  # characters; front matter has some lines
MAX_FRONT_DEPTH = 8  # a title in two languages is two levels
# Values are made as YAML's tags and forms say, and fail as those do: ValueError is a 13th month.
WRONG_YAML = (yaml.YAMLError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
_FRONT = re.compile(r"\A\ufeff?---\r?\n(.*?)\r?\n(?:---|\.\.\.)\r?\n", re.DOTALL)
_TITLE = re.compile(r"^#\s+(\S.*)$")
_SETEXT = re.compile(r"^(=+|-{3,})\s*$")


def _entries(path: Path, tools: ImportTools) -> Iterator[Entry]:
    document = read_markdown(read_page(path, tools.notes), tools.words)
    yield writeup_entry(document, path, tools)


def _case(path: Path, tools: ImportTools) -> Iterator[Entry]:
    front = _FRONT.match(read_page(path, tools.notes))
    if front:
        _check_plain(front[1])
    yield load_case(path)


def is_case(head: str, _words: WordLists) -> bool:
    """Whether a text begins with an id, a cause and a project: the shape of `data/cases`."""
    start = head[:2048].lstrip("\ufeff \t\r\n")
    if not start.startswith("---"):
        return False
    names = {line.split(":", 1)[0] for line in start.splitlines() if ":" in line}
    return {"id", "cause", "project"} <= names


def read_markdown(text: str, words: WordLists) -> Document:
    """A Markdown file as a document; title, author, date and url come from its front matter.

    Raises:
        InputError: the front matter is not YAML, or made to be expensive.
    """
    front = _FRONT.match(text)
    meta = _meta(front[1]) if front else {}
    lines = _atx(tidy(text[front.end() :] if front else text))
    filled = [index for index, line in enumerate(lines) if line.strip()]
    title = ""
    if filled and (match := _TITLE.match(lines[filled[0]])):
        title = match[1].rstrip().rstrip("#").rstrip()
        head = read_head(["title", *lines[filled[0] + 1 :]], words)
        lines = lines[filled[0] + 1 :]
        if head.date or head.author:  # a byline right under the title
            lines = lines[head.start - 1 :]
            meta = {"author": head.author, "date": head.date, **meta}
    return Document(
        title=_string(meta, "title") or title,
        lines=tuple(lines),
        author=_string(meta, "author"),
        date=iso_date(_string(meta, "date")),
        url=next((u for n in ADDRESSES if (u := web_address(_string(meta, n)))), ""),
        project=_string(meta, "project"),
    )


def _meta(front: str) -> dict[str, Any]:
    _check_plain(front)
    try:
        values = yaml.safe_load(front)
    except WRONG_YAML as error:
        raise _wrong_front(error) from error
    return values if isinstance(values, dict) else {}


def _check_plain(front: str) -> None:
    """Check that reading the front matter costs what its length says.

    An alias stands for all it refers to, so a few of them hold any amount; deep nesting takes the
    square of its depth. Neither stands in a write-up.

    Raises:
        InputError: it has one of them, is too long, or is no YAML.
    """
    if len(front) > MAX_FRONT:
        raise _refused_front(f"is longer than {MAX_FRONT // 1024} KiB")
    depth = 0
    try:
        for event in yaml.parse(front, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise _refused_front("refers to another place of itself (`*name`)")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_FRONT_DEPTH:
                raise _refused_front(f"nests deeper than {MAX_FRONT_DEPTH} levels")
    except WRONG_YAML as error:
        raise _wrong_front(error) from error


def _wrong_front(error: Exception) -> InputError:
    why = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(
        f"the front matter is not YAML: {why}",
        todo="correct it",
        reason="front_matter",
        values={"why": why},
    )


def _refused_front(what: str) -> InputError:
    return InputError(
        f"the front matter {what}",
        todo="write it as plain lines, `title: ...`",
        reason="front_matter_refused",
        values={"what": what},
    )


def _string(meta: dict[str, Any], name: str) -> str:
    """A value as text where it is one; a title in two languages gives the Chinese one."""
    value = meta.get(name)
    if isinstance(value, dict):
        value = value.get("zh") or value.get("en")
    return "" if value is None or isinstance(value, list) else str(value).strip()


def _atx(lines: list[str]) -> list[str]:
    """Underlined headings written with ``#``."""
    result: list[str] = []
    inside = False
    for line in lines:
        inside ^= line.lstrip().startswith(("```", "~~~"))
        under = _SETEXT.match(line)
        plain = result and re.match(r"\w", result[-1]) and len(result[-1]) < 100
        if under and plain and not inside and (len(result) < 2 or not result[-2].strip()):
            result[-1] = ("# " if line.startswith("=") else "## ") + result[-1]
        else:
            result.append(line)
    return result


SUFFIXES = frozenset({".md", ".markdown"})
CASE = Format(read=_case, suffixes=SUFFIXES, recognises=is_case)
MARKDOWN = Format(read=_entries, suffixes=SUFFIXES)
