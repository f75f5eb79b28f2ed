"""Answers to a pasted log and to what the person tells about it."""

from __future__ import annotations

from dataclasses import replace

from kb.chat.answers.evidence import evidence_statements, shorten
from kb.chat.answers.mending import answer_next, fixes_of
from kb.chat.incident import fitting_checks
from kb.chat.talk import QUOTE_CHARS, Said, Talk, cite_cause, cite_line, cite_sources
from kb.chat.types import Change, Citation, Statement
from kb.types import Diagnosis, RankedCause

EVIDENCE_SHOWN = 2
FIX_WORTH = 0.5  # probability from which mending comes before finding out more
RUNNER_UP = 0.05  # below this the second cause is not worth a word
CASE_SHOWN = 0.5  # score from which a similar case is told unasked
WARNINGS_SHOWN = 2
DENIED_SHOWN = 2  # causes named of a denial; “the network” means two


def answer_log(talk: Talk) -> Said:
    """What a log says: the verdict, why, what to do first."""
    diagnosis = talk.diagnosis
    if diagnosis is None:
        return Said(statements=(talk.say("note", "chat.no_incident"),))
    if diagnosis.status == "no_timeout":
        return Said(
            statements=(*_about_paste(talk), Statement(role="note", text=diagnosis.summary))
        )
    statements = [*_about_paste(talk), *(_changed(talk, change) for change in talk.changes)]
    statements += [verdict(talk, diagnosis), *_because(talk), *_runner_up(talk)]
    statements += [*_first_fix(talk), *_warnings(talk, diagnosis), *_case(talk, diagnosis)]
    leading = talk.leading
    return Said(
        statements=tuple(statements),
        focus=leading.id if leading else "",
        shown=tuple(case.id for case in diagnosis.cases[:1] if case.score >= CASE_SHOWN),
    )


def answer_told(talk: Talk) -> Said:
    """What a remark changed, and why."""
    if talk.event == "skip":
        return _skipped(talk)
    diagnosis, before = talk.diagnosis, talk.before or talk.judged
    if diagnosis is None or before is None or diagnosis.status == "no_timeout":
        return answer_log(talk)
    if talk.before is None and not talk.changes:  # a description that is the incident itself
        return answer_log(talk)
    statements = []
    if talk.event == "answered":
        statements += _taken_as(talk)
    if talk.event == "retracted":
        statements.append(_taken_back(talk))
    denied = _denied(talk)
    if not (talk.changes or denied or talk.event == "retracted"):
        statements.append(talk.say("note", "chat.nothing_moved"))
    statements += [*(_changed(talk, change) for change in talk.changes), *denied]
    leading = talk.leading
    if leading is None:
        return Said(statements=tuple(statements))
    same = next(iter(before.diagnosis.causes)).id == leading.id
    label = "chat.still_leads" if same else "chat.now_leads"
    statements.append(_standing(talk, label, leading))
    if not same:
        statements += _first_fix(talk)
    return Said(statements=tuple(statements), focus=leading.id)


def _skipped(talk: Talk) -> Said:
    """Another check for the one that could not be done."""
    if talk.question is not None:
        return Said(statements=(talk.say("note", "chat.skipped"),))
    said = answer_next(talk)
    return replace(said, statements=(talk.say("note", "chat.no_more_checks"), *said.statements))


def verdict(talk: Talk, diagnosis: Diagnosis) -> Statement:
    """The summary, resting on the leading cause and the first error."""
    leading = diagnosis.causes[0]
    citations = list(cite_cause(talk.knowledge.cause_by_id[leading.id], talk)[:1])
    first = diagnosis.incident.first_error
    if first is not None:
        citations.append(cite_line(first, first.text, first.rank))
    return Statement(role="verdict", text=diagnosis.summary, citations=tuple(citations))


def _standing(talk: Talk, label: str, cause: RankedCause) -> Statement:
    cited = cite_cause(talk.knowledge.cause_by_id[cause.id], talk)[:1]
    return talk.say(
        "verdict",
        label,
        cited,
        title=cause.title,
        percent=talk.percent(cause.probability),
    )


def _changed(talk: Talk, change: Change) -> Statement:
    quotes = [shorten(quote) for quote in change.why]
    citations = (
        *(Citation(kind="text", quote=quote[:QUOTE_CHARS]) for quote in change.why),
        *cite_cause(talk.knowledge.cause_by_id[change.cause], talk)[:1],
    )
    up = change.after > change.before
    label = "chat.rises" if up else "chat.falls"
    if talk.event == "retracted":
        label = "chat.moves_back"
    elif not quotes:
        label = "chat.rises_alone" if up else "chat.falls_alone"
    return talk.say(
        "change",
        label,
        citations,
        title=change.title,
        before=talk.percent(change.before),
        after=talk.percent(change.after),
        quotes=talk.words.join([talk.words.say("chat.quoted", quote=quote) for quote in quotes]),
    )


