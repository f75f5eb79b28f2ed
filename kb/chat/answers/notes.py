"""Answers from the notes: what people ask around a hang, about no incident of theirs."""

from __future__ import annotations

import re

from kb.chat.answers.answer import IntentAnswer, cite_pages
from kb.chat.answers.settings import answer_setting
from kb.chat.types import Citation
from kb.types.entries import NoteHit

OTHERS_SHOWN = 2  # notes named beside the one that is shown
QUOTE_CHARS = 200
FRAMEWORKS = 1  # of the incident that a question is taken to be about
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def answer_how_to(answer: IntentAnswer) -> None:
    """The note that answers the question, else what is true of the settings it names."""
    question = answer.request.text
    if not answer.request.platforms:  # the incident's frameworks are meant
        question = " ".join((question, *answer.incident.frameworks[:FRAMEWORKS]))
    hits = answer.service.find_notes(question, answer.language)
    named = set(answer.request.settings)
    if named:  # of a variable only what names it answers
        hits = tuple(hit for hit in hits if named.intersection(hit.note.settings))
    if hits:
        say_note(answer, hits[0])
        for hit in hits[1 : 1 + OTHERS_SHOWN]:
            answer.say("hint", "chat.see_note", (_cite(hit),), title=hit.title, id=hit.note.id)
    else:
        answer_setting(answer)


def say_note(answer: IntentAnswer, hit: NoteHit) -> None:
    """Add a note: its text, what to type, and its sources."""
    body = hit.note.body.get(answer.language)
    text = "\n".join(line.strip() for line in _BLOCK.sub("", body).splitlines() if line.strip())
    commands = [block.strip() for block in _BLOCK.findall(body)]
    pages = cite_pages([source.url for source in hit.note.sources])
    versions = answer.words.listing(hit.note.versions)
    label = "chat.note_of_versions" if versions else "chat.note"
    answer.say(
        "verdict", label, (_cite(hit), *pages), title=hit.title, text=text, versions=versions
    )
    for command in commands:
        answer.say("step", "chat.run_this", (_cite(hit),), command)


def _cite(hit: NoteHit) -> Citation:
    return Citation(kind="note", id=hit.note.id, quote=hit.title[:QUOTE_CHARS])
