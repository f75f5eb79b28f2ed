"""Answers to a pasted log and to what the person states about it."""

from __future__ import annotations

from kb.chat.answers.answer import (
    IntentAnswer,
    cite_line,
    cite_remark,
)
from kb.chat.answers.causes import answer_next, say_runner_up
from kb.chat.answers.conversation import observation, say_kept
from kb.chat.answers.movement import listing, say_changes, say_first_fix
from kb.chat.answers.settings import cite_setting
from kb.chat.checks import askable_checks, find_check, mid_sentence
from kb.chat.types import Citation, Statement
from kb.types.answer import Diagnosis, RankedCause

EVIDENCE_SHOWN = 2
RUNNER_UP = 0.05  # below this the second cause is not worth a word
CASE_SHOWN = 0.5  # score from which a similar case is shown unasked
WARNINGS_SHOWN = 2
CHANGES_SHOWN = 2
REMARKS_SHOWN = 3
DENIED_SHOWN = 2  # causes named of a denial; “the network” means two
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
    say_changes(answer)
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
    denied_causes = _denied_causes(answer)
    is_alone = answer.is_alone
    if answer.changes:
        say_changes(answer, limit=CHANGES_SHOWN if is_alone else 1)
    elif is_alone and not denied_causes and answer.step.event != "retracted":
        answer.say_of("verdict", "chat.nothing_moved", leading.id)
        _say_still_open(answer)
        return
    if denied_causes:
        _say_denial(answer, denied_causes)
    shown = {change.cause for change in answer.changes[:CHANGES_SHOWN]}
    if not is_same or (is_alone and leading.id not in shown):
        answer.say_of("verdict", "chat.still_leads" if is_same else "chat.now_leads", leading.id)
    if is_alone:
        if not is_same:
            say_first_fix(answer, leading.id)
        _say_still_open(answer)
    answer.focus = leading.id


def _say_still_open(answer: IntentAnswer) -> None:
    """In a line, the check that nobody has answered yet; its command only when it is asked for."""
    if answer.question is not None or answer.conversation.is_over:
        return
    for identifier in answer.conversation.open_checks[-1:]:
        check = find_check(answer.knowledge, identifier)
        if check is not None:
            tells = mid_sentence(check.tells.get(answer.language))
            answer.say("hint", "chat.still_open", tells=tells)


def _say_complaint(answer: IntentAnswer) -> None:
    """What is held of the person's words, for them to put right; at the end, what was kept."""
    if say_kept(answer):
        return
    remarks = answer.conversation.remarks[-REMARKS_SHOWN:]
    label = "chat.heard" if remarks else "chat.heard_nothing"
    answer.say("note", label, [*map(cite_remark, remarks)], quotes=listing(answer, remarks))
    if answer.leading is not None:
        answer.say_of("verdict", "chat.stands_first", answer.leading.id)


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
    label = "chat.taken_back" if remarks else "chat.nothing_to_take_back"
    answer.say("note", label, [*map(cite_remark, remarks)], quotes=listing(answer, remarks))


def _denied_causes(answer: IntentAnswer) -> list[str]:
    """The causes a denial names, best first, where it moved none of them."""
    order = list(answer.ranked)
    causes = [cause for cause in answer.request.causes if cause in answer.ranked]
    moved = {change.cause for change in answer.changes}
    if not answer.request.is_denial or moved.intersection(causes):
        return []
    return sorted(causes, key=order.index)


def _say_denial(answer: IntentAnswer, causes: list[str]) -> None:
    """What a denial is worth that moved no cause: little, or nothing by itself."""
    cause, signals = causes[0], answer.assessment.signals if answer.assessment else {}
    counts = any(
        signal.quote in answer.request.text and signal.weights.get(cause, 0.0) < 0
        for signal in signals.values()
        if signal.quote
    )
    label = "chat.denied_counts" if counts else "chat.denied_alone"
    titles = answer.words.listing(map(answer.title, causes[:DENIED_SHOWN]))
    answer.say("note", label, title=titles, percent=answer.percent(cause))
    if not counts:
        _say_would_rule_out(answer, cause)


def _say_would_rule_out(answer: IntentAnswer, cause: str) -> None:
    """The check that would rule a cause out, or what would be seen then."""
    entry = answer.knowledge.cause_by_id[cause]
    tests = [
        (outcome.observation, check.sources, check.command)
        for check in askable_checks(answer.knowledge, cause, answer.incident)
        for outcome in check.outcomes
        if cause in outcome.refutes
    ]
    tests += [(seen, entry.sources, "") for seen in entry.refutes[:1]]
    for seen, pages, command in tests[:1]:
        what = seen.get(answer.language)
        values = {"quote": what, "command": command, "what": what}
        answer.say_of("check", "chat.would_refute", cause, pages=pages, **values)
