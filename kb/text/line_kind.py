"""Kinds of text lines: a person's words, program output, code; the one place that decides it.

`read_lines` asks a fitted model (`kb.text.line_model`), which looks at each line and at those
around it. Logs, diagnosis, import, the chat and the language of an answer all ask here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kb.text.line_model import LineSigns, shipped_model
from kb.types.incident import TextLine
from kb.types.vocabulary import LineKind

WORDS_CHARS = 8000  # a report is shorter
WORD_LINE_CHARS = 1000  # of a line of words
CODE_SIGNS = frozenset(  # of code and commands that stand unfenced between an author's sentences
    ("import", "definition", "call", "assigned-call", "python-word", "command", "export", "flag")
)
PERSONAL_SIGNS = frozenset(("first-person", "question", "han-person", "thanks", "person-verb"))
WRITTEN = frozenset({LineKind.SCRIPT, LineKind.CODE, LineKind.CONFIG, LineKind.ENVIRONMENT})
_COMMENT = re.compile(r"\s{0,80}# ?[a-z\u4e00-\u9fff]")  # headings of Markdown begin with a capital
PRINTED = frozenset({LineKind.OUTPUT, LineKind.STACK})  # by a program, while it ran


def read_lines(text: str, file: str = "") -> tuple[TextLine, ...]:
    """The lines of `text` (of `file`) that are not blank, with their kinds.

    Of a line that a terminal would draw over, what it shows in the end is read.
    """
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    model = shipped_model()
    kinds = tuple(map(LineKind, model.kinds))
    signs = model.reader.read(lines)
    read = [
        TextLine(
            number=number,
            text=line.text,
            kind=_kind(kinds[kind], line),
            quoted=line.quoted,
            file=file,
        )
        for number, (line, kind) in enumerate(
            zip(signs, model.best_path(signs), strict=True), start=1
        )
        if not line.blank
    ]
    return tuple(_comments(read))


def _comments(lines: Sequence[TextLine]) -> Iterator[TextLine]:
    """A comment beside lines of a script is part of it, however much it reads like words."""
    for place, line in enumerate(lines):
        if line.kind is LineKind.PROSE and _COMMENT.match(line.text):
            beside = [
                other.kind for other in (*lines[place + 1 : place + 2], *lines[place - 1 : place])
            ]
            written = [kind for kind in beside if kind in WRITTEN]
            yield replace(line, kind=written[0]) if written else line
        else:
            yield line


def _kind(kind: LineKind, line: LineSigns) -> LineKind:
    """The kind; what a launcher or logger stamped is nobody's words, whatever it says."""
    if line.own.stamped:
        return LineKind.OUTPUT if kind is LineKind.PROSE else kind
    return LineKind(line.own.decided) if line.own.decided else kind


def is_personal(line: str) -> bool:
    """Whether a line has what only people write: a question, a first person, thanks."""
    return not PERSONAL_SIGNS.isdisjoint(_looks(line))


def looks_like_code(line: str) -> bool:
    """Whether a line alone, whatever stands around it, has the look of code or a command."""
    return not CODE_SIGNS.isdisjoint(_looks(line))


def _looks(line: str) -> Sequence[str]:
    return shipped_model().reader.read([line])[0].own.looks


def words_of(
    lines: Iterable[TextLine], explanations: Sequence[re.Pattern[str]] = ()
) -> list[TextLine]:
    """The lines a person wrote, of bounded length, without the space around them.

    What stands behind one of `explanations` on its line is left out: a program that explains its
    error ("Possible Cause: ...") names causes too, and nobody saw those.
    """
    words: list[TextLine] = []
    size = 0
    for line in lines:
        if line.kind is not LineKind.PROSE:
            continue
        text = " ".join(_before_explanation(line.text[:WORD_LINE_CHARS], explanations).split())
        size += len(text) + 1
        if size > WORDS_CHARS:
            break
        if text:
            words.append(replace(line, text=text))
    return words


def _before_explanation(line: str, explanations: Sequence[re.Pattern[str]]) -> str:
    starts = [match.start() for each in explanations if (match := each.search(line))]
    return line[: min(starts)] if starts else line