def _taken_as(talk: Talk) -> list[Statement]:
    answered = talk.conversation.answered[-1]
    signal = talk.judged.signals.get(f"told:{answered.check}") if talk.judged else None
    if signal is None:
        return []
    label = "chat.taken_as_not" if answered.denied else "chat.taken_as"
    cited = Citation(kind="text", quote=answered.quote)
    return [talk.say("note", label, (cited,), observation=signal.reason_id)]


def _taken_back(talk: Talk) -> Statement:
    if not talk.retracted:
        return talk.say("note", "chat.nothing_to_take_back")
    cited = [Citation(kind="text", quote=quote[:QUOTE_CHARS]) for quote in talk.retracted]
    quotes = [talk.words.say("chat.quoted", quote=shorten(quote)) for quote in talk.retracted]
    return talk.say("note", "chat.taken_back", cited, quotes=talk.words.join(quotes))


def _denied(talk: Talk) -> list[Statement]:
    """What a denial is worth where it moved no cause it names: little, or nothing by itself."""
    causes = [cause for cause in talk.heard.causes if cause in talk.ranked]
    moved = {change.cause for change in talk.changes}
    if not talk.heard.denies or not causes or moved.intersection(causes):
        return []
    causes.sort(key=list(talk.ranked).index)
    counts = talk.judged is not None and any(
        signal.quote in talk.heard.own and signal.weights.get(causes[0], 0.0) < 0
        for signal in talk.judged.signals.values()
        if signal.quote
    )
    label = "chat.denied_counts" if counts else "chat.denied_alone"
    share = talk.ranked[causes[0]].probability
    titles = talk.words.join([talk.title(cause) for cause in causes[:DENIED_SHOWN]])
    statements = [talk.say("note", label, title=titles, percent=talk.percent(share))]
    return statements if counts else [*statements, *_would_rule_out(talk, causes[0])]


def _would_rule_out(talk: Talk, cause: str) -> list[Statement]:
    """The check that would rule a cause out, or what would be seen then."""
    entry, language = talk.knowledge.cause_by_id[cause], talk.words.language
    for check in fitting_checks(talk.knowledge, cause, talk.incident):
        seen = next((item.observation for item in check.outcomes if cause in item.refutes), None)
        if seen is not None:
            what = seen.get(language)
            cited = (*cite_cause(entry, talk, what)[:1], *cite_sources(check.sources))
            return [talk.say("check", "chat.would_refute", cited, check.command, what=what)]
    return [
        talk.say("check", "chat.would_refute", cite_cause(entry, talk, what), what=what)
        for what in (item.get(language) for item in entry.refutes[:1])
    ]


def _about_paste(talk: Talk) -> list[Statement]:
    labels = {
        "merged": "chat.merged",
        "repeated": "chat.repeated",
        "other": "chat.other_job",
        "asked_new": "chat.new_incident",
    }
    label = labels.get(talk.event)
    return [talk.say("note", label, why=talk.other)] if label else []


def _because(talk: Talk) -> list[Statement]:
    leading = talk.leading
    if leading is None:
        return []
    return evidence_statements(talk, leading.id, speaks=1, limit=EVIDENCE_SHOWN, cases=False)


def _runner_up(talk: Talk) -> list[Statement]:
    second = list(talk.ranked.values())[1:2]
    if not second or second[0].probability < RUNNER_UP:
        return []
    cited = cite_cause(talk.knowledge.cause_by_id[second[0].id], talk)[:1]
    percent = talk.percent(second[0].probability)
    return [talk.say("evidence", "chat.runner_up", cited, title=second[0].title, percent=percent)]


def _first_fix(talk: Talk) -> list[Statement]:
    leading = talk.leading
    if leading is None or leading.probability < FIX_WORTH:
        return []
    cause = talk.knowledge.cause_by_id[leading.id]
    statements = []
    for fix in fixes_of(talk, cause)[:1]:
        title = fix.title.get(talk.words.language)
        cited = (*cite_cause(cause, talk, title)[:1], *cite_sources(fix.sources))
        command = fix.commands[0] if fix.commands else ""
        statements.append(talk.say("fix", "chat.try_first", cited, command=command, title=title))
    return statements


def _warnings(talk: Talk, diagnosis: Diagnosis) -> list[Statement]:
    return [
        talk.say(
            "warning",
            "chat.setting_warning",
            (
                Citation(
                    kind="setting",
                    id=warning.setting.partition("=")[0],
                    quote=warning.setting,
                    url=warning.source if warning.source.startswith("http") else "",
                ),
            ),
            setting=warning.setting,
            explanation=warning.explanation,
        )
        for warning in diagnosis.warnings[:WARNINGS_SHOWN]
    ]


def _case(talk: Talk, diagnosis: Diagnosis) -> list[Statement]:
    return [
        talk.say(
            "case",
            "chat.case_alike",
            (Citation(kind="case", id=case.id, quote=case.title, url=case.url),),
            title=case.title,
        )
        for case in diagnosis.cases[:1]
        if case.score >= CASE_SHOWN
    ]
