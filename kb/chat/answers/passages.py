"""Answers to free questions: the sentences of cases, notes, causes and fixes that speak of them."""

from __future__ import annotations

from kb.chat.answers.answer import IntentAnswer, cite_case
from kb.chat.passages import Passage, PassageHit
from kb.chat.types import Citation

ANSWERS = 0.42  # score from which a passage answers; set on the questions of played dialogues
SURELY = 0.52  # from which one answers even where an answer of another kind is at hand
NEAR_BEST = 0.06  # of the best score: a second passage is said from here on
SHOWN = 2
SIMILAR_CASE = 0.12  # added for a case like the incident
LEADING_CAUSE = 0.08  # for what is about the cause that leads
POSSIBLE_CAUSE = 0.04  # for what is about another possible one
POSSIBLE = 0.1  # probability of such a cause
LABELS = {"case": "chat.passage_of_case", "note": "chat.passage_of_note"}


def find_passages(answer: IntentAnswer, *, least: float = ANSWERS) -> list[PassageHit]:
    """The passages that answer the request, best first; the incident's own come before others."""
    similar = {case.id for case in answer.diagnosis.cases} if answer.diagnosis else set()
    leading = answer.leading.id if answer.leading else ""

    def bonus(passage: Passage) -> float:
        points = SIMILAR_CASE if passage.source in similar else 0.0
        if not passage.cause:
            return points
        if passage.cause == leading:
            return points + LEADING_CAUSE
        ranked = answer.ranked.get(passage.cause)
        is_possible = ranked is not None and ranked.probability >= POSSIBLE
        return points + (POSSIBLE_CAUSE if is_possible else 0.0)

    hits = answer.passages.find(answer.question_text, answer.language, bonus)
    hits = [hit for hit in hits if hit.score >= least][: 4 * SHOWN]
    return [
        hit
        for hit in hits
        if not answer.is_for_others(hit.passage.frameworks)
        and not answer.is_for_others((), hit.passage.text)
        and not answer.phrases.is_empty_passage(hit.passage.text)
    ]


def say_passages(answer: IntentAnswer, lead: str = "", *, least: float = ANSWERS) -> bool:
    """Add the passages that answer the request; whether there are any of a score of `least`.

    The label `lead` says before them how well they answer.
    """
    hits = find_passages(answer, least=least)
    if not hits:
        return False
    if lead:
        answer.say("note", lead)
    best = hits[0]
    near = [hit for hit in hits[1:] if hit.score >= best.score - NEAR_BEST]
    near.sort(key=lambda hit: hit.passage.source != best.passage.source)
    for hit in (best, *near[: SHOWN - 1]):
        _say_passage(answer, hit.passage)
    return True


def _say_passage(answer: IntentAnswer, passage: Passage) -> None:
    citation = Citation(kind="note", id=passage.source, quote=passage.title)
    if passage.kind == "case":
        citation = cite_case(passage.source, passage.text, passage.url)
    elif passage.kind == "cause":
        citation = answer.cite(passage.source, passage.text)
    label = LABELS.get(passage.kind, "chat.passage")
    values = {"title": passage.title, "text": passage.text}
    answer.say("evidence", label, (citation,), "", **values)
