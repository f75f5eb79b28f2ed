"""Section titles to roles, a document to its sections, a section to its points."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingest.types import ListItem
from ingest.wordlists import WordLists
from kb.text.language import detect_language
from kb.types.entries import Section

MAX_TITLE_HAN = 24  # characters; Chinese section titles have up to 16, sentences more
MAX_TITLE_WORDS = 9  # of an English section title
MAX_LEAD_IN_HAN = 8  # characters of a title that ends with a colon; a lead-in is a clause
MAX_LEAD_IN_WORDS = 3
MAX_ITEM_TITLE = 60  # characters before the colon of a point; more is a sentence with a colon
_HAN = re.compile("[\u4e00-\u9fff]")
_NUMBERING = re.compile(
    r"^\s*(?:[一二三四五六七八九十]{1,3}[、..]\s*|第[一二三四五六七八九十0-9]{1,3}[章节步]\s*[::]?\s*"
    r"|[0-9]{1,2}(?:\.[0-9]{1,2}){0,3}[.、))]?\s+|[0-9]{1,2}[.、))]\s*|[((][一二三四五六七八九十0-9]{1,2}[))]\s*)?"
)
_MARKS = re.compile(r"^[\s*_【\[「《✅❌🔍💡📌🐛🚀⚠️#]+|(?<![\s*_】\]」》::#])[\s*_】\]」》::#]+$")
_SENTENCE_END = re.compile(r"[。.!?!?;;,,、…]$|[。;;!?]|,|, .*, ")
_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*+•·●▪◦‣–]|\[[ xX]\])\s+(?P<text>\S.*)$")
_NUMBER = re.compile(
    r"^(?P<indent>\s*)(?:[0-9]{1,2}[.、))](?![0-9])|[((][0-9]{1,2}[))]|[①-⑳])\s*(?P<text>\S.*)$"
)
_HEADING = re.compile(r"^(?P<marks>#{1,6})\s+(?P<text>\S.*)$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_COLON = re.compile(r"(?<!\s)\s*(?:(?<!:)[::](?!//|:)|\s[-–—]{1,2}\s|——)\s*")


def bare_title(line: str) -> str:
    """A heading without its marks, numbering, emphasis and closing colon."""
    text = _NUMBERING.sub("", line.strip().lstrip("#").strip(), count=1)
    return _MARKS.sub("", text).strip()


def role_of(line: str, words: WordLists) -> str:
    """The role a line has as a section title, empty where it is none."""
    if _BULLET.match(line) or len(line) > 120:
        return ""
    marked = bool(_HEADING.match(line.strip()))
    title = bare_title(line)
    if not title or (not marked and _SENTENCE_END.search(title)):
        return ""
    if not marked and not _short(title, lead_in=line.rstrip().endswith((":", ":"))):
        return ""
    return next((item.role for item in words.sections if item.words.search(title)), "")


def role_words(role: str, words: WordLists) -> re.Pattern[str]:
    """What names a role in a title."""
    return next(item.words for item in words.sections if item.role == role)


def _short(title: str, *, lead_in: bool) -> bool:
    """Whether a line is as short as titles are; one with a colon can lead into a list instead."""
    if _HAN.search(title):
        return len(title) <= (MAX_LEAD_IN_HAN if lead_in else MAX_TITLE_HAN)
    words = len(title.split())
    return words <= (MAX_LEAD_IN_WORDS if lead_in else MAX_TITLE_WORDS) and not title[:1].islower()


def section_of(role: str, title: str, lines: Sequence[str]) -> Section:
    """A section, in the language it is written in."""
    text = "\n".join(lines)
    return Section(role=role, title=title, text=text, language=detect_language(f"{title}\n{text}"))


def split_sections(lines: Sequence[str], *, words: WordLists, default: str) -> tuple[Section, ...]:
    """The sections of a document's lines of simple Markdown.

    A heading whose title tells no role stays inside the section above it, as its text; before the
    first title the role is `default`. Sections without text are left out.
    """
    sections: list[Section] = []
    role, title, level = default, "", 6
    held: list[str] = []
    in_code = False
    only_first = sum(1 for line in lines if line.startswith("# ")) == 1  # the document's title

    def close() -> None:
        if any(line.strip() for line in held):
            sections.append(section_of(role, title, _trimmed(held)))

    for line in lines:
        if _FENCE.match(line):
            in_code = not in_code
        heading = None if in_code else _HEADING.match(line)
        if heading is None:
            held.append(line)
            continue
        if only_first and line.startswith("# ") and not sections and not any(map(str.strip, held)):
            continue
        own = role_of(line, words)
        depth = len(heading["marks"])
        if depth > level and (not own or own == role or role in ("fixes", "causes")):
            held.append(line)  # a point of the section it stands in
            continue
        close()
        held = []
        role, title, level = own or "other", bare_title(line), depth
    close()
    return tuple(sections)


def _trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines without the empty ones at both ends."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    return tuple(lines[filled[0] : filled[-1] + 1]) if filled else ()


def items_of(text: str) -> tuple[str, tuple[ListItem, ...]]:
    """The introduction of a section and its points in order.

    Points start at sub-headings where there are some, else at numbers, else at bullets, the least
    indented ones; what stands under a point is its text, its steps and its code.
    """
    lines = text.split("\n")
    kind = _starter(lines)
    intro: list[str] = []
    groups: list[tuple[str, list[str]]] = []
    for line, code in _with_code(lines):
        point = "" if code else _starts(line, kind)
        if point:
            groups.append((point, []))
        else:
            (groups[-1][1] if groups else intro).append(line)
    items = tuple(_item(point, body) for point, body in groups)
    return "\n".join(intro).strip(), items


def _with_code(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each line and whether it belongs to a fenced block, the fences included."""
    inside = False
    for line in lines:
        fence = bool(_FENCE.match(line))
        yield line, inside or fence
        inside ^= fence


