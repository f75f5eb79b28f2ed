"""Answers from the notes: what people ask around a hang, about no incident of theirs."""

from __future__ import annotations

import re

from kb.chat.answers.answer import IntentAnswer, cite_note, cite_pages
from kb.chat.answers.passages import SURELY, say_passages
from kb.chat.answers.settings import answer_setting
from kb.types.entries import NoteHit

OTHERS_SHOWN = 1  # notes named beside the one that is shown
BESIDE_SETTING = 0.5  # score of a note that is told beside what a setting is
OWN_FRAMEWORK = 0.1  # of a score that a note about the job's framework is worth besides
FRAMEWORKS = 1  # of the incident that a question is taken to be about
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def answer_how_to(answer: IntentAnswer) -> None:
    """The note that answers the question, else what is true of the settings it names."""
    hits = find_notes(answer)
    if hits:
        say_note(answer, hits[0])
        for hit in hits[1 : 1 + OTHERS_SHOWN]:
            answer.say("hint", "chat.see_note", (cite_note(hit),), title=hit.title, id=hit.note.id)
    else:
        answer_setting(answer)
    if not answer.statements and not say_passages(answer, least=SURELY):
        answer.say("note", "chat.no_answer")


def answer_setting_question(answer: IntentAnswer) -> None:
    """What is true of the settings named, and the note about them where more is asked."""
    answer_setting(answer)
    if answer.request.form != "meaning" or not answer.statements:
        least = BESIDE_SETTING if answer.statements else 0.0
        for hit in find_notes(answer, least=least)[:1]:
            say_note(answer, hit)
    if not answer.statements:
        answer.say("note", "chat.no_answer")


def find_notes(answer: IntentAnswer, *, least: float = 0.0, about: str = "") -> tuple[NoteHit, ...]:
    """The notes for the question, best first, those below a score of `least` left out.

    It is `about` what it points at, where it does.

    Of a question that names no framework the incident's is meant; of a variable only what names
    it answers.
    """
    question, request = f"{answer.question_text} {about}".strip(), answer.request
    hits = list(answer.service.find_notes(question, answer.language))
    if not request.platforms and answer.incident.frameworks:
        told = " ".join((question, *answer.incident.frameworks[:FRAMEWORKS]))
        hits += answer.service.find_notes(told, answer.language)
    hits.sort(key=lambda hit: -hit.score)
    named = {name for name in request.settings if name in answer.knowledge.advice_by_id}
    best = {
        hit.note.id: hit
        for hit in reversed(hits)
        if hit.score >= least
        and not answer.conversation.excluded_by(hit.note.frameworks)
        and not answer.is_for_others(hit.note.frameworks)
        and (not named or named.intersection(hit.note.settings))
    }
    uses = answer.assessment.verdict.uses if answer.assessment else frozenset()

    def worth(hit: NoteHit) -> tuple[float, str]:
        is_own = bool(uses.intersection(hit.note.frameworks) - {"pytorch"})
        return -hit.score - (OWN_FRAMEWORK if is_own else 0.0), hit.note.id

    return tuple(sorted(best.values(), key=worth))


def say_note(answer: IntentAnswer, hit: NoteHit) -> None:
    """Add a note: its text, what to type, and its sources."""
    body = hit.note.body.get(answer.language)
    text = "\n".join(line.strip() for line in _BLOCK.sub("", body).splitlines() if line.strip())
    commands = [block.strip() for block in _BLOCK.findall(body)]
    pages = cite_pages([source.url for source in hit.note.sources])
    versions = answer.words.listing(hit.note.versions)
    label = "chat.note_of_versions" if versions else "chat.note"
    answer.say(
        "verdict", label, (cite_note(hit), *pages), title=hit.title, text=text, versions=versions
    )
    for command in commands:
        answer.say("step", "chat.run_this", (cite_note(hit),), command)
