"""The measure of notes: what counts as found, as none, and what the golden file may name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evaluation.note_questions import (
    NOTE_QUESTIONS,
    AskedQuestion,
    NoteQuestion,
    ask_notes,
    load_note_questions,
    note_figures,
    wrong_answers,
)
from kb.knowledge.load import Knowledge
from kb.service import Service


def asked(notes: str, shown: str, ranked: str) -> AskedQuestion:
    """A question; notes are letters."""
    question = NoteQuestion(
        question=f"{notes} {shown}", language="en", url="https://example.org", notes=tuple(notes)
    )
    return AskedQuestion(question=question, shown=tuple(shown), ranked=tuple(ranked))


def test_figures_of_notes() -> None:
    """First, among three, by rank alone, and none; a question is wrong where its first is."""
    items = [
        asked("a", "ab", "abc"),
        asked("ac", "bc", "bca"),
        asked("a", "", "bca"),
        asked("a", "", "bcd"),
        asked("", "", "abc"),
        asked("", "b", "bac"),
    ]
    assert {name: value.mean for name, value in note_figures(items).items()} == {
        "an answering note is first": 0.25,
        "one is shown among three": 0.5,
        "first, whatever the score": 0.25,
        "among three, whatever the score": 0.75,
        "none is shown where none answers": 0.5,
    }
    assert wrong_answers(items) == [items[1], items[2], items[3], items[5]]


def test_the_shipped_questions(data_dir: Path, knowledge: Knowledge, shipped: Service) -> None:
    """Sixty and more, half in Chinese, some without an answer; floors under what they find."""
    questions = load_note_questions(data_dir / "golden" / NOTE_QUESTIONS, knowledge)
    chinese = [item for item in questions if item.language == "zh"]
    assert len(questions) >= 60
    assert 0.4 <= len(chinese) / len(questions) <= 0.6
    assert len({item.question for item in questions}) == len(questions)
    assert all(item.url.startswith("https://") for item in questions)
    assert sum(not item.notes for item in questions) >= 12
    figures = note_figures(ask_notes(shipped, questions))
    assert (figures["an answering note is first"].mean or 0) >= 0.55
    assert (figures["one is shown among three"].mean or 0) >= 0.7
    assert (figures["among three, whatever the score"].mean or 0) >= 0.85


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"question": "a"}', "line 1"),
        (
            json.dumps(
                {"question": "a", "language": "en", "url": "https://x", "notes": ["no-such-note"]}
            ),
            "no note 'no-such-note'",
        ),
    ],
    ids=["shape", "note"],
)
def test_broken_questions_are_refused(
    tmp_path: Path, knowledge: Knowledge, line: str, what: str
) -> None:
    """The message names the line and the note."""
    path = tmp_path / NOTE_QUESTIONS
    path.write_text(line, "utf-8")
    with pytest.raises(InputError, match=what):
        load_note_questions(path, knowledge)
    with pytest.raises(InputError, match="missing"):
        load_note_questions(tmp_path / "missing", knowledge)
