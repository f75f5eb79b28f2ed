"""Answers to a pasted log and to what the person states about it."""

from __future__ import annotations

from kb.chat.answers.answer import (
    IntentAnswer,
    cite_line,
    cite_remark,
)
from kb.chat.answers.causes import POSSIBLE, answer_next, say_confirm, say_runner_up
from kb.chat.answers.conversation import observation, say_kept
from kb.chat.answers.movement import listing, say_changes, say_first_fix, say_next_fix
from kb.chat.answers.settings import cite_setting
from kb.chat.types import Citation, Statement
from kb.types.answer import Diagnosis, RankedCause

EVIDENCE_SHOWN = 2
RUNNER_UP = 0.05  # below this the second cause is not worth a word
CASE_SHOWN = 0.5  # score from which a similar case is shown unasked
WARNINGS_SHOWN = 2
CHANGES_SHOWN = 2
PASTE_LABELS = {
    "merged": "chat.merged",
    "repeated": "chat.repeated",
    "other": "chat.other_job",
    "asked_new": "chat.new_incident",
}


def answer_log(answer: IntentAnswer) -> None:
    """What a log says: the verdict, why, what to do first."""
    diagnosis, leading = answer.diagnosis, answer.leading
    if diagnosis is None:
        answer.say("note", "chat.no_incident")
        return
    if answer.step.event in PASTE_LABELS:
        answer.say("note", PASTE_LABELS[answer.step.event], why=answer.step.other_job)
    if diagnosis.status == "no_timeout" or leading is None:
        answer.statements.append(Statement(role="note", text=diagnosis.summary))
        return
    say_changes(answer, limit=CHANGES_SHOWN)
    _say_verdict(answer, diagnosis, leading)
    say_first_fix(answer, leading.id)
    answer.say_evidence(leading.id, speaks=1, limit=EVIDENCE_SHOWN, cases=False)
    say_runner_up(answer, least=RUNNER_UP)
    for warning in diagnosis.warnings[:WARNINGS_SHOWN]:
        answer.say(
            "warning",
            "chat.setting_warning",
            (cite_setting(warning, warning.setting),),
            setting=warning.setting,
            explanation=warning.explanation,
        )
    for case in diagnosis.cases[:1]:
        if case.score >= CASE_SHOWN:
            citation = Citation(kind="case", id=case.id, quote=case.title, url=case.url)
            answer.say("case", "chat.case_alike", (citation,), title=case.title)
            answer.cases = (case.id,)
    answer.focus = leading.id


def answer_tell(answer: IntentAnswer) -> None:
    """What a remark changed, and why."""
    diagnosis, leading = answer.diagnosis, answer.leading
    if answer.step.event == "complaint":
        _say_complaint(answer)
        return
    if answer.step.event == "skip":
        answer.say("note", "chat.skipped" if answer.question else "chat.no_more_checks")
        if answer.question is None:
            answer_next(answer)
        return
    had_causes = answer.before is not None and bool(answer.before.diagnosis.causes)
    is_description = not had_causes and not answer.changes  # it is the incident itself
    if diagnosis is None or diagnosis.status == "no_timeout" or leading is None or is_description:
        answer_log(answer)
        return
    if answer.step.event == "answered":
        _say_taken_as(answer)
    if answer.step.event == "retracted":
        _say_retracted(answer)
    before = (answer.before.diagnosis if answer.before and had_causes else diagnosis).causes[0]
    _say_effect(answer, leading, is_same=before.id == leading.id)


def _say_effect(answer: IntentAnswer, leading: RankedCause, *, is_same: bool) -> None:
    """What the remark moved, or that it moved nothing, and which cause leads."""
    is_alone = answer.is_alone
    denied = [cause for cause in answer.ranked if cause in answer.request.causes]
    if answer.changes:
        say_changes(answer, limit=CHANGES_SHOWN if is_alone else 1)
    elif denied and answer.request.is_denial and answer.ranked[denied[0]].probability < POSSIBLE:
        answer.say_of("note", "chat.denied", denied[0])
        return
    elif is_alone and answer.step.event != "trying":
        answer.say_of("verdict", "chat.nothing_moved", leading.id)
    shown = {change.cause for change in answer.changes[:CHANGES_SHOWN]}
    is_unnamed = is_alone and bool(answer.changes) and leading.id not in shown
    if not is_same or is_unnamed:
        answer.say_of("verdict", "chat.still_leads" if is_same else "chat.now_leads", leading.id)
    if answer.step.event == "trying":
        answer.say("note", "chat.tell_how_it_ends")
        say_confirm(answer, leading.id)
    elif is_alone and not is_same:
        say_first_fix(answer, leading.id)
    elif is_alone and answer.question is None:
        say_next_fix(answer, leading.id)
    answer.focus = leading.id


def _say_complaint(answer: IntentAnswer) -> None:
    """That it counts as nothing, and what still stands first; at the end, what was kept."""
    if say_kept(answer):
        return
    if answer.leading is None:
        answer.say("note", "chat.heard_nothing")
    else:
        answer.say_of("note", "chat.heard", answer.leading.id)


def _say_verdict(answer: IntentAnswer, diagnosis: Diagnosis, leading: RankedCause) -> None:
    """What happened and how sure its cause is, resting on the cause and the first error."""
    citations, first = [answer.cite(leading.id)], diagnosis.incident.first_error
    if first is not None:
        citations.append(cite_line(first, first.text, first.rank))
    words = answer.words
    label = "summary.cause" if diagnosis.status == "diagnosed" else "chat.undecided"
    cause = words(label, title=leading.title, band=words(f"band.{leading.band}"))
    answer.say("verdict", "chat.verdict", citations, headline=diagnosis.headline, cause=cause)


def _say_taken_as(answer: IntentAnswer) -> None:
    result = answer.conversation.check_results[-1]
    seen = observation(answer, result)
    if seen:
        label = "chat.taken_as_not" if result.is_denied else "chat.taken_as"
        answer.say("note", label, (Citation(kind="text", quote=result.quote),), observation=seen)


def _say_retracted(answer: IntentAnswer) -> None:
    remarks = answer.step.retracted_remarks
    instead = answer.step.instead
    label = "chat.taken_back" if remarks else "chat.nothing_to_take_back"
    label = "chat.replaced" if remarks and instead else label
    values = {"quotes": listing(answer, remarks), "instead": listing(answer, (instead,))}
    answer.say("note", label, [*map(cite_remark, (*remarks, *filter(None, (instead,))))], **values)
