"""Notes: `data/notes/<slug>.md`, short answers to what people ask around a hang.

The front matter is checked against `NoteMeta`; the body holds ``## 中文`` and ``## English``, which
say the same and have the same fenced blocks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kb.errors import DataError
from kb.knowledge.front_matter import FRONT_LINE, check_id, read_markdown, split_front_matter
from kb.knowledge.schema import parse_yaml
from kb.types.knowledge import Bilingual, Note, NoteQuestions, NoteRun, Source
from kb.types.vocabulary import NoteStatus

HEADINGS = {"zh": "中文", "en": "English"}
QUESTIONS = range(2, 5)  # how many ways of asking a note has in each language
_HEADING = re.compile(r"^## +(.+?)[ \t]*$", re.MULTILINE)
_BLOCK = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteMeta:
    """Front matter of a note; the fields mean what they mean in `Note`."""

    id: str
    title: Bilingual
    questions: NoteQuestions
    sources: tuple[Source, ...]
    status: NoteStatus
    run: tuple[NoteRun, ...]
    frameworks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


def load_note(path: Path) -> Note:
    """Read and check one note.

    Raises:
        DataError: the file is unreadable or breaks the schema; the message names file and field.
    """
    return parse_note(read_markdown(path), name=path.name)


def parse_note(text: str, *, name: str) -> Note:
    """Turn the text of a note into its value; `name` is its file name.

    Raises:
        DataError: the text breaks the schema; the message names file, field and value.
    """
    front, body = split_front_matter(text, name)
    meta = parse_yaml(front, NoteMeta, name=name, first_line=FRONT_LINE)
    check_id(meta.id, name)
    _check_questions(meta.questions, name)
    _check_sources(meta.sources, name)
    fields = {key: getattr(meta, key) for key in NoteMeta.__dataclass_fields__}
    return Note(**fields, body=_body(body, name))


def _check_questions(questions: NoteQuestions, name: str) -> None:
    for language in HEADINGS:
        asked = getattr(questions, language)
        if len(set(asked)) not in QUESTIONS or not all(text.strip() for text in asked):
            raise DataError(
                f"{name}: questions.{language}: {len(set(asked))} different ways of asking",
                todo=f"write {QUESTIONS[0]} to {QUESTIONS[-1]}",
            )


def _check_sources(sources: tuple[Source, ...], name: str) -> None:
    if not sources:
        raise DataError(f"{name}: no sources", todo="name the page that confirms the note")
    for number, source in enumerate(sources):
        if not source.url.startswith("https://"):
            what = f"{name}: sources[{number}].url: {source.url!r} is no https address"
            raise DataError(what, todo="name a public page")
        if not source.confirms.strip():
            what = f"{name}: sources[{number}].confirms is empty"
            raise DataError(what, todo=f"say what {source.url} confirms")


def _body(text: str, name: str) -> Bilingual:
    """The two parts, each under its heading."""
    outside = _BLOCK.sub(lambda block: "." * len(block[0]), text)  # a ## in a block is a comment
    headings = list(_HEADING.finditer(outside))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    parts = {
        heading[1]: text[heading.end() : end].strip()
        for heading, end in zip(headings, ends, strict=True)
    }
    if len(parts) < len(headings):
        raise DataError(f"{name}: a heading stands twice", todo="join the two parts")
    for title in parts:
        if title not in HEADINGS.values():
            known = ", ".join(f"'## {known}'" for known in HEADINGS.values())
            raise DataError(f"{name}: unknown heading '## {title}'", todo=f"use {known}")
    for title in HEADINGS.values():
        if not parts.get(title):
            raise DataError(
                f"{name}: '## {title}' is missing or empty", todo="write both languages"
            )
    body = Bilingual(**{language: parts[title] for language, title in HEADINGS.items()})
    _check_blocks(body, name)
    return body


def _check_blocks(body: Bilingual, name: str) -> None:
    """What is typed is the same in every language."""
    for text in (body.zh, body.en):
        if "```" in _BLOCK.sub("", text):
            raise DataError(
                f"{name}: a block is not closed", todo="end it with ``` on its own line"
            )
    if _BLOCK.findall(body.zh) != _BLOCK.findall(body.en):
        what = f"{name}: the blocks of '## 中文' and '## English' differ"
        raise DataError(what, todo="write the same commands in both")