def _starter(lines: Sequence[str]) -> tuple[str, int]:
    """What starts a point: ``heading``, ``number`` or ``bullet``, and the least indent of it."""
    outside = [line for line, code in _with_code(lines) if not code]
    if any(_HEADING.match(line) for line in outside):
        return "heading", 0
    for kind, pattern in (("number", _NUMBER), ("bullet", _BULLET)):
        indents = [len(match["indent"]) for line in outside if (match := pattern.match(line))]
        if indents:
            return kind, min(indents)
    return "none", 0


def _starts(line: str, kind: tuple[str, int]) -> str:
    """The text of the point that starts on `line`, empty where none does."""
    pattern = {"heading": _HEADING, "number": _NUMBER, "bullet": _BULLET}.get(kind[0])
    match = pattern.match(line) if pattern else None
    if match is None or (kind[0] != "heading" and len(match["indent"]) > kind[1]):
        return ""
    return bare_title(line) if kind[0] == "heading" else match["text"]


def _item(text: str, body: Sequence[str]) -> ListItem:
    title, rest = _title(text)
    steps: list[str] = []
    code: list[list[str]] = []
    texts: list[str] = [rest] if rest else []
    inside = False
    for line in body:
        if _FENCE.match(line):
            inside = not inside
            if inside:
                code.append([])
        elif inside:
            code[-1].append(line)
        elif line.strip():
            point = _BULLET.match(line) or _NUMBER.match(line)
            (steps if point else texts).append((point["text"] if point else line).strip())
    return ListItem(
        title=title,
        text="\n".join(texts),
        steps=tuple(steps),
        code=tuple(_dedented(block) for block in code if any(line.strip() for line in block)),
    )


def _title(text: str) -> tuple[str, str]:
    """A point's title and what follows its colon."""
    plain = re.sub(r"(\*\*|__)(.+?)\1", r"\2", text).strip()
    colon = _COLON.search(plain)
    if colon and 0 < colon.start() <= MAX_ITEM_TITLE:
        return plain[: colon.start()].strip(), plain[colon.end() :].strip()
    return plain, ""


def _dedented(lines: Sequence[str]) -> str:
    full = [line for line in lines if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in full)
    return "\n".join(line[margin:] if line.strip() else "" for line in lines).strip("\n")
