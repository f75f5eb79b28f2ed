"""A page saved as plain text to lines of simple Markdown: titles, points and code are recognised.

Two layouts are usual: text as a browser copies it (empty lines around titles, points indented)
and flattened text (no empty lines, every point at the margin, a nested list's parent after a lone
dash).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.sections import bare_title, role_of
from ingest.wordlists import WordLists
from kb.text.line_kind import looks_like_code, read_lines
from kb.types.vocabulary import LineKind

STRONG_ROLES = frozenset({"symptoms", "causes", "fixes", "practices", "verify"})
MIN_NUMBERED_ROLES = 2  # numbered lines that tell so many roles are the article's sections
AUTHORS = (LineKind.PROSE, LineKind.MARKUP)
CODE_INDENT = 4  # spaces; such lines below code go on with it
_HAN = re.compile("[\u4e00-\u9fff]")
_WORDS = re.compile(r"^[A-Z][a-z]+(?: [A-Za-z-]+){1,6}$|^\s*[0-9]{1,2}[.)、]\s")  # a title, a point
_COMMENT = re.compile(r"(?<!\s)\s*(?:#|//).*$")
_NUMBERED = re.compile(r"^[0-9]{1,2}(?:\.[0-9]{1,2}){0,2}[.、))]?\s*(?=\S)")
_BULLET = re.compile(r"^(\s*)(?:[-*+•·●▪◦‣–])\s+(?=\S)")
_LONE_BULLET = re.compile(r"^\s*[-*+•·●▪◦‣]$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_ENDS = re.compile(r"[。.!?!?;;::,,、)\]]\s*$")
_SENTENCE = re.compile(r"[.。]\s*$|\w [a-z]+ [a-z]+ [a-z]+ [a-z]+ [a-z]+ ")


def to_markdown(lines: Sequence[str], words: WordLists) -> list[str]:
    """Lines of simple Markdown for the lines of an article saved as text."""
    marked = _fence_code(_nest(lines))
    last = max((index for index, line in enumerate(marked) if line.strip()), default=0)
    numbered = _has_numbered_sections(marked, words)
    result: list[str] = []
    inside = False
    for index, line in enumerate(marked):
        if _FENCE.match(line):
            inside = not inside
        elif not inside and index < last and _is_title(marked, index, words, numbered=numbered):
            line = f"## {bare_title(line)}"  # noqa: PLW2901 - the line as it is written out
        result.append(line)
    return result


def has_titles(lines: Sequence[str], words: WordLists) -> bool:
    """Whether headings mark the sections; pages often only print their titles bold."""
    return any(line.startswith("#") and role_of(line, words) in STRONG_ROLES for line in lines)


def _nest(lines: Sequence[str]) -> list[str]:
    """Bullets as ``- ``; the points below a lone dash's line become its steps."""
    result: list[str] = []
    parent = False
    waiting = False
    for line in lines:
        if _LONE_BULLET.match(line):
            waiting = True
        elif waiting and line.strip():
            result.append(f"- {line.strip()}")
            waiting, parent = False, True
        elif match := _BULLET.match(line):
            indent = match[1] + ("  " if parent else "")
            result.append(f"{indent}- {line[match.end() :]}")
        else:
            parent = parent and not line.strip()
            result.append(line)
    return result


def _fence_code(lines: Sequence[str]) -> list[str]:
    """Fences put around runs of code and program output."""
    result: list[str] = []
    block: list[str] = []
    inside = False
    code = code_lines(lines)
    for number, line in enumerate(lines):
        if _FENCE.match(line) or inside:
            result += _fenced(block)
            block = []
            inside ^= bool(_FENCE.match(line))
            result.append(line)
        elif (
            number in code
            or (block and _goes_on(line))
            or (line.lstrip().startswith("# ") and number + 1 in code)  # a comment on it
        ):
            block.append(line)
        else:
            result += _fenced(block)
            block = []
            result.append(line)
    return result + _fenced(block)


def _fenced(block: Sequence[str]) -> list[str]:
    if not block:
        return []
    code = list(block)
    tail: list[str] = []
    while code and not code[-1].strip():
        tail.append(code.pop())
    margin = min(len(line) - len(line.lstrip()) for line in code if line.strip())
    return ["```", *(line[margin:] for line in code), "```", *tail]


def code_lines(lines: Sequence[str]) -> frozenset[int]:
    """Which lines (from 0) are code or program output and not an author's sentences."""
    return frozenset(
        line.number - 1
        for line in read_lines("\n".join(lines))
        if ((line.kind not in AUTHORS and not _WORDS.match(line.text)) or _is_lone_code(line.text))
        and not _BULLET.match(line.text)
        and not _HAN.search(_COMMENT.sub("", line.text))
    )


def _is_lone_code(line: str) -> bool:
    return looks_like_code(line) and not _SENTENCE.search(line)


def _goes_on(line: str) -> bool:
    if not line.strip():
        return True
    if line.startswith("# ") and not _HAN.search(line):
        return True
    return line.startswith(" " * CODE_INDENT) and not _HAN.search(line) and not _BULLET.match(line)


def _has_numbered_sections(lines: Sequence[str], words: WordLists) -> bool:
    roles = {role_of(line, words) for line in lines if _NUMBERED.match(line)}
    return len(roles & STRONG_ROLES) >= MIN_NUMBERED_ROLES


def _is_title(lines: Sequence[str], index: int, words: WordLists, *, numbered: bool) -> bool:
    """Whether a line is a section's title: by its words, or by standing alone."""
    line = lines[index]
    if not line.strip() or line.startswith((" ", "#", "- ", "|", ">")):
        return False
    role = role_of(line, words)
    if _NUMBERED.match(line):
        return numbered and role in STRONG_ROLES
    before = lines[index - 1].strip() if index else ""
    alone = not before and index + 1 < len(lines) and not lines[index + 1].strip()
    if _HAN.search(line):
        return bool(role) or (alone and _could_be_title(line))
    if role:
        return not before or bool(_ENDS.search(before)) or before.startswith(("- ", "```", "#"))
    return alone and _could_be_title(line)


def _could_be_title(line: str) -> bool:
    text = line.strip()
    if _ENDS.search(text) or re.search(r"[,,。;;|=]", text):
        return False
    if _HAN.search(text):
        return len(text) <= 20
    return len(text.split()) <= 8 and text[:1].isupper()
