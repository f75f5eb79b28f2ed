"""Whether a question finds the note that answers it, and whether none is found where there is none.

``data/golden/note_questions.jsonl`` has what people asked in public, each in other words, with the
ids of the notes that answer it. `MIN_SCORE` was set and the search improved on the first half.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kb.errors import InputError
from kb.evaluation.intervals import share
from kb.evaluation.known_fixes import APART, TUNED
from kb.evaluation.published import Interval
from kb.knowledge.load import Knowledge
from kb.service import Service
from kb.types.vocabulary import Language

NOTE_QUESTIONS = "note_questions.jsonl"  # of data/golden
SOUGHT = 3  # notes a person reads


class NoteQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question with the page it was asked on; `notes` answer it, none where it is empty."""

    question: str
    language: Language
    url: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question, the notes shown for it, and the best ones were there no least score."""

    question: NoteQuestion
    shown: tuple[str, ...]
    ranked: tuple[str, ...]

    @property
    def half(self) -> str:
        """The half of the questions this one is in, by its words."""
        return (TUNED, APART)[hashlib.sha256(self.question.question.encode()).digest()[0] % 2]

    def has_note(self, notes: Sequence[str]) -> bool:
        """Whether a note that answers is among `notes`."""
        return bool({*self.question.notes} & {*notes})

    @property
    def is_right(self) -> bool:
        """Whether an answering note stands first, or nothing where nothing answers."""
        if not self.question.notes:
            return not self.shown
        return self.has_note(self.shown[:1])


def load_note_questions(path: Path, knowledge: Knowledge) -> tuple[NoteQuestion, ...]:
    """Read questions, one JSON object a line.

    Raises:
        InputError: the file is missing, a line is no such object, or names a note there is not.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        what = f"{path}: {error.strerror}"
        raise InputError(what, todo=f"give the path of a {NOTE_QUESTIONS}") from error
    questions = []
    for number, line in enumerate(lines, start=1):
        try:
            item = msgspec.json.decode(line, type=NoteQuestion)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}, line {number}: {error}", todo="correct the line") from error
        if missing := sorted(set(item.notes) - set(knowledge.note_by_id)):
            raise InputError(f"{path}, line {number}: no note {missing[0]!r}", todo="correct it")
        questions.append(item)
    return tuple(questions)


def ask_notes(service: Service, questions: Sequence[NoteQuestion]) -> list[AskedQuestion]:
    """Ask every question."""
    return [
        AskedQuestion(
            question=item,
            shown=tuple(hit.note.id for hit in service.find_notes(item.question, limit=SOUGHT)),
            ranked=tuple(note.id for note, _ in service.note_finder.rank(item.question)[:SOUGHT]),
        )
        for item in questions
    ]


def note_figures(answers: Sequence[AskedQuestion]) -> dict[str, Interval]:
    """Shares of the questions that have a note, and of those that have none."""
    answered = [item for item in answers if item.question.notes]
    others = [item for item in answers if not item.question.notes]
    return {
        "an answering note is first": share(answered, lambda item: item.has_note(item.shown[:1])),
        "one is shown among three": share(answered, lambda item: item.has_note(item.shown)),
        "first, whatever the score": share(answered, lambda item: item.has_note(item.ranked[:1])),
        "among three, whatever the score": share(answered, lambda item: item.has_note(item.ranked)),
        "none is shown where none answers": share(others, lambda item: not item.shown),
    }


def wrong_answers(answers: Sequence[AskedQuestion]) -> list[AskedQuestion]:
    """The questions that are not answered right."""
    return [item for item in answers if not item.is_right]
