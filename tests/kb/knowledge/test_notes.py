"""Notes: what the checker accepts, how it says what is wrong, and the shipped ones."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.knowledge.check import check_knowledge
from kb.knowledge.load import knowledge_digest, load_knowledge
from kb.knowledge.notes import load_note, parse_note
from kb.settings import shipped_data

NOTE = """---
id: toy-note
title: {zh: 怎么改超时, en: How to change the timeout}
questions:
  zh: [超时怎么改, 超时太短怎么办]
  en: [how do I change the timeout, the timeout is too short]
frameworks: [pytorch]
settings: [timeout]
causes: [timeout-too-short]
versions: ["torch>=2.2"]
status: confirmed
sources:
  - {url: "https://example.org/docs", confirms: the argument}
run:
  - {command: python toy.py, version: torch 2.13.0}
---
## 中文
写在参数里。

```bash
## no heading
python toy.py
```

## English
It is an argument.

```bash
## no heading
python toy.py
```
"""


def test_a_note_holds_what_its_file_says() -> None:
    """Front matter and both bodies arrive; a ## inside a block is no heading."""
    note = parse_note(NOTE, name="toy-note.md")
    assert note.title.en == "How to change the timeout"
    assert note.questions.zh == ("超时怎么改", "超时太短怎么办")
    assert (note.frameworks, note.settings, note.causes, note.versions, note.status) == (
        ("pytorch",),
        ("timeout",),
        ("timeout-too-short",),
        ("torch>=2.2",),
        "confirmed",
    )
    assert (note.run[0].command, note.run[0].version) == ("python toy.py", "torch 2.13.0")
    block = "\n\n```bash\n## no heading\npython toy.py\n```"
    assert note.body.zh == "写在参数里。" + block
    assert note.body.en == "It is an argument." + block


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("id: toy-note", "id: toy_note", "toy-note.md: id 'toy_note' is not the file's name"),
        ("status: confirmed", "status: sure", "line 11: status: 'sure' is not one of confirmed"),
        ("causes:", "cause:", "cause: unknown field — did you mean 'causes'?"),
        ("run:\n  - {command: python toy.py, version: torch 2.13.0}\n", "", "field `run`"),
        (
            "[超时怎么改, 超时太短怎么办]",
            "[超时怎么改]",
            "questions.zh: 1 different ways of asking",
        ),
        ("the timeout is too short]", "a, b, c, d]", "questions.en: 5 different ways of asking"),
        ("https://", "http://", "sources[0].url: 'http://example.org/docs' is no https address"),
        ("confirms: the argument", 'confirms: ""', "sources[0].confirms is empty"),
        ('  - {url: "https://example.org/docs", confirms: the argument}\n', "  []\n", "no sources"),
        ("## English\n", "## english\n", "unknown heading '## english'"),
        ("It is an argument.\n\n```bash\n## no heading\npython toy.py\n```\n", "", "'## English'"),
        ("It is an argument.", "It is.\n## English\nAgain.", "a heading stands twice"),
        ("## English\nIt is", "## English\n```text\nmore\n```\nIt is", "the blocks of"),
        ("python toy.py\n```\n\n## English", "python toy.py\n\n## English", "is missing or empty"),
        (
            "argument.\n\n```bash\n## no heading\npython toy.py\n```",
            "argument.\n\n```bash\npython toy.py",
            "a block is not closed",
        ),
    ],
    ids=[
        "id",
        "status",
        "field",
        "run-missing",
        "one-question",
        "many-questions",
        "http",
        "confirms",
        "no-sources",
        "heading",
        "empty-language",
        "heading-twice",
        "blocks-differ",
        "block-swallows-language",
        "block-open",
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, says: str) -> None:
    """The message names the file, the field and the value."""
    assert old in NOTE
    with pytest.raises(DataError) as caught:
        parse_note(NOTE.replace(old, new, 1), name="toy-note.md")
    assert says in str(caught.value)
    assert str(caught.value).startswith("toy-note.md")


@pytest.fixture(scope="module")
def data(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the knowledge with one note and no cases."""
    folder = tmp_path_factory.mktemp("data")
    for path in data_dir.glob("*.yaml"):
        shutil.copy(path, folder)
    shutil.copytree(data_dir / "labels", folder / "labels")
    (folder / "notes").mkdir()
    (folder / "notes" / "toy-note.md").write_text(NOTE, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "causes: [timeout-too-short]",
            "causes: [timeout-too-shirt]",
            "toy-note.md: causes: 'timeout-too-shirt' is no cause — did you mean 'timeout-",
        ),
        (
            "settings: [timeout]",
            "settings: [NCCL_DEBG]",
            "toy-note.md: settings: 'NCCL_DEBG' is no setting — did you mean 'NCCL_DEBUG'?",
        ),
        (
            '"torch>=2.2"',
            '"2.2 and newer"',
            "toy-note.md: versions: '2.2 and newer' is no version — write torch>=2.2",
        ),
        ("status: confirmed", "status: sure", "toy-note.md line 11: status: 'sure' is not one of"),
    ],
    ids=["cause", "setting", "version", "schema"],
)
def test_the_check_of_a_folder_names_a_notes_slip(
    data: Path, old: str, new: str, says: str
) -> None:
    """One slip gives one message."""
    path = data / "notes" / "toy-note.md"
    path.write_text(NOTE.replace(old, new, 1), encoding="utf-8")
    try:
        (error,) = check_knowledge(data)
    finally:
        path.write_text(NOTE, encoding="utf-8")
    assert str(error).startswith(says)


def test_notes_are_part_of_the_knowledge(data: Path, tmp_path: Path) -> None:
    """They come out of the cache as they went in, and a changed note makes another digest."""
    first = load_knowledge(data, cache=tmp_path)
    assert [note.id for note in first.notes] == ["toy-note"]
    assert load_knowledge(data, cache=tmp_path).notes == first.notes
    path = data / "notes" / "toy-note.md"
    path.write_text(NOTE.replace("写在", "直接写在"), encoding="utf-8")
    assert knowledge_digest(data) != first.digest
    path.write_text(NOTE, encoding="utf-8")


NOTES = sorted((shipped_data() / "notes").glob("*.md"))
SENTENCES = range(3, 10)  # of a note in each language
LIKE_LENGTH = (0.2, 0.75)  # characters of the Chinese text to those of the English one


def _text(body: str) -> str:
    """A body without its blocks and without what stands in backticks."""
    return re.sub(r"`[^`]*`", "x", re.sub(r"```.*?```", "", body, flags=re.DOTALL))


@pytest.mark.parametrize("path", NOTES, ids=lambda path: path.stem)
def test_shipped_notes_are_short_and_say_the_same(path: Path) -> None:
    """Each loads, has a few sentences in both languages and is of like length in them."""
    note = load_note(path)
    zh, en = _text(note.body.zh), _text(note.body.en)
    assert len(re.findall(r"[。！？]", zh)) in SENTENCES
    assert len(re.findall(r"[.!?](?=\s|$)", en)) in SENTENCES
    low, high = LIKE_LENGTH
    assert low < len(zh) / len(en) < high
    assert re.search(r"[\u4e00-\u9fff]", note.body.en) is None


def test_no_question_is_asked_by_two_notes() -> None:
    """A question leads to one answer."""
    asked = [
        (question, path.stem)
        for path in NOTES
        for language in ("zh", "en")
        for question in getattr(load_note(path).questions, language)
    ]
    seen = dict(asked)
    assert [(question, stem) for question, stem in asked if seen[question] != stem] == []
